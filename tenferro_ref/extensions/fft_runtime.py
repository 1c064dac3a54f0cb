"""Runtime of the fft family, on numpy.fft (which keeps single precision)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tenferro_ref import ops
from tenferro_ref.extensions.fft import transform
from tenferro_ref.tensor import Array

_FFT: dict[str, Callable[..., Array]] = {
    "fft": np.fft.fft,
    "ifft": np.fft.ifft,
    "rfft": np.fft.rfft,
    "irfft": np.fft.irfft,
}


def execute(op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
    """The transform of the one input."""
    (x,) = inputs
    spec = transform(op, x.ndim)
    with np.errstate(all="ignore"):
        return [_FFT[op.op](x, n=spec.n, axis=spec.axis, norm=spec.norm.lower())]
