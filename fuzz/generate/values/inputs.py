"""Inputs for a program that came without any, and sizes for its symbols, from a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import PCG64, Generator

from fuzz.generate.values.classes import classes
from fuzz.generate.values.recipes import Recipe, array_of
from tenferro_ref import memory
from tenferro_ref.dims import Extent, InputDim, evaluate, expr_of
from tenferro_ref.dtype import DType
from tenferro_ref.errors import ResourceExhausted
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphProgram
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array, bytes_of, column_major

#: Largest size of a symbol.
_LARGEST = 7


def random_inputs(program: GraphProgram, seed: int) -> tuple[Array, ...]:
    """One array an input, column-major: mostly ordinary numbers with some special ones among them."""
    rng = Generator(PCG64(seed))
    shapes: list[tuple[int, ...]] = []
    for number, type_ in enumerate(program.input_types):
        shape: list[int] = []
        for axis, extent in enumerate(type_.shape):
            shape.append(_size(extent, InputDim(number, axis), [*shapes, tuple(shape)], rng))
        shapes.append(tuple(shape))
    dtypes = [type_.dtype for type_ in program.input_types]
    _check_size([TensorType(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)])
    return tuple(_array(dtype, shape, rng) for dtype, shape in zip(dtypes, shapes, strict=True))


def random_arguments(source: Source, seed: int, *, special: bool) -> tuple[Array, ...]:
    """One array an argument of a module, column-major: ordinary numbers, or also special ones (infinities, NaN, limits).

    What the module's operations demand is kept: indices are in range, what is factorised by Cholesky is positive definite.
    """
    _check_size(source.arguments)
    rng = Generator(PCG64(seed))
    demands = source.demands or ("",) * len(source.arguments)
    arrays = []
    for type_, demand in zip(source.arguments, demands, strict=True):
        shape = type_.static_shape
        if demand.startswith("index:") and type_.dtype.is_int:
            indices = rng.integers(0, int(demand.partition(":")[2]), shape)
            arrays.append(column_major(indices.astype(type_.dtype.numpy)))
        elif demand == "definite" and len(shape) > 1 and shape[-1] == shape[-2]:
            front = array_of(Recipe("definite", int(rng.integers(2, 2**16))), type_.dtype, (*shape[-2:], *shape[:-2]))
            arrays.append(column_major(np.moveaxis(front, (0, 1), (-2, -1))))
        else:
            arrays.append(_array(type_.dtype, shape, rng, "sprinkled" if special else "ordinary"))
    return tuple(arrays)


def _check_size(types: Sequence[TensorType]) -> None:
    """Refuse to draw what does not fit into memory, which takes some arrays of the same size."""
    size = sum(map(bytes_of, types))
    if size > memory.limit() / 8:
        detail = f"inputs of {size / 2**30:.1f} GiB are not drawn; give them in a file"
        raise ResourceExhausted(where="inputs", detail=detail)


def _array(dtype: DType, shape: tuple[int, ...], rng: Generator, first: str = "sprinkled") -> Array:
    kinds = [k for k in (first, "small", "simple") if k in classes(dtype)]
    return array_of(Recipe(kinds[0], int(rng.integers(2, 2**16))), dtype, shape)


def _size(extent: Extent, here: InputDim, known: list[tuple[int, ...]], rng: Generator) -> int:
    """The extent if it is an integer; a symbol's size is drawn at its first place and read at later ones."""
    return int(rng.integers(1, _LARGEST + 1)) if extent == here else evaluate(expr_of(extent), known)
