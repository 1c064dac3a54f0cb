"""Shapes: which ranks and extents programs draw, and what a shape comes to."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fuzz.generate.choices import Weighted
from tenferro_ref.program import Value

Shape = tuple[int, ...]

RANKS: Weighted[int] = Weighted([(1, 28), (0, 8), (2, 34), (3, 20), (4, 8), (5, 2), (6, 2)])
#: Small and odd mostly; 0 seldom; a few around the length of one or two vectors of a CPU.
EXTENTS: Weighted[int] = Weighted(
    [(1, 14), (2, 20), (3, 20), (4, 12), (5, 10), (7, 7), (0, 3), (6, 4), (8, 3), (11, 2), (13, 2), (16, 1), (17, 1)]
    + [(n, 0.8) for n in (31, 33, 50, 51, 53, 59, 61, 63, 64, 65, 67, 70)]
)
#: At or above 16,384 elements, where the engine's fused kernels begin; then above 32,768, two blocks of such a kernel.
BIG: tuple[Shape, ...] = (
    (16384,), (16411,), (128, 128), (2, 8209), (131, 127), (7, 48, 49), (16385, 1),
    (32771,), (33, 1024), (3, 11003), (191, 179), (32769, 1), (40009,), (5, 81, 83),
)  # fmt: skip


def shape_of(value: Value) -> Shape:
    """The shape of a value of a growing program, where all extents are integers."""
    return value.type.static_shape


def volume(extents: Sequence[int]) -> int:
    """Elements of a shape, an extent 0 counting as 1: what a result may come to once that axis is contracted."""
    return prod(extents) or prod([max(1, e) for e in extents])
