"""Every pass leaves a program of the form that it promises, finds nothing more to do in it, and says what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from fuzz.generate import DEFAULT
from tenferro_ref import ops
from tenferro_ref.compiler import PASSES
from tenferro_ref.dims import equal_extents
from tenferro_ref.ops import free_axes
from tenferro_ref.program import ExecProgram, to_exec
from tests.laws.cases import generated
from tests.laws.corners import corners

pytestmark = pytest.mark.once


def products(program: ExecProgram) -> Iterator[tuple[int, ops.DotGeneral, Sequence[int]]]:
    for ins in program.instructions:
        if isinstance(ins.op, ops.DotGeneral):
            yield ins.output_slots[0], ins.op, ins.input_slots


def of_matrices(program: ExecProgram) -> None:
    """Products are `[M, K, B...] x [K, N, B...]`, but for several pairs of extents that are not known to be equal."""
    for slot, op, slots in products(program):
        lhs, rhs = (program.slot_types[s].shape for s in slots)
        pairs = list(zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True))
        known = all(equal_extents(lhs[i], rhs[j]) is True for i, j in pairs)
        batch = len(op.lhs_batch_dims)
        m, n = len(lhs) - batch - len(pairs), len(rhs) - batch - len(pairs)
        due = ops.DotGeneral((m,), (0,), tuple(range(m + 1, len(lhs))), tuple(range(n + 1, len(rhs))))
        if pairs and (len(pairs) == 1 or known):
            assert m <= 1, slot
            assert n <= 1, slot
            assert op == due, slot


def untransposed(program: ExecProgram) -> None:
    """No product reads a transpose that keeps the order of its free, contracting and batch axes."""
    transposes = {i.output_slots[0]: i.op.perm for i in program.instructions if isinstance(i.op, ops.Transpose)}
    for slot, op, slots in products(program):
        for source, contracting, batch in (
            (slots[0], op.lhs_contracting_dims, op.lhs_batch_dims),
            (slots[1], op.rhs_contracting_dims, op.rhs_batch_dims),
        ):
            perm = transposes.get(source)
            if perm is not None:
                groups = contracting, batch, free_axes(len(perm), contracting, batch)
                kept = [[perm[a] for a in axes] == sorted(perm[a] for a in axes) for axes in groups]
                assert not all(kept), f"the product in slot {slot} reads a transpose that folds"


def alive(program: ExecProgram) -> None:
    """Every instruction is of use to an output."""
    needed = set(program.output_slots)
    for ins in reversed(program.instructions):
        assert not needed.isdisjoint(ins.output_slots), ins
        needed.update(ins.input_slots)


FORMS: dict[str, Callable[[ExecProgram], None]] = {
    "DotDecomposer": of_matrices,
    "TransposeFolding": untransposed,
    "DeadCodeElimination": alive,
}


@pytest.mark.parametrize("name", PASSES)
def test_passes_leave_the_form_that_they_promise(name: str) -> None:
    for case in (*generated(1, 120, DEFAULT), *(c.case for c in corners())):
        before = to_exec(case.program)
        result = PASSES[name](before)
        result.program.verify()
        assert bool(result.changes) == (result.program.instructions != before.instructions)
        if name != "DotDimensionSorter":  # of a product's two lists of contracting axes only one can be sorted
            assert not PASSES[name](result.program).changes
        if name in FORMS:
            FORMS[name](result.program)
