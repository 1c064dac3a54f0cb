"""`decode`: from a header and genes to a case, the one function behind both the strategies and the bulk generator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

from fuzz.generate.anchors import Anchor, anchors
from fuzz.generate.config import Config
from fuzz.generate.genes import Genes, Weighted
from fuzz.generate.growth import FIRST, Growth
from fuzz.generate.motifs import MOTIFS, Motif
from fuzz.generate.ops.extensions import STRATEGY
from fuzz.generate.ops.indexing import NEEDS_AXES
from fuzz.generate.ops.linalg import factor
from fuzz.generate.ops.rows import admitted
from oracle.case import Case
from tenferro_ref.dtype import NUMERIC
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import (
    ENGINE,
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    Constant,
    Convert,
    Divide,
    DotGeneral,
    DynamicTruncate,
    Extension,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    Reshape,
    Select,
    Sign,
    Transpose,
)

#: Bytes of one gene; decisions beyond the end are the simplest.
GENE = 32
#: Where in a header the number of the anchor stands, counted from 1.
_ANCHOR = slice(FIRST - 3, FIRST - 1)
#: The most anchors of a program; where it has two, they are as far from one another in the list as can be.
_ANCHORS = 3

Step: TypeAlias = type[Op] | Motif

#: Chance of an op where it is not 4; the first ones are the simplest.
_WEIGHTS: dict[type[Op], float] = {
    Negate: 3, Add: 9, Multiply: 9, Abs: 3, Divide: 6, Pow: 6, Convert: 7, Transpose: 7, Reshape: 8, BroadcastInDim: 4,
    ReduceSum: 7, Maximum: 6, Minimum: 6, Compare: 5, Select: 7, DotGeneral: 10, Constant: 2, Extension: 8,
    DynamicTruncate: 0.7,  # XLA has none
}  # fmt: skip
_MOTIF_FACTOR = 1.5
#: Ops that round nowhere while values are small integers and powers of two; others are rare in exact programs.
_INEXACT_FACTOR = 0.1
_EXACT_OPS = frozenset({
    Add, Multiply, Negate, Abs, Sign, Maximum, Minimum, Clamp, Compare, Select, Convert, Constant, Transpose, Reshape,
    BroadcastInDim, ReduceSum, ReduceMax, ReduceMin, DotGeneral,
})  # fmt: skip


@cache
def steps(config: Config, exact: bool) -> Weighted[Step]:
    """What may come next, with its chance.

    Raises
    ------
    UsageError
        None of the config's ops can be generated with its dtypes.
    """
    ops = [op for op in (*_WEIGHTS, *STRATEGY) if op in config.vocabulary]
    factors = dict(config.weights)
    entries: list[tuple[Step, float]] = []
    for op in dict.fromkeys(ops):
        if op in NEEDS_AXES and config.max_rank < 2:
            continue
        if op is Extension and NUMERIC.isdisjoint(config.dtypes):
            continue
        if admitted(op, config.dtypes) or op.same_dtype == 0:
            weight = _WEIGHTS.get(op, 4.0) * factors.get(op.__name__, 1.0)
            entries.append((op, weight if not exact or op in _EXACT_OPS else weight * _INEXACT_FACTOR))
    if not entries:
        raise UsageError(detail="none of the ops can be generated with these dtypes")
    for name, motif in MOTIFS.items():
        if config.motifs and all(op in config.vocabulary for op in motif.ops) and motif.dtypes(config.dtypes):
            weight = motif.weight * _MOTIF_FACTOR * factors.get(name, 1.0)
            inexact = any(op not in _EXACT_OPS for op in motif.ops)
            entries.append((motif, weight * (_INEXACT_FACTOR if exact and inexact else 1.0)))
    return Weighted(entries)


def decode(config: Config, header: bytes, genes: Sequence[bytes]) -> Case:
    """The case that the bytes say; total: all bytes give a valid program, no bytes the simplest one."""
    return grow(config, header, genes).case()


def grow(config: Config, header: bytes, genes: Sequence[bytes]) -> Growth:
    """The program before its outputs are chosen: at least one instruction, at least one a gene while there is room."""
    g = Growth(config, header, min(config.max_instructions, max(config.usual, len(genes))))
    table = steps(config, g.regime == "exact")
    simplest = table(Genes(b""))
    anchored = _anchored(g, len(genes))
    count, place = g.linalg
    factored = range(place * len(genes) >> 8, len(genes))[:count]
    for i, gene in enumerate(genes or (b"",)):
        if g.room < 1:
            break
        g.genes, before = Genes(gene), g.count
        step = table(g.genes)
        if step is DynamicTruncate and g.portable:
            step = simplest
        if i in factored:
            factor(g)
        elif i in anchored:
            _append_anchored(g, *anchored[i])
        elif isinstance(step, Motif):
            if step.size <= g.room:
                g.own = step.size
                step.grow(g)
                g.own = 1
        else:
            _append(g, step)
        if g.count == before:  # a motif without room, or one that had nothing to work on
            _append(g, simplest)
    return g


def _anchored(g: Growth, genes: int) -> dict[int, tuple[Anchor, bool]]:
    """The genes that grow an anchor in place of what they say, and whether it is the op that reads the result."""
    number, place = g.anchor
    known = anchors(g.config, g.policy) if number else ()
    if not known or (g.policy == ENGINE and number > len(known)):
        return {}
    count = min(_ANCHORS, 1 + genes // 8)
    stretch, found = max(1, genes // count), {}
    for i in range(count):
        anchor = known[(number - 1 + i * len(known) // _ANCHORS) % len(known)]
        at = stretch * i + (place * max(1, stretch - 1) >> 8)
        found[at], found[at + 1] = (anchor, False), (anchor, True)
    return found


def _append_anchored(g: Growth, anchor: Anchor, reader: bool) -> None:
    if reader:
        g.focus = g.pool[-1]
    else:
        g.wanted, g.deep = anchor.dtype, min(anchor.rank, g.max_rank)
    _append(g, anchor.reader if reader else anchor.op)
    g.focus, g.wanted, g.deep = None, None, 0


def anchored(header: bytes, number: int) -> bytes:
    """The header with another anchor, counted from 1; 0 for none."""
    return header[: _ANCHOR.start] + number.to_bytes(2, "big") + header[_ANCHOR.stop :]


def _append(g: Growth, op: Any) -> None:
    STRATEGY[op](g, op)
