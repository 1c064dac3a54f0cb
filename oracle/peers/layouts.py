"""Inputs in other memory: the same elements with other strides, which an executor must take alike (SEMANTICS 5)."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oracle.case import Case
from tenferro_ref.tensor import Array, Tensor, load_npz, same_bits, save_npz, type_of

#: What a layout combines, as bits of the first byte that is drawn for an array; none of them is C order.
_PERMUTED, _REVERSED, _SLICED, _UNALIGNED = 1, 2, 4, 8


def copied(inputs: Sequence[Array]) -> list[Array]:
    """The arrays in memory of their own, as they lie."""
    return [a.copy(order="K") for a in inputs]


def strided(case: Case) -> list[Tensor | Array]:
    """The inputs of a case in memory of their own, each in a layout that the case and the input's number decide; half as `Tensor`.

    What is true is another byte than 1 in half of the arrays of Bool.
    """
    taken: list[Tensor | Array] = []
    for number, a in enumerate(case.inputs):
        draw = hashlib.shake_256(f"{case.fingerprint} {number}".encode()).digest(3 + a.ndim)
        array = laid_out(a, draw)
        if array.dtype == np.bool_ and array.flags.writeable and draw[-2] & 1:
            array.view(np.uint8)[a] = draw[-2]
        taken.append(viewed(array, draw[-1]) if draw[-1] >= 128 else array)
    return taken


def viewed(array: Array, draw: int) -> Tensor:
    """A tensor with the elements of an array, which comes of it by views: axes backwards, axes in another order, the second of two slices."""
    axes = [axis for axis in range(array.ndim) if draw >> axis & 1]
    order = sorted(range(array.ndim), key=lambda axis: (draw >> axis & 1, -axis))
    inside = np.flip(array, tuple(axes)).transpose(order)
    tensor = Tensor.of(inside).broadcast_to((2, *inside.shape))[1]
    return tensor.transpose([int(axis) for axis in np.argsort(order)]).reverse(axes)


def filed(case: Case) -> list[Array]:
    """The inputs of a case as they are read of a file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "inputs.npz"
        save_npz(path, {f"in{number}": a for number, a in enumerate(case.inputs)})
        return load_npz(path, "in", [type_of(a) for a in case.inputs])


def data_of(given: Tensor | Array) -> Array:
    """The array of an input."""
    return given.data if isinstance(given, Tensor) else given


def laid_out(array: Array, draw: bytes) -> Array:
    """The elements of `array` in another layout.

    Parameters
    ----------
    draw
        The first byte says in which way: C order or any order of the axes, some of them backwards, a slice of a larger array whose
        other elements are ones, at an odd address. One byte more for each axis says which axes are meant; half of those along which
        all elements are equal have stride 0.
    """
    kind, bits = draw[0], draw[1:]
    for axis, extent in enumerate(array.shape):
        first = array[(slice(None),) * axis + (slice(1),)]
        if bits[axis] & 2 and extent > 1 and same_bits(np.broadcast_to(first, array.shape), array):
            return np.broadcast_to(laid_out(first, draw), array.shape)
    order = sorted(range(array.ndim), key=lambda axis: (bits[axis] if kind & _PERMUTED else 0, axis))
    gap = order[bits[0] % array.ndim] if kind & _SLICED and array.ndim else None
    extents = [array.shape[axis] * (1 + (axis == gap)) for axis in order]
    memory = _ones([1 + 2 * bool(kind & _SLICED), *extents], array.dtype, aligned=not kind & _UNALIGNED)
    own: tuple[Any, ...] = (
        memory.shape[0] // 2,
        *(slice(1, None, 2) if axis == gap else slice(None) for axis in order),
        ...,  # without it an array of rank 0 would be a scalar
    )
    view: Array = memory[own].transpose(np.argsort(order))
    if kind & _REVERSED and array.ndim:
        view = np.flip(view, tuple(axis for axis in range(array.ndim) if bits[axis] & 1))
    view[...] = array
    return view


def _ones(shape: Sequence[int], dtype: np.dtype[np.generic], *, aligned: bool) -> Array:
    """Ones, in memory that begins one byte behind where it might."""
    if aligned:
        return np.full(shape, 1, dtype)
    memory = np.zeros(1 + int(np.prod(shape, dtype=int)) * dtype.itemsize, np.uint8)[1:].view(dtype).reshape(shape)
    memory[...] = 1
    return memory


def memory_of(array: Array) -> bytes:
    """All bytes of the memory that `array` is a view of, those around it, too."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.tobytes()
