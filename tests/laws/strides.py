"""The same tensor in other strides."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tenferro_ref.tensor import Tensor
from tests.laws.cases import Array


def views(x: Array) -> Iterator[Tensor]:
    """Row-major, reversed, transposed, every second element, unaligned, broadcast to its own shape."""
    yield Tensor(np.ascontiguousarray(x).reshape(x.shape))
    axes = range(x.ndim)
    yield Tensor(np.flip(x, tuple(axes)).copy()).reverse(axes)
    yield Tensor(np.ascontiguousarray(x.transpose()).reshape(x.shape[::-1])).transpose(tuple(reversed(axes)))
    wide = np.zeros([2 * e for e in x.shape], x.dtype)
    wide[(slice(None, None, 2),) * x.ndim] = x
    yield Tensor(wide)[(slice(None, None, 2),) * x.ndim]
    shifted = np.frombuffer(b"\0" + x.tobytes("F"), x.dtype, offset=1) if x.size else np.empty(0, x.dtype)
    yield Tensor(shifted.reshape(x.shape, order="F"))
    yield Tensor(x).broadcast_to(x.shape)


def others(x: Array) -> Iterator[Tensor]:
    """Of another shape, of another dtype, and with another bit."""
    yield Tensor(x[np.newaxis])
    if x.itemsize % 4 == 0 and x.dtype.kind != "c":
        yield Tensor(x.view({"f": "i", "i": "f", "u": "f"}[x.dtype.kind] + str(x.itemsize)))
    if x.size:
        bits = np.frombuffer(x.tobytes("F"), np.uint8).copy()
        bits[0] ^= 1
        yield Tensor(bits.view(x.dtype).reshape(x.shape, order="F"))
