"""What the engine promises beside numbers is checked: each promise, broken by hand, is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, configured, native
from oracle.peers.forms import with_symbols
from oracle.peers.layouts import filed, viewed
from oracle.peers.promises import check_refusals
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal, UsageError
from tenferro_ref.extensions.einsum import einsum
from tenferro_ref.extensions.family import Family
from tenferro_ref.ops import Policy, TensorType
from tenferro_ref.program import ExecProgram, GraphBuilder, GraphProgram, Program, records, to_exec
from tenferro_ref.program.guards import ShapeGuard
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import Array, same_bits
from tests.build import numbered


def doubled(*shape: int) -> Case:
    b = GraphBuilder()
    return Case.of(b.build(b.input("F64", shape) * 2.0), [numbered(*shape)])


def guarded() -> Case:
    """A product of matrices whose shared extent is two symbols, so that a guard says that they are equal."""
    b = GraphBuilder("product")
    x, y = b.input("F64", ("n", "m")), b.input("F64", ("k", "n"))
    return Case.of(b.build(einsum("ij,jk->ik", x, y) + 1.0), [numbered(2, 3), numbered(3, 2)])


def observed(executor: NativeExecutor, case: Case) -> str:
    """The reason of the verdict; "" for a pass."""
    answer = judge(executor, Reference(case, NativeExecutor()))
    return "" if answer.verdict is Verdict.PASS else answer.reason


@pytest.mark.parametrize(
    ("shape", "fault", "words"),
    [
        ((2, 3), lambda a: np.ascontiguousarray(a), "no column-major array"),
        ((2, 3), lambda a: np.broadcast_to(a[:1], a.shape).copy(order="F").view(_ReadOnly), "not F64"),
        ((), lambda a: a[()], "not F64"),
        ((2, 3), lambda a: a.astype(np.float32), "not F64"),
        ((2, 3), lambda a: a[:, :2].copy(order="F"), "not F64"),
    ],
)
def test_an_output_that_is_not_as_promised_is_found(
    shape: tuple[int, ...], fault: Callable[[Array], Array], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = GraphExecutor.eval_exec_ir
    monkeypatch.setattr(
        GraphExecutor, "eval_exec_ir", lambda self, program, inputs: [fault(a) for a in evaluate(self, program, inputs)]
    )
    (result,) = NativeExecutor().run_many([doubled(*shape)])
    assert isinstance(result, Internal)
    assert words in str(result)


class _ReadOnly(np.ndarray):  # type: ignore[type-arg]
    """An array of another class."""


def test_an_output_that_cannot_be_written_to_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = GraphExecutor.eval_exec_ir

    def wrong(self: GraphExecutor, program: ExecProgram, inputs: Sequence[Array]) -> list[Array]:
        outputs = evaluate(self, program, inputs)
        outputs[0].flags.writeable = False
        return outputs

    monkeypatch.setattr(GraphExecutor, "eval_exec_ir", wrong)
    (result,) = NativeExecutor().run_many([doubled(2)])
    assert isinstance(result, Internal)


@pytest.mark.parametrize("same", [True, False])
def test_a_second_run_that_differs_or_changes_the_first_is_found(same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate, kept = GraphExecutor.eval_exec_ir, list[Array]()

    def wrong(self: GraphExecutor, program: ExecProgram, inputs: Sequence[Array]) -> list[Array]:
        (output,) = evaluate(self, program, inputs)
        if kept and same:
            kept[0][...] = 0
        elif kept:
            output = output + 1
        kept.append(output)
        return [output]

    monkeypatch.setattr(GraphExecutor, "eval_exec_ir", wrong)
    (once,) = NativeExecutor().run_many([doubled(2)])
    assert not isinstance(once, Internal)
    kept.clear()
    (twice,) = configured(twice=True).run_many([doubled(2)])
    assert isinstance(twice, Internal)
    assert ("changed" if same else "other bits") in str(twice)


def test_inputs_that_do_not_fit_are_refused_and_disturb_nothing() -> None:
    for case in (doubled(), doubled(2, 3), guarded()):
        assert observed(configured(warm=True), case) == ""


@pytest.mark.parametrize("case", [doubled(2, 3), guarded()], ids=["static", "guarded"])
def test_what_is_not_refused_is_found(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "check_inputs", lambda self, types: None)
    assert observed(NativeExecutor(), case) == ""
    assert observed(configured(warm=True), case)


def test_a_guard_that_is_not_checked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShapeGuard, "check", lambda self, shapes: None)
    assert "ShapeMismatch" in observed(configured(warm=True), guarded())


def test_a_guard_that_is_not_stated_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = guarded()
    monkeypatch.setattr(Family, "equal_extents", lambda self, op, operands: ())
    assert not to_exec(case.program).shape_guards
    assert "which an extension does not take" in observed(configured(warm=True), case)


@pytest.mark.parametrize("dead", [False, True])
def test_a_guard_that_a_pass_loses_is_found(dead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = native.compiled

    def losing(program: GraphProgram, passes: tuple[str, ...]) -> ExecProgram:
        made = compiled(program, passes)
        return made if dead and made.instructions else replace(made, shape_guards=())

    case = guarded()
    assert observed(configured(warm=True), case) == ""
    monkeypatch.setattr(native, "compiled", losing)
    words = "does not refuse" if dead else "with ShapeMismatch"
    assert words in observed(configured(warm=True), case)


def test_another_error_than_the_documented_one_is_found() -> None:
    def evaluate(program: ExecProgram, inputs: object) -> list[Array]:
        raise UsageError(detail="no")

    program = to_exec(doubled(2).program)
    with pytest.raises(Internal, match="refuses one input less with UsageError"):
        check_refusals(evaluate, program, doubled(2).inputs, program)


@pytest.mark.parametrize("form", ["exec-json", "exec-text"])
def test_a_compiled_program_is_what_is_read_of_it(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert observed(configured(form=form), guarded()) == ""
    read = records.GuardRecord.guard
    monkeypatch.setattr(records.GuardRecord, "guard", lambda self: replace(read(self), family="another"))
    assert "another program" in observed(configured(form=form), guarded())


def test_a_program_at_its_sizes_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert observed(configured(sized=True), guarded()) == ""
    at_sizes = Program.at_sizes
    monkeypatch.setattr(
        Program, "at_sizes", lambda self, sizes: at_sizes(self, {name: n + 1 for name, n in sizes.items()})
    )
    assert observed(configured(sized=True), guarded())
    assert observed(configured(sized=True), doubled(2)) == ""


def test_a_program_with_symbols_of_its_own_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (3,))
    case = Case.of(b.build(einsum("ij,j->i", x, y), x * x.reshape(2, 3)), [numbered(2, 3), numbered(3)])
    opened = with_symbols(case.program)
    assert [str(t) for t in opened.input_types] == ["F64[in0.0, in0.1]", "F64[in1.0]"]
    assert len(to_exec(opened).shape_guards) == 1
    assert observed(configured(symbolic=True), case) == ""

    def refuse(self: ShapeGuard, shapes: object) -> None:
        raise self._violation(2, 3)

    monkeypatch.setattr(ShapeGuard, "check", refuse)
    assert "must be equal" in observed(configured(symbolic=True), case)


@pytest.mark.parametrize("dtype", DType)
def test_inputs_are_the_same_as_views_and_from_files(dtype: DType) -> None:
    for shape in ((), (3,), (2, 0), (2, 3, 4)):
        array = numbered(*shape, dtype=dtype)
        for draw in range(8):
            assert same_bits(viewed(array, draw).data, array)
        (read,) = filed(Case.of(doubled(2).program, [array]))
        assert same_bits(read, array)


def test_a_rule_that_says_another_extent_of_symbols_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ops.PadToMatch.infer

    def infer(op: ops.PadToMatch, policy: Policy, *inputs: TensorType) -> TensorType:
        return rule(op, policy, *inputs) if all(x.is_static for x in inputs) else inputs[0]

    monkeypatch.setattr(ops.PadToMatch, "infer", infer)
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", ("m",))
    program = b.build(b.apply(ops.PadToMatch(0), x, y).sum((0,)))
    NativeExecutor().run(Case.of(program, [numbered(3), numbered(2)]))
    with pytest.raises(Internal, match=r"PadToMatch gives F64\[3\] for these inputs, where its rule says F64\[in0.0\]"):
        NativeExecutor().run(Case.of(program, [numbered(2), numbered(3)]))
