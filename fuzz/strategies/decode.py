"""`decode`: from a header and genes to a case, the one function behind both the strategies and the bulk generator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

from fuzz.strategies.config import Config
from fuzz.strategies.extensions import STRATEGY
from fuzz.strategies.genes import Genes, Weighted
from fuzz.strategies.growth import Growth
from fuzz.strategies.indexing import NEEDS_AXES
from fuzz.strategies.motifs import MOTIFS, Motif
from fuzz.strategies.rows import admitted
from oracle.case import Case
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import (
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    Constant,
    Convert,
    Divide,
    DotGeneral,
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

#: Bytes of the header and of one gene; decisions beyond the end are the simplest.
HEADER, GENE = 40, 32

Step: TypeAlias = type[Op] | Motif

#: Chance of an op where it is not 4; the first ones are the simplest.
_WEIGHTS: dict[type[Op], float] = {
    Negate: 3, Add: 9, Multiply: 9, Abs: 3, Divide: 6, Pow: 6, Convert: 7, Transpose: 7, Reshape: 8, BroadcastInDim: 4,
    ReduceSum: 7, Maximum: 6, Minimum: 6, Compare: 5, Select: 7, DotGeneral: 10, Constant: 2, Extension: 8,
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
    growth = grow(config, header, genes)
    return growth.case()


def grow(config: Config, header: bytes, genes: Sequence[bytes]) -> Growth:
    """The program before its outputs are chosen: at least one instruction, at least one a gene while there is room."""
    g = Growth(config, header)
    table = steps(config, g.regime == "exact")
    simplest = table(Genes(b""))
    for gene in genes or (b"",):
        if g.room < 1:
            break
        g.genes, before = Genes(gene), g.count
        step = table(g.genes)
        if isinstance(step, Motif):
            if step.size <= g.room:
                g.own = step.size
                step.grow(g)
                g.own = 1
        else:
            _append(g, step)
        if g.count == before:  # a motif without room, or one that had nothing to work on
            _append(g, simplest)
    return g


def _append(g: Growth, op: Any) -> None:
    STRATEGY[op](g, op)
