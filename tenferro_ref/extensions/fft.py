"""The fft family: metadata rule, runtime on numpy.fft, and functions that append its ops to a program (SEMANTICS 6).

One-dimensional transforms along one axis, in NumPy's conventions: the input is cut off or filled with zeros to the length
that the transform takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import Extent, combine
from tenferro_ref.dtype import COMPLEX, FLOAT, INEXACT, DType
from tenferro_ref.errors import AxisOutOfBounds, UsageError
from tenferro_ref.extensions.family import Family, check_count, check_dtype, read_config, register, reject
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value
from tenferro_ref.program.slicing import as_integer
from tenferro_ref.program.value import builder_of
from tenferro_ref.tensor import Array

FAMILY = "tenferro-fft.fft.v1"

NORMS = ("Backward", "Ortho", "Forward")
DTYPES: dict[str, frozenset[DType]] = {"fft": INEXACT, "ifft": COMPLEX, "rfft": FLOAT, "irfft": COMPLEX}


@dataclass(frozen=True, slots=True)
class Transform:
    """An op's configuration for operands of one rank.

    Attributes
    ----------
    n
        Length of the transform: of its output, or for `rfft` of its real input. None: what the input's extent implies.
    axis
        Not negative.
    norm
        One of `NORMS`: which direction is scaled by 1/n, or both by 1/sqrt(n).
    """

    n: int | None
    axis: int
    norm: str


def transform(op: ops.Extension, rank: int) -> Transform:
    """The configuration, checked.

    Raises
    ------
    InvalidArgument
        An unknown key or norm, or a length below 1.
    AxisOutOfBounds
    """
    config = read_config(op, {"n": None, "axis": -1, "norm": "Backward"})
    n, axis, norm = config["n"], config["axis"], config["norm"]
    if n is not None and n < 1:
        reject(op, f"the transform length must be positive, not {n}", "n")
    if norm not in NORMS:
        reject(op, f"{norm!r} is none of {', '.join(NORMS)}", "norm")
    if not -rank <= axis < rank:
        raise AxisOutOfBounds(op=op.op, axis=axis, rank=rank)
    return Transform(n, axis % rank, norm)


def _infer(op: ops.Extension, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Type of the result: complex, for `irfft` real; along the axis n, for `rfft` n // 2 + 1.

    Raises
    ------
    Unsupported
        A dtype that the op does not take: `fft` F32 F64 C32 C64, `rfft` F32 F64, `ifft` and `irfft` C32 C64.
    InvalidArgument, AxisOutOfBounds
        As `transform`; a transform of length 0.
    """
    check_count(op, inputs, 1)
    (x,) = inputs
    spec = transform(op, x.rank)
    check_dtype(op, x.dtype, DTYPES[op.op])
    extent, inverse_real = x.shape[spec.axis], op.op == "irfft"
    if extent == 0 and (spec.n is None or inverse_real):
        reject(op, f"axis {spec.axis} is empty", "n")
    length: Extent = extent if spec.n is None else spec.n
    if op.op == "rfft":
        length = combine("add", combine("floordiv", length, 2), 1)
    elif inverse_real and spec.n is None:
        length = combine("mul", 2, combine("sub", length, 1))
        if length == 0:
            reject(op, "an axis of extent 1 implies length 0; give n", "n")
    shape = [*x.shape[: spec.axis], length, *x.shape[spec.axis + 1 :]]
    return (TensorType(x.dtype.real if inverse_real else x.dtype.complex, tuple(shape)),)


_NUMPY: dict[str, Callable[..., Array]] = {
    "fft": np.fft.fft, "ifft": np.fft.ifft, "rfft": np.fft.rfft, "irfft": np.fft.irfft,
}  # fmt: skip


def _execute(op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
    """The transform of the one input; numpy.fft keeps single precision."""
    (x,) = inputs
    spec = transform(op, x.ndim)
    with np.errstate(all="ignore"):
        return [_NUMPY[op.op](x, n=spec.n, axis=spec.axis, norm=spec.norm.lower())]


FFT = register(Family(FAMILY, DTYPES, _infer, _execute))


# --- front end --------------------------------------------------------------------------------------------------------


def _apply(op: str, x: Value, n: int | None, axis: int, norm: str) -> Value:
    """Append an op.

    Raises
    ------
    UsageError
        No value, a length or axis that is no integer, or another `norm` than NumPy's.
    """
    if not isinstance(norm, str) or norm.capitalize() not in NORMS:
        raise UsageError(detail=f'norm is "backward", "ortho" or "forward", not {norm!r}: {op}')
    config = {
        "n": None if n is None else as_integer(n, f"length n of {op}"),
        "axis": as_integer(axis, f"axis of {op}"),
        "norm": norm.capitalize(),
    }
    return builder_of(x).apply(ops.Extension.of(FAMILY, op, config), x)


def fft(x: Value, n: int | None = None, axis: int = -1, norm: str = "backward") -> Value:
    """Discrete Fourier transform; of a real input too, with the whole spectrum."""
    return _apply("fft", x, n, axis, norm)


def ifft(x: Value, n: int | None = None, axis: int = -1, norm: str = "backward") -> Value:
    """Inverse of `fft`."""
    return _apply("ifft", x, n, axis, norm)


def rfft(x: Value, n: int | None = None, axis: int = -1, norm: str = "backward") -> Value:
    """Frequencies 0 to n // 2 of a real input."""
    return _apply("rfft", x, n, axis, norm)


def irfft(x: Value, n: int | None = None, axis: int = -1, norm: str = "backward") -> Value:
    """Inverse of `rfft`; `n` is the length of the result, by default twice the frequencies less one."""
    return _apply("irfft", x, n, axis, norm)
