"""Programs as a whole: SSA, slots, recorded metadata, last_use, inputs (SEMANTICS 4.4, 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings

from tenferro_ref import ops
from tenferro_ref.dims import InputDim, UpperBound
from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, InvalidCompiledGraph, RankMismatch, ShapeMismatch, TenferroError
from tenferro_ref.ops import Policy, TensorType
from tenferro_ref.program import (
    ExecProgram,
    GraphBuilder,
    GraphProgram,
    Instruction,
    infer_types,
    last_use,
    to_exec,
)
from tests.program.samples import every_op, programs, symbolic

F64 = DType.F64


def t(*shape: int) -> TensorType:
    return TensorType(F64, shape)


def diamond() -> ExecProgram:
    """%2 = -%0; %3 = %2 + %2; %4 = %3 + %1; outputs %4, %0."""
    b = GraphBuilder("diamond")
    x, y = b.input(F64, (2,)), b.input(F64, (2,))
    z = -x
    return to_exec(b.build((z + z) + y, x))


def change(i: int, **fields: object) -> Callable[[ExecProgram], ExecProgram]:
    """Edit: instruction i with other fields."""

    def edit(p: ExecProgram) -> ExecProgram:
        instructions = list(p.instructions)
        instructions[i] = replace(instructions[i], **fields)  # type: ignore[arg-type]
        return replace(p, instructions=tuple(instructions))

    return edit


BROKEN: list[tuple[Callable[[ExecProgram], ExecProgram], type[TenferroError], str]] = [
    (lambda p: replace(p, n_slots=4), InvalidCompiledGraph, "slot 4 out of range"),
    (lambda p: replace(p, n_slots=-1), InvalidCompiledGraph, "n_slots is -1"),
    (lambda p: replace(p, n_slots=2**50), InvalidCompiledGraph, "n_slots"),
    (lambda p: replace(p, output_slots=(4, 9)), InvalidCompiledGraph, "output 1: slot 9 out of range"),
    (lambda p: replace(p, output_slots=(-1,)), InvalidCompiledGraph, "slot -1 out of range"),
    (lambda p: replace(p, n_slots=6, output_slots=(5,)), InvalidCompiledGraph, "output 0: slot 5 is never written"),
    (lambda p: replace(p, input_slots=(0, 0)), InvalidCompiledGraph, "input 1: slot 0 is written twice"),
    (lambda p: replace(p, input_slots=(0,)), InvalidCompiledGraph, "every input slot needs a type"),
    (lambda p: replace(p, instructions=p.instructions[::-1]), InvalidCompiledGraph, "read before it is written"),
    (lambda p: replace(p, instructions=p.instructions[1:]), InvalidCompiledGraph, "slot 2 is read before"),
    (lambda p: replace(p, instructions=p.instructions[:1] * 2), InvalidCompiledGraph, "slot 2 is written twice"),
    (change(1, input_slots=(2, 7)), InvalidCompiledGraph, "slot 7 out of range"),
    (change(1, input_slots=(3, 2)), InvalidCompiledGraph, "slot 3 is read before it is written"),
    (change(1, input_slots=(2,), last_use=(True,)), InvalidCompiledGraph, "expected 2 inputs, got 1"),
    (change(1, output_slots=(1,)), InvalidCompiledGraph, "slot 1 is written twice"),
    (change(0, op=ops.Transpose((1, 0))), RankMismatch, "Transpose"),
    (change(0, types=()), InvalidCompiledGraph, "0 types for 1 outputs"),
    (change(0, types=(t(2), t(2))), InvalidCompiledGraph, "2 types for 1 outputs"),
    (change(0, output_slots=()), InvalidCompiledGraph, "expected 1 outputs, got 0"),
    (change(0, last_use=()), InvalidCompiledGraph, "0 last_use flags for 1 inputs"),
    (change(0, types=(t(3),)), InvalidCompiledGraph, "recorded as F64[3], its rule gives F64[2]"),
    (change(0, types=(TensorType(DType.F32, (2,)),)), InvalidCompiledGraph, "recorded as F32[2]"),
    (change(0, types=(TensorType(F64, (UpperBound(2),)),)), InvalidCompiledGraph, "recorded as F64[<=2]"),
    (
        change(0, last_use=(True,)),
        InvalidCompiledGraph,
        "last_use is [True], liveness gives [False]",
    ),  # %0 is an output
    (change(1, last_use=(True, False)), InvalidCompiledGraph, "liveness gives [True, True]"),
    (change(1, last_use=(False, False)), InvalidCompiledGraph, "liveness gives [True, True]"),
    (change(2, last_use=(True, False)), InvalidCompiledGraph, "liveness gives [True, True]"),
]


def test_a_compiled_program_verifies() -> None:
    diamond().verify()
    to_exec(every_op()).verify()
    to_exec(symbolic()).verify()


@pytest.mark.parametrize(("edit", "kind", "words"), BROKEN, ids=lambda v: v if isinstance(v, str) else "")
def test_verify_catches(edit: Callable[[ExecProgram], ExecProgram], kind: type[TenferroError], words: str) -> None:
    with pytest.raises(kind) as caught:
        edit(diamond()).verify()
    assert words in str(caught.value)


#: Objects of other types than a program is declared with, and what is said of them.
FOREIGN: list[tuple[Callable[[ExecProgram], ExecProgram], str, str]] = [
    (lambda p: replace(p, n_slots=5.0), "$", "Program.n_slots: 5.0 is not an int"),
    (lambda p: replace(p, input_slots=[0, 1]), "$", "Program.input_slots: [0, 1] is not a tuple of ints"),
    (lambda p: replace(p, output_slots=(4, "0")), "$", "Program.output_slots: (4, '0') is not a tuple of ints"),
    (lambda p: replace(p, instructions=(*p.instructions[:1], 3)), "$", "is not a tuple of Instructions"),
    (lambda p: replace(p, input_types=("F64[2]", t(2))), "$", "is not a tuple of TensorTypes"),
    (lambda p: replace(p, input_types=(TensorType("F64", (2,)), t(2))), "$.inputs[0]", "TensorType.dtype: 'F64' is not a DType"),
    (lambda p: replace(p, input_types=(t(2), TensorType(F64, [2]))), "$.inputs[1]", "TensorType.shape: [2] is not a tuple of"),
    (lambda p: replace(p, policy="engine"), "$", "Program.policy: 'engine' is not a Policy"),
    (lambda p: replace(p, kind="other"), "$", "Program.kind: 'other' is not 'graph' or 'exec'"),
    (lambda p: replace(p, name=None), "$", "Program.name: None is not a str"),
    (lambda p: replace(p, symbols=((InputDim(0, 0), "k"), (InputDim(1, 0), "k"))), "$", "each needs a name of its own"),
    (lambda p: replace(p, symbols=((InputDim(0, 0), "5"),)), "$", "an identifier"),
    (lambda p: replace(p, symbols=("n",)), "$", "Program.symbols: ('n',) is not a tuple of pairs"),
    (lambda p: replace(p, shape_guards=((1, 2),)), "$", "is not a tuple of ShapeGuards"),
    (change(1, op="Add"), "$.instructions[1]", "Instruction.op: 'Add' is not an Op"),
    (change(1, op=ops.Add), "$.instructions[1]", "is not an Op"),
    (change(0, input_slots=(True,)), "$.instructions[0]", "Instruction.input_slots: (True,) is not a tuple of ints"),
    (change(0, output_slots=2), "$.instructions[0]", "Instruction.output_slots: 2 is not a tuple of ints"),
    (change(0, last_use=(1,)), "$.instructions[0]", "Instruction.last_use: (1,) is not a tuple of bools"),
    (change(2, types=(None,)), "$.instructions[2]", "is not a tuple of TensorTypes"),
    (change(2, types=(TensorType(F64, (2.0,)),)), "$.instructions[2]", "TensorType.shape: (2.0,) is not a tuple of"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "place", "words"), FOREIGN, ids=lambda v: v if isinstance(v, str) else "")
def test_verify_refuses_objects_of_other_types(
    edit: Callable[[ExecProgram], ExecProgram], place: str, words: str
) -> None:
    with pytest.raises(InvalidCompiledGraph) as caught:
        edit(diamond()).verify()
    assert words in str(caught.value)
    assert caught.value.place == place


@pytest.mark.parametrize("name", [field.name for field in fields(Policy)])
@pytest.mark.parametrize("choice", ["other", None, True])
def test_a_policy_has_no_choice_that_there_is_not(name: str, choice: object) -> None:
    with pytest.raises(InvalidArgument, match=f"Policy: {name}: {choice!r} is none of '"):
        Policy(**{name: choice})  # type: ignore[arg-type]


def test_an_upgraded_bound_does_not_verify() -> None:
    program = to_exec(symbolic())
    index = next(i for i, ins in enumerate(program.instructions) if ins.op.name == "DynamicTruncate")
    (type_,) = program.instructions[index].types
    exact = type_.with_shape(e.expr if isinstance(e, UpperBound) else e for e in type_.shape)
    with pytest.raises(InvalidCompiledGraph, match="recorded as"):
        change(index, types=(exact,))(program).verify()


@settings(max_examples=50)
@given(programs())
def test_to_exec_and_back(graph: GraphProgram) -> None:
    program = to_exec(graph)
    program.verify()
    assert program.to_graph() == graph
    assert program.slot_types == graph.slot_types == infer_types(graph)
    assert program.output_types == graph.output_types
    _check_last_use(program)


def _check_last_use(program: ExecProgram) -> None:
    """By the definition: not an output, and not read by a later instruction."""
    for i, ins in enumerate(program.instructions):
        later = {s for other in program.instructions[i + 1 :] for s in other.input_slots}
        kept = later | set(program.output_slots)
        assert ins.last_use == tuple(slot not in kept for slot in ins.input_slots)


def test_last_use_of_duplicates_and_outputs() -> None:
    assert last_use(diamond()) == ((False,), (True, True), (True, True))
    assert diamond().producers == {2: 0, 3: 1, 4: 2}
    assert diamond().last_read == {0: 0, 2: 1, 3: 2, 1: 2}


def test_a_rule_error_says_where_in_the_program() -> None:
    program = GraphProgram((Instruction(ops.Add(), (0, 1), (2,)),), (0, 1), (t(2), t(3)), (2,), 3)
    with pytest.raises(ShapeMismatch) as caught:
        infer_types(program)
    assert caught.value.place == "$.instructions[0]"
    assert (caught.value.op, caught.value.kind) == ("Add", "ShapeMismatch")


# --- concrete inputs --------------------------------------------------------------------------------------------------


def _symbols() -> GraphProgram:
    b = GraphBuilder()
    x, _ = b.input(F64, ("n", 3)), b.input(F64, ("n",))
    return b.build(x)


def test_inputs_that_fit() -> None:
    _symbols().check_inputs([t(5, 3), t(5)])
    _symbols().check_inputs([t(0, 3), t(0)])
    diamond().check_inputs([t(2), t(2)])


@pytest.mark.parametrize(
    ("types", "kind", "words"),
    [
        ([t(5, 3)], InvalidCompiledGraph, "expected 2 inputs, got 1"),
        ([t(5, 3), t(5), t(1)], InvalidCompiledGraph, "expected 2 inputs, got 3"),
        ([TensorType(DType.F32, (5, 3)), t(5)], InvalidCompiledGraph, "input 0 is F32[5, 3]"),
        ([t(5, 4), t(5)], ShapeMismatch, "program input 0"),
        ([t(5, 3), t(6)], ShapeMismatch, "program input 1"),
        ([t(5, 3), t(5, 1)], ShapeMismatch, "program input 1"),
        ([t(3), t(5)], ShapeMismatch, "program input 0"),
        ([TensorType(F64, (InputDim(0, 0), 3)), t(5)], InvalidCompiledGraph, "not concrete"),
    ],
)
def test_inputs_that_do_not_fit(types: list[TensorType], kind: type[TenferroError], words: str) -> None:
    with pytest.raises(kind) as caught:
        _symbols().check_inputs(types)
    assert words in str(caught.value)
