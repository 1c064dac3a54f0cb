"""Upload and download: every element type that PJRT names and an array can hold, by rank, extent, stride and layout."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from fuzz.conform.probes.session import Fails, Lacks, NDArray, Session, same_bits, tiled
from fuzz.conform.probes.table import probe
from tenferro_ref.errors import PjrtCall

#: NumPy's name of each element type, or that of ml_dtypes. Types of less than a byte travel in a byte each.
NUMPY = {
    "PRED": "bool", "S8": "int8", "S16": "int16", "S32": "int32", "S64": "int64", "U8": "uint8", "U16": "uint16", "U32": "uint32",
    "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "C64": "complex64", "C128": "complex128",
}  # fmt: skip
ML_DTYPES = {
    "BF16": "bfloat16", "F8E5M2": "float8_e5m2", "F8E4M3FN": "float8_e4m3fn", "F8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "F8E5M2FNUZ": "float8_e5m2fnuz", "F8E4M3FNUZ": "float8_e4m3fnuz", "S4": "int4", "U4": "uint4", "S2": "int2", "U2": "uint2",
    "F8E4M3": "float8_e4m3", "F8E3M4": "float8_e3m4", "F8E8M0FNU": "float8_e8m0fnu", "F4E2M1FN": "float4_e2m1fn",
}  # fmt: skip
#: Values that a number of fewer bits than a byte may have, so that any byte in this range is one.
_BITS = {"PRED": 1, "S4": 4, "U4": 4, "S2": 2, "U2": 2, "F4E2M1FN": 4}
_EXTENTS = (2, 3, 2, 1, 2, 3)


def numpy_dtype(element: str) -> Any:
    """The dtype of an array of this element type.

    Raises
    ------
    Lacks
        ml_dtypes is not installed, or an older one.
    """
    if element in NUMPY:
        return np.dtype(NUMPY[element])
    try:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), ML_DTYPES[element]))
    except (ImportError, AttributeError):
        raise Lacks(f"ml_dtypes here has no {ML_DTYPES[element]}") from None


def values(element: str, *shape: int) -> NDArray:
    """Different bit patterns, none of them a NaN, C-contiguous."""
    dtype, count = numpy_dtype(element), prod(shape)
    if element in _BITS:
        bits = np.arange(count) % 2 ** (_BITS[element] - (element[0] == "S"))
    elif dtype.kind in "iufc":
        return (np.arange(1, count + 1) % 120).reshape(shape).astype(dtype)
    else:
        bits = np.arange(count) % 100 + 1
    pattern = bits.reshape(shape).astype(np.uint16 if dtype.itemsize == 2 else np.uint8)
    array: NDArray = np.ndarray(shape, dtype, pattern.tobytes())
    return array


def _round(s: Session, element: str, x: NDArray, what: str, **upload: object) -> None:
    """Upload and download an array; both sides must have its elements."""
    try:
        raw, done = s.upload(element, x, **upload)  # type: ignore[arg-type]
    except PjrtCall as error:
        if error.code in ("UNIMPLEMENTED", "INVALID_ARGUMENT"):
            raise Lacks(f"{what}: {error.code}: {error.detail}") from None
        raise
    try:
        s.finish(done)
        same_bits(s.download(raw, np.empty(x.shape, x.dtype)), x.copy("C"), what)
    finally:
        s.api.destroy("Buffer", raw)


def _ranks(element: str, s: Session) -> None:
    for rank in range(7):
        _round(s, element, values(element, *_EXTENTS[:rank]), f"rank {rank}")


def _zero_extents(element: str, s: Session) -> None:
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 4), (1, 0, 1, 2)):
        _round(s, element, values(element, *shape), f"shape {shape}")


def _strides(element: str, s: Session) -> None:
    x = values(element, 3, 4, 2)
    once = np.ascontiguousarray(x[:1, :, :1])
    for what, view in {
        "axes reversed": x.T, "axes permuted": x.transpose(1, 2, 0), "column-major": np.asfortranarray(x),
        "every second": x[::2, ::3], "negative strides": x[::-1, :, ::-1], "zero strides": np.broadcast_to(once, x.shape),
        "negative beside permuted": x[:, ::-1].T,
    }.items():  # fmt: skip
        _round(s, element, view, what)


def _host_layouts(element: str, s: Session) -> None:
    x = values(element, 2, 3, 4)
    raw, done = s.upload(element, x)
    try:
        s.finish(done)
        for order in ((2, 1, 0), (0, 1, 2), (1, 2, 0)):
            axes = tuple(reversed(order))  # of memory, the one that varies slowest first
            want = np.ascontiguousarray(x.transpose(axes))
            same_bits(s.download(raw, np.empty_like(want), order), want, f"minor_to_major {order}")
    finally:
        s.api.destroy("Buffer", raw)


@cache
def elements() -> tuple[str, ...]:
    """Element types in the order of the report."""
    return (*NUMPY, *ML_DTYPES)


_EACH: dict[str, Callable[[str, Session], None]] = {
    "ranks 0 to 6": _ranks, "zero extents": _zero_extents, "strides": _strides, "host layouts": _host_layouts,
}  # fmt: skip
for _element in elements():
    for _name, _check in _EACH.items():
        probe("transfers", f"{_element}, {_name}")(partial(_check, _element))


# --- what the host may do with its array -----------------------------------------------------------------------------


def _uploads(s: Session, semantics: int) -> Iterator[tuple[NDArray, int, int]]:
    """Arrays small and large with their raw buffers and events; buffers are destroyed afterwards."""
    for size in (4, 1 << 16):
        x = np.arange(size, dtype=np.float32)
        raw, done = s.upload("F32", x, semantics=semantics)
        yield x, raw, done
        s.api.destroy("Buffer", raw)


@probe("transfers", "kImmutableOnlyDuringCall: the array may change when the call has returned")
def _(s: Session) -> None:
    for x, raw, done in _uploads(s, 0):
        want = x.copy()
        x[:] = -1
        s.finish(done)
        same_bits(s.download(raw, np.empty_like(x)), want, f"{x.size} elements")


@probe("transfers", "kImmutableUntilTransferCompletes: the array may change when the event is ready")
def _(s: Session) -> None:
    for x, raw, done in _uploads(s, 1):
        want = x.copy()
        s.finish(done)
        x[:] = -1
        same_bits(s.download(raw, np.empty_like(x)), want, f"{x.size} elements")


def _zero_copy(semantics: int, s: Session) -> None:
    x = np.arange(1 << 12, dtype=np.float32)
    raw, done = s.upload("F32", x, semantics=semantics)
    try:
        same_bits(s.download(raw, np.empty_like(x)), x, "while the array is there")
    finally:
        s.api.destroy("Buffer", raw)
    s.finish(done)  # by now nothing reads the array: an event that never comes would keep it for ever


probe("transfers", "kImmutableZeroCopy: right while the array is there, and it is given back")(partial(_zero_copy, 2))
probe("transfers", "kMutableZeroCopy: right while the array is there, and it is given back")(partial(_zero_copy, 3))


@probe("transfers", "a device layout is refused, or holds for what is computed and downloaded")
def _(s: Session) -> None:
    x = values("F32", 2, 3)
    try:
        raw, done = s.upload("F32", x, layout=tiled((0, 1)))
    except PjrtCall as error:
        raise Lacks(f"column-major device layout: {error.code}: {error.detail}") from None
    try:
        s.finish(done)
        same_bits(s.download(raw, np.empty_like(x), (1, 0)), x, "row-major download of a column-major buffer")
    finally:
        s.api.destroy("Buffer", raw)


@probe("transfers", "a download without a destination says how many bytes there are")
def _(s: Session) -> None:
    raw, done = s.upload("F32", values("F32", 2, 3))
    try:
        s.finish(done)
        size = s.api.call("Buffer_ToHostBuffer", src=raw).dst_size
        if size != 24:
            raise Fails(f"{size} bytes, expected 24")
    finally:
        s.api.destroy("Buffer", raw)
