"""Inputs for a program that came without any, and sizes for its symbols, from a seed."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.random import PCG64, Generator

from fuzz.generate.values.classes import classes
from fuzz.generate.values.recipes import Recipe, array_of
from tenferro_ref.dims import Extent, InputDim, evaluate, expr_of
from tenferro_ref.dtype import DType
from tenferro_ref.ops import TensorType
from tenferro_ref.program import GraphProgram
from tenferro_ref.tensor import Array

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
    return tuple(_array(dtype, shape, rng) for dtype, shape in zip(dtypes, shapes, strict=True))


def random_arrays(types: Sequence[TensorType], seed: int) -> tuple[Array, ...]:
    """One array a static type, column-major, as `random_inputs`."""
    rng = Generator(PCG64(seed))
    return tuple(_array(type_.dtype, type_.static_shape, rng) for type_ in types)


def _array(dtype: DType, shape: tuple[int, ...], rng: Generator) -> Array:
    kinds = [k for k in ("sprinkled", "small", "simple") if k in classes(dtype)]
    return array_of(Recipe(kinds[0], int(rng.integers(2, 2**16))), dtype, shape)


def _size(extent: Extent, here: InputDim, known: list[tuple[int, ...]], rng: Generator) -> int:
    """The extent if it is an integer; a symbol's size is drawn at its first place and read at later ones."""
    return int(rng.integers(1, _LARGEST + 1)) if extent == here else evaluate(expr_of(extent), known)
