"""Every pass leaves a program of the form that it promises, finds nothing more to do in it, and says what it did.

A program has one normal form, however it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from fuzz.generate import DEFAULT
from oracle.case import Case
from oracle.peers import Execution, NativeExecutor, attempt
from tenferro_ref import ops
from tenferro_ref.compiler import PASSES
from tenferro_ref.compiler.dead_code_elimination import dead_code_elimination
from tenferro_ref.dims import equal_extents
from tenferro_ref.dtype import DType
from tenferro_ref.ops import free_axes
from tenferro_ref.program import ExecProgram, GraphProgram, Instruction, normal_form, to_exec
from tests.laws.cases import generated, same
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
        due = (m,), (0,), tuple(range(m + 1, len(lhs))), tuple(range(n + 1, len(rhs)))
        if pairs and (len(pairs) == 1 or known):
            assert m <= 1, slot
            assert n <= 1, slot
            lists = op.lhs_contracting_dims, op.rhs_contracting_dims, op.lhs_batch_dims, op.rhs_batch_dims
            assert lists == due, slot


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


#: What they leave to do is for the next time.
ONE_SWEEP = ("DotDimensionSorter", "AlgebraicLayoutSimplifier", "DotConjFolding")


@pytest.mark.parametrize("name", PASSES)
def test_passes_leave_the_form_that_they_promise(name: str) -> None:
    for case in (*generated(1, 120, DEFAULT), *(c.case for c in corners())):
        before = to_exec(case.program)
        result = PASSES[name](before)
        result.program.verify()
        assert bool(result.changes) == (result.program.instructions != before.instructions)
        if name not in ONE_SWEEP:  # of a product's two lists of contracting axes only one can be sorted
            assert not PASSES[name](result.program).changes
        if name in FORMS:
            FORMS[name](result.program)


def scrambled(program: GraphProgram, random: Random) -> GraphProgram:
    """The same flow of data under other numbers and another name, in another order, with an instruction that nothing reads."""
    numbers = random.sample(range(program.n_slots + 5), program.n_slots + 1)
    dead = Instruction(ops.Constant.of(1, DType.F64), (), (program.n_slots,))
    waiting, known, order = [*program.instructions, dead], set(program.input_slots), []
    while waiting:
        ins = random.choice([ins for ins in waiting if known.issuperset(ins.input_slots)])
        waiting.remove(ins)
        known.update(ins.output_slots)
        order.append(ins)

    def renumbered(slots: Sequence[int]) -> tuple[int, ...]:
        return tuple(numbers[slot] for slot in slots)

    return replace(
        program,
        instructions=tuple(Instruction(i.op, renumbered(i.input_slots), renumbered(i.output_slots)) for i in order),
        input_slots=renumbered(program.input_slots),
        output_slots=renumbered(program.output_slots),
        n_slots=program.n_slots + 5,
        name=f"{program.name} scrambled",
        symbols=tuple((extent, f"{name}_") for extent, name in program.symbols),
    )


def test_a_program_has_one_normal_form() -> None:
    """Which computes the same, bit for bit."""
    for number, case in enumerate(generated(1, 120, DEFAULT)):
        if case.refusal is not None:
            continue
        form = normal_form(case.program)
        for again in (form, to_exec(case.program), scrambled(case.program, Random(number))):
            assert normal_form(again) == form
        alive(form)
        assert len(form.instructions) == len(dead_code_elimination(to_exec(case.program)).program.instructions)
        want, got = (attempt(NativeExecutor(), Case(program, case.inputs)) for program in (case.program, form))
        if isinstance(want, Execution):
            assert isinstance(got, Execution)
            assert all(map(same, got.outputs, want.outputs))
