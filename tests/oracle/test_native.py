"""The native executor as one of those that are compared: what it promises beside numbers, and the ways in which it is run."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, configured
from oracle.peers.layouts import data_of, laid_out, memory_of
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal
from tenferro_ref.ops import TensorType
from tenferro_ref.program import ExecProgram, GraphBuilder
from tenferro_ref.runtime import GraphExecutor, run
from tenferro_ref.runtime import executor as runtime_executor
from tenferro_ref.tensor import Array, Tensor, same_bits
from tests.build import numbered


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (lambda program, arrays: [arrays[0], arrays[0] + 1], "output 0 .* shares memory with an input"),
        (lambda program, arrays: [(y := arrays[0] + 1), y[:]], "output 1 .* shares memory with an input or another"),
        (lambda program, arrays: [np.negative(arrays[0], out=arrays[0]) + 0, arrays[0] + 1], "wrote into input 0"),
    ],
)
def test_a_native_executor_that_breaks_its_promises_has_a_defect(
    monkeypatch: pytest.MonkeyPatch, kept: Callable[[object, list[Array]], list[Array]], words: str
) -> None:
    """Nobody else sees that: the numbers may be right, and what was written is seen by who runs next."""
    monkeypatch.setattr(GraphExecutor, "eval_exec_ir", lambda self, program, arrays: kept(program, arrays))
    b = GraphBuilder()
    x = b.input("F64", (2,))
    case = Case.of(b.build(b.apply(ops.Negate(), x), b.apply(ops.Exp(), x)), [np.array([1.0, 2.0])])
    (result,) = NativeExecutor().run_many([case])
    assert isinstance(result, Internal)
    assert re.search(words, str(result))
    assert case.inputs[0].tolist() == [1.0, 2.0]


def verdict(executor: NativeExecutor, case: Case) -> Verdict:
    return judge(executor, Reference(case, NativeExecutor())).verdict


def a_case(*shapes: tuple[int | str, ...], extent: int = 3) -> Case:
    """Sums, a scalar product and a scaled value of matrices, whose symbolic extents are `extent`."""
    b = GraphBuilder()
    inputs = [b.input("F64", shape) for shape in shapes]
    program = b.build(inputs[0] * 2.0, inputs[0].sum(0), inputs[0].T + inputs[-1].T)
    return Case.of(program, [numbered(*(extent if isinstance(e, str) else e for e in shape)) for shape in shapes])


class TestLayouts:
    @pytest.mark.parametrize("dtype", DType)
    def test_elements_stay_what_they_are_in_every_layout(self, dtype: DType) -> None:
        for shape in ((), (3,), (2, 3), (2, 0), (2, 1, 4)):
            array = numbered(*shape, dtype=dtype)
            for kind in range(16):
                for bits in (bytes([1, 2, 0]), bytes([4, 1, 3])):
                    assert same_bits(laid_out(array, bytes([kind]) + bits), array)

    def test_every_layout_is_there(self) -> None:
        array = numbered(2, 3, 4)
        made = {kind: laid_out(array, bytes([kind, 5, 0, 4])) for kind in range(16)}
        assert made[0].flags.c_contiguous
        assert [made[1].strides[i] < made[1].strides[j] for i, j in ((0, 2), (2, 1))] == [True, True]
        assert min(made[2].strides) < 0
        assert len(memory_of(made[4])) > array.nbytes
        assert not made[8].flags.aligned
        assert 0 in laid_out(np.ones((2, 3)), bytes([0, 2, 0])).strides

    def test_an_executor_that_takes_strides_for_column_major_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def wrong(data: Tensor | Array) -> Array:
            array = Tensor.of(data).data
            return array.ravel("K").reshape(array.shape, order="F")

        monkeypatch.setattr(runtime_executor, "materialize", wrong)
        cases = [a_case((2, i), (2, i)) for i in range(2, 10)]
        assert {verdict(NativeExecutor(), case) for case in cases} == {Verdict.PASS}
        assert Verdict.MISMATCH in {verdict(configured(strided=True), case) for case in cases}

    def test_what_is_written_beside_a_slice_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        evaluate = GraphExecutor.eval_exec_ir

        def wrong(self: GraphExecutor, program: ExecProgram, inputs: list[Array]) -> list[Array]:
            outputs = evaluate(self, program, inputs)
            run._owner(data_of(inputs[0])).reshape(-1)[-1:] = 7
            return outputs

        monkeypatch.setattr(GraphExecutor, "eval_exec_ir", wrong)
        case = Case.of(a_case((2, 2)).program, [np.full((2, 2), 7.0)])
        assert verdict(NativeExecutor(), case) is Verdict.PASS  # that is what was there
        sliced = (
            configured(strided=True).run_many([Case.of(a_case((2, i)).program, [np.full((2, i), 7.0)])])
            for i in range(2, 20)
        )
        assert any("wrote into input 0" in str(result) for (result,) in sliced)


@pytest.mark.parametrize(
    ("fault", "shapes"),
    [("types", [("n", 2), ("n", 2)]), ("program", [(3, 2), (3, 2)])],
)
def test_a_cache_that_takes_one_run_for_another_is_found(
    fault: str, shapes: list[tuple[int | str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = GraphExecutor._plan

    def wrong(self: GraphExecutor, program: ExecProgram, inputs: tuple[TensorType, ...]) -> run.Plan:
        known: dict[object, run.Plan] = self.__dict__.setdefault("known", {})
        return known.setdefault(id(program) if fault == "types" else inputs, plan(self, program, inputs))

    monkeypatch.setattr(GraphExecutor, "_plan", wrong)
    case = a_case(*shapes)
    assert verdict(NativeExecutor(), case) is Verdict.PASS
    assert verdict(configured(warm=True), case).is_disagreement


def test_a_defect_at_other_extents_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = GraphExecutor._plan

    def wrong(self: GraphExecutor, program: ExecProgram, inputs: tuple[TensorType, ...]) -> run.Plan:
        if inputs[0].shape == (4, 2):
            raise KeyError("a type that has no row")
        return plan(self, program, inputs)

    monkeypatch.setattr(GraphExecutor, "_plan", wrong)
    assert verdict(NativeExecutor(), a_case(("n", 2))) is Verdict.PASS
    assert verdict(configured(warm=True), a_case(("n", 2))) is Verdict.ERROR
