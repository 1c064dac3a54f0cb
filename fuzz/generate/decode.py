"""`decode`: from a header and genes to a case, the one function behind both the Hypothesis strategies and batches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from fuzz.generate.anchors import Anchor, anchors
from fuzz.generate.choices import Choices, Weighted
from fuzz.generate.config import Config, admitted
from fuzz.generate.growth import Growth
from fuzz.generate.header import motif_of
from fuzz.generate.motifs import GROUPS, MOTIFS, Motif
from fuzz.generate.ops import STRATEGY, usable
from fuzz.generate.ops.linalg import factor
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import NUMERIC
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import DEFAULT_POLICY, OPS, Op

#: Bytes of one gene; decisions beyond the end are the simplest.
GENE = 48
#: The most anchors of a program; where it has two, they are as far from one another in the list as can be.
_ANCHORS = 3
#: Motifs that a program walks past, as far as there is room.
_MOTIFS = 2

#: An op, or motifs of which one is chosen.
Step: TypeAlias = type[Op] | tuple[Motif, ...]

#: Chances of ops, the simplest first; of those that are not named, 4.
_CHANCES: dict[type[Op], float] = {
    ops.Negate: 3, ops.Add: 9, ops.Multiply: 9, ops.Abs: 3, ops.Divide: 6, ops.Pow: 6, ops.Convert: 7, ops.Transpose: 7,
    ops.Reshape: 8, ops.BroadcastInDim: 4, ops.ReduceSum: 7, ops.Maximum: 6, ops.Minimum: 6, ops.Compare: 5, ops.Select: 7,
    ops.DotGeneral: 10, ops.Constant: 2, ops.Extension: 8, ops.DynamicTruncate: 0.7,  # XLA has no DynamicTruncate
    **dict.fromkeys((ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Conj), 4),
    **dict.fromkeys((ops.Sign, ops.Clamp, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin, ops.Gather), 4),
    **dict.fromkeys((ops.GatherDynamicSliceSizes, ops.Scatter, ops.Slice, ops.DynamicSlice, ops.DynamicUpdateSlice), 4),
    **dict.fromkeys((ops.Pad, ops.PadToMatch, ops.Concatenate, ops.Reverse, ops.ShapeOf, ops.ExtractDiag), 4),
}  # fmt: skip
_MOTIF_FACTOR = 1.5
#: Instructions that one step may take, with its adapters: a motif that a program must have comes while there is more room.
_LEEWAY = 6
#: Ops that round nowhere while values are small integers and powers of two; others are rare in exact programs.
_EXACT = frozenset({
    ops.Add, ops.Subtract, ops.Multiply, ops.Negate, ops.Abs, ops.Sign, ops.Maximum, ops.Minimum, ops.Clamp, ops.Compare, ops.Select,
    ops.Convert, ops.Constant, ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.ReduceSum, ops.ReduceMax, ops.ReduceMin,
    ops.DotGeneral, ops.DotGeneralWithConj, ops.ReduceSumSquares, ops.Remainder,
})  # fmt: skip
_INEXACT_FACTOR = 0.1


@lru_cache(64)
def motifs(config: Config) -> tuple[Motif, ...]:
    """Those that programs can have, in an order that is the same everywhere."""
    return tuple(m for m in MOTIFS.values() if config.motifs and m.usable(config))


@lru_cache(64)
def steps(config: Config, exact: bool) -> Weighted[Step]:
    """What may come next, with its chance.

    Raises
    ------
    UsageError
        None of the config's ops can be generated with its dtypes.
    """
    factors = dict(config.weights)
    entries: list[tuple[Step, float]] = []
    for op in dict.fromkeys((*_CHANCES, *OPS)):
        without_dtype = op is ops.Extension and NUMERIC.isdisjoint(config.dtypes)
        if usable(op, config) and not without_dtype and (admitted(op, config.dtypes) or op.same_dtype == 0):
            chance = _CHANCES.get(op, 4.0) * factors.get(op.__name__, 1.0)
            entries.append((op, chance * (_INEXACT_FACTOR if exact and op not in _EXACT else 1.0)))
    if not entries:
        raise UsageError(detail="none of the ops can be generated with these dtypes")
    usual = [m for m in motifs(config) if not exact or _EXACT.issuperset(m.ops)]
    alone = [((m,), m.weight * factors.get(m.name, 1.0)) for m in usual if m.weight and not m.group]
    grouped = [(tuple(m for m in usual if m.group == g), weight * factors.get(g, 1.0)) for g, weight in GROUPS.items()]
    entries += [(step, _MOTIF_FACTOR * weight) for step, weight in (*alone, *grouped) if step]
    return Weighted(entries)


def decode(config: Config, header: bytes, genes: Sequence[bytes]) -> Case:
    """The case of these bytes; total: all bytes give a valid program, no bytes the simplest one."""
    return grow(config, header, genes).case()


def grow(config: Config, header: bytes, genes: Sequence[bytes]) -> Growth:
    """The program before its outputs are chosen: at least one instruction, at least one a gene while there is room."""
    number, place = motif_of(header)
    first, *others = _walked(config, number) or (None,)
    policy, inexact = (first.policy, not _EXACT.issuperset(first.ops)) if first else (DEFAULT_POLICY, False)
    longest = min(config.max_instructions, max(config.usual, len(genes)))
    g = Growth(config, header, longest, policy, inexact=inexact)
    at = place * len(genes) >> 8
    due = [m for m in (first, *others) if m and _suits(g, m)]
    table = steps(g.config, g.regime == "exact")
    simplest = table(Choices(b""))
    anchored = _anchored_genes(g, len(genes))
    count, place = g.linalg
    factored = range(place * len(genes) >> 8, len(genes))[:count]
    for i, gene in enumerate(genes or (b"",)):
        if g.room < 1:
            break
        while due and (i >= at or g.room < due[0].size + _LEEWAY) and due[0].size <= g.room:
            g.choices = Choices(gene[::-1] + bytes([len(due)]))  # beside what the gene itself grows
            _append_motif(g, (due.pop(0),))
            g.give(*g.pool[-1:])
            at = (i + len(genes)) // 2  # halfway to the end, or as soon as room runs short
        g.choices, before = Choices(gene), g.count
        step = table(g.choices)
        if step is ops.DynamicTruncate and g.portable:
            step = simplest
        if g.room < 1:
            break
        if i in factored:
            factor(g)
        elif i in anchored:
            _append_anchored(g, *anchored[i])
        elif isinstance(step, tuple):
            _append_motif(g, step)
        else:
            _append(g, step)
        if g.count == before:  # a motif without room, or one that had nothing to work on
            _append(g, simplest)
    return g


def _walked(config: Config, number: int) -> list[Motif]:
    """The motifs that a program with that number must have: the first one's policy is the program's."""
    known = motifs(config) if number else ()
    return [known[(number - 1 + k * len(known) // _MOTIFS) % len(known)] for k in range(_MOTIFS)] if known else []


def _suits(g: Growth, due: Motif) -> bool:
    """Whether a program can have a motif under its policy, with its values."""
    return due.policy in (DEFAULT_POLICY, g.policy) and (g.regime != "exact" or _EXACT.issuperset(due.ops))


def _anchored_genes(g: Growth, genes: int) -> dict[int, tuple[Anchor, bool]]:
    """The genes that grow part of an anchor in place of what their bytes say: which, and whether it is the reader."""
    number, place = g.anchor
    known = anchors(g.config, g.policy) if number else ()
    if not known or (g.policy == DEFAULT_POLICY and number > len(known)):
        return {}
    count = min(_ANCHORS, 1 + genes // 8)
    stretch, anchored = max(1, genes // count), {}
    for i in range(count):
        anchor = known[(number - 1 + i * len(known) // _ANCHORS) % len(known)]
        at = stretch * i + (place * max(1, stretch - 1) >> 8)
        anchored[at], anchored[at + 1] = (anchor, False), (anchor, True)
    return anchored


def _append_anchored(g: Growth, anchor: Anchor, reader: bool) -> None:
    if reader:
        g.wanted = g.pool[-1]
    else:
        g.wanted_dtype, g.wanted_rank = anchor.dtype, min(anchor.rank, g.max_rank)
    _append(g, anchor.reader if reader else anchor.op)
    g.wanted, g.wanted_dtype, g.wanted_rank = None, None, 0


def _append_motif(g: Growth, step: tuple[Motif, ...]) -> None:
    """One of the motifs, if there is room for it."""
    motif = g.choices.choose(step) if len(step) > 1 else step[0]
    if motif.size <= g.room:
        g.step_size, before = motif.size, len(g.pool)
        motif.grow(g)
        g.step_size = 1
        if g.choices.chance(25):  # a pass must keep a value that is an output as well
            g.give(*[v for v in g.pool[before:-1] if v.slot not in g.recipes and g.choices.chance(50)])


def _append(g: Growth, op: Any) -> None:
    STRATEGY[op](g, op)
