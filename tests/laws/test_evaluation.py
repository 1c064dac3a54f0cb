"""How the native executor goes about a program: segments, memory, strides, what it remembers, ways for large tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest

from fuzz.generate import DEFAULT, Config
from fuzz.generate.config import DEFAULT as CONFIG
from fuzz.mutants.programs import under_stablehlo
from oracle.case import Case
from oracle.peers import Execution, NativeExecutor, attempt
from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import Category
from tenferro_ref.program import ExecProgram
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.runtime.backend import NumpyBackend, NumpySession
from tenferro_ref.runtime.fusion import FUSIBLE
from tenferro_ref.runtime.kernels import indexing, run_kernel
from tenferro_ref.runtime.segment import segment_exec_program
from tenferro_ref.tensor import Array, Tensor, column_major
from tests.laws.cases import generated, same
from tests.laws.corners import corners
from tests.laws.strides import others, views

pytestmark = pytest.mark.once


#: Chains of elementwise operations, which are fused.
CHAINS = Config(
    ops=tuple(op for op in CONFIG.ops if op in FUSIBLE or op is ops.BroadcastInDim),
    dtypes=(DType.F64,), min_instructions=4, motifs=False,
)  # fmt: skip


@cache
def programs() -> list[Case]:
    """Programs that the native executor computes."""
    made = generated(6, 64, DEFAULT)
    made[1::4] = [under_stablehlo(case) for case in made[1::4]]
    drawn = (*made, *generated(6, 32, CHAINS), *(c.case for c in corners()))
    return [case for case in drawn if isinstance(attempt(NativeExecutor(), case), Execution)]


def run(case: Case, executor: GraphExecutor | None = None, inputs: Sequence[Array] | None = None) -> Sequence[Array]:
    program = compile_std_to_exec(case.program)
    return (executor or GraphExecutor()).eval_exec_ir(program, case.inputs if inputs is None else inputs)


# --- segments ---------------------------------------------------------------------------------------------------------


def pattern(program: ExecProgram, at: int) -> str:
    """The pattern of a product of broadcasts that stands at an instruction: none of its results is read behind it."""
    for kind, window in (("triplet", (ops.BroadcastInDim,) * 2), ("pair", (ops.BroadcastInDim,))):
        found = program.instructions[at : at + len(window) + 1]
        if [type(ins.op) for ins in found] != [*window, ops.Multiply]:
            continue
        *broadcasts, product = found
        results = tuple(ins.output_slots[0] for ins in broadcasts)
        fits = product.input_slots == results if kind == "triplet" else results[0] in product.input_slots
        behind = {slot for ins in program.instructions[at + len(found) :] for slot in ins.input_slots}
        if fits and behind.isdisjoint((*results, *product.output_slots)):
            return kind
    return ""


def test_segments_are_those_of_the_rules() -> None:
    """SEMANTICS 5."""
    for case in programs():
        program = compile_std_to_exec(case.program, ())
        found, instructions = segment_exec_program(program), program.instructions
        assert [i for s in found for i in s.instructions] == list(range(len(instructions)))
        assert not any(a.kind == b.kind == "fused" for a, b in pairwise(found))
        for segment in found:
            first, behind = segment.instructions[0], segment.instructions[-1] + 1
            inside = [instructions[i] for i in segment.instructions]
            single = {Category.HOST: "host", Category.FFI: "ffi"}.get(inside[0].op.category)
            assert (single or segment.kind) == segment.kind
            assert single is None or len(inside) == 1
            starts = range(first, behind) if segment.kind == "fused" else [first]
            assert {pattern(program, at) for at in starts} == {
                segment.kind if segment.kind in ("pair", "triplet") else ""
            }
            made = [slot for ins in inside for slot in ins.output_slots]
            later = {*program.output_slots, *(slot for ins in instructions[behind:] for slot in ins.input_slots)}
            read = {slot: False for ins in inside for slot in ins.input_slots if slot not in made}
            for ins in inside:
                for slot, last in zip(ins.input_slots, ins.last_use, strict=True):
                    if slot in read:
                        read[slot] |= last
            due = tuple(read), tuple(slot for slot in made if slot in later), tuple(read.values())
            assert (segment.inputs, segment.outputs, segment.last_use) == due


# --- memory -----------------------------------------------------------------------------------------------------------


class Session(NumpySession):
    __slots__ = ("reclaimed",)

    def __init__(self, reclaimed: list[int]) -> None:
        self.reclaimed = reclaimed

    def reclaim_buffer(self, array: Array) -> None:
        self.reclaimed.append(id(array))


class Counting(NumpyBackend):
    """Keeps account of the buffers that the executor gives back."""

    def __init__(self) -> None:
        self.reclaimed: list[int] = []

    def with_backend_session(self) -> NumpySession:
        return Session(self.reclaimed)

    def reclaim_buffer(self, array: Array) -> None:
        self.reclaimed.append(id(array))


def test_every_dead_buffer_is_given_back_and_outputs_are_their_own() -> None:
    for case in programs():
        program, backend = compile_std_to_exec(case.program), Counting()
        given = [a.copy("F") for a in case.inputs]
        outputs = GraphExecutor(backend, checking=False).eval_unsegmented(program, given)
        written = {slot for ins in program.instructions for slot in ins.output_slots}
        read = {slot for ins in program.instructions for slot in ins.input_slots}
        assert len(backend.reclaimed) == len((written & read) - set(program.output_slots))
        for i, a in enumerate(outputs):
            assert a.flags.writeable
            assert not any(np.may_share_memory(a, b) for b in (*given, *outputs[:i]) if a.size and b.size)
        assert all(map(same, given, case.inputs))


# --- strides ----------------------------------------------------------------------------------------------------------


def test_strides_of_inputs_do_not_show() -> None:
    for case in programs()[::2]:
        plain = run(case)
        for tensors in zip(*map(views, case.inputs), strict=True):
            for tensor, x in zip(tensors, case.inputs, strict=True):
                assert same(tensor.materialize(), x)
                assert tensor.materialize().flags.f_contiguous
                assert tensor.same_bits(Tensor(x))
                assert not any(tensor.same_bits(other) for other in others(x))
            outputs = run(case, inputs=tensors)
            assert all(map(same, plain, outputs))
            assert all(a.flags.f_contiguous for a in outputs)


def test_kernels_give_dense_column_major_arrays() -> None:
    for case in programs():
        values = dict(zip(case.program.input_slots, case.inputs, strict=True))
        for ins in case.program.instructions:
            if isinstance(ins.op, ops.Extension):
                break
            results = run_kernel(ins.op, case.program.policy, *(values[slot] for slot in ins.input_slots))
            for slot, array in zip(ins.output_slots, results, strict=True):
                assert array.flags.f_contiguous, ins.op
                assert array.size != 1 or {array.itemsize}.issuperset(array.strides), ins.op
                values[slot] = column_major(array)


# --- what executors remember ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"fusion_threshold": 0}], ids=["usual", "fused"])
def test_an_executor_that_has_run_on_other_extents_gives_the_same(settings: dict[str, int]) -> None:
    symbolic = generated(8, 48, replace(DEFAULT, symbolic=100)) + [c.case for c in corners()]
    symbolic = [case for case in symbolic if not all(t.is_static for t in case.program.input_types)]
    assert len(symbolic) > 30
    for case in symbolic:
        before: Sequence[Array] = [
            x[tuple(slice(None) if isinstance(extent, int) else slice(1) for extent in t.shape)]
            for x, t in zip(case.inputs, case.program.input_types, strict=True)
        ]
        now: Sequence[Array] = case.inputs
        used = GraphExecutor(**settings)
        for _ in range(2):  # then on what it gave, where that is something to run on
            try:
                run(case, used, before)
                due = run(case, inputs=now)
            except TenferroError:
                break
            outputs = run(case, used, now)
            assert all(map(same, outputs, due)), case.program
            before, now = now, outputs


# --- what is for large tensors, on small ones -------------------------------------------------------------------------

#: Elements of a block of a fused run, and of a window of Scatter that is added by itself.
FEW = 5


def test_small_blocks_give_what_large_ones_give() -> None:
    for case in programs():
        with mock.patch.object(indexing, "_LARGE_WINDOW", FEW):
            blocks = run(case, GraphExecutor(NumpyBackend(FEW), checking=True, fusion_threshold=0))
        assert all(map(same, blocks, run(case))), case.program
