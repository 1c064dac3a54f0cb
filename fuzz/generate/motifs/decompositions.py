"""Motifs of decompositions: matrices that can be factored whatever the draw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fuzz.generate.describe import has_path
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.motifs.table import Found, motif
from fuzz.generate.values.recipes import Recipe
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT
from tenferro_ref.extensions import linalg

#: Ops with the operands that they take beside a matrix; those that StableHLO has come first and more often.
_LINALG: tuple[tuple[str, bool], ...] = (
    ("Cholesky", False), ("TriangularSolve", True), ("Cholesky", False), ("TriangularSolve", True), ("Solve", True),
    ("Qr", False), ("Svd", False), ("SvdVals", False), ("Eigh", False), ("EighVals", False), ("Lu", False),
)  # fmt: skip


def decomposed(g: Growth, names: Sequence[tuple[str, bool]] = _LINALG, hard: bool = False) -> None:
    """A matrix that can be factored whatever the draw: X X^H + n I, and what is solved with it.

    `hard`: complex numbers, with a solve from the right; above the diagonal something else, which must not be read.
    """
    choices = g.choices
    factored = [d for d in g.config.dtypes if d in INEXACT and (d.is_complex or not hard)]
    if g.max_rank < 3 or not factored:
        return
    dtype = g.dtype(factored)
    n = 1 + hard + choices.pick(4 - hard)
    batch = choices.choose(((), (), (2,), (1,), (2, 3), (3, 2)) if g.max_rank > 3 else ((), (), (2,), (1,)))
    x = g.fresh(dtype, (n, 1 + choices.pick(4), *batch), Recipe("unit", choices.integer(2)))
    axes = tuple(range(2, 2 + len(batch)))
    gram = g.apply(ops.DotGeneral((1,), (1,), axes, axes), x, g.apply(ops.Conj(), x) if dtype.is_complex else x)
    ones = g.apply(ops.BroadcastInDim((n, *batch), ()), g.apply(ops.Constant.of(n, dtype), estimate=Estimate(True, 2)))
    matrix = g.apply(ops.Add(), gram, g.apply(ops.EmbedDiag(0, 1), ones), estimate=Estimate(False, 4))
    name, solves = choices.choose(names[:4] if g.portable else names)
    if hard and not solves:
        above = g.apply(ops.Triu(1), g.fresh(dtype, (n, n, *batch), Recipe("ordinary", choices.integer(2))))
        matrix = g.apply(ops.Add(), matrix, above, estimate=Estimate(False, 4))
    right = name == "TriangularSolve" and (hard or choices.chance(50))
    config = {"lower": choices.chance(50), "left_side": not right} if name == "TriangularSolve" else {}
    sides = (1 + choices.pick(3), n) if right else (n, 1 + choices.pick(3))
    rest = [g.fresh(dtype, (*sides, *batch), Recipe("ordinary", choices.integer(2)))] if solves else []
    g.apply_many(ops.Extension.of(linalg.FAMILY, name, config), matrix, *rest, estimate=Estimate(False, 4))


def _has_linalg(name: str, hard: bool) -> Found:
    """Finds an op of the family, on complex numbers and in the way of `decomposed` if it is hard."""

    def found(case: Case) -> bool:
        program = case.program
        return any(
            isinstance(ins.op, ops.Extension)
            and (not name or ins.op.op == name)
            and (not hard or program.slot_types[ins.input_slots[0]].dtype.is_complex)
            and (not hard or name != "TriangularSolve" or not linalg.config_of(ins.op)["left_side"])
            and (not hard or name == "TriangularSolve" or has_path(program, ("Triu", "Add", "Extension")))
            for ins in program.instructions
        )

    return found


_DECOMPOSED = (ops.Extension, ops.DotGeneral, ops.Conj, ops.Add, ops.EmbedDiag, ops.BroadcastInDim, ops.Constant)
motif(7, 1.5, _has_linalg("", False), *_DECOMPOSED)(decomposed)
for _name, _solves in (("Cholesky", False), ("TriangularSolve", True), ("Eigh", False)):
    _grow = partial(decomposed, names=((_name, _solves),), hard=True)
    motif(9, 0.3, _has_linalg(_name, True), *_DECOMPOSED, ops.Triu, name=f"complex {_name}")(_grow)
