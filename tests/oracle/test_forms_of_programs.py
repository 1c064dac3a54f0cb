"""Forms of a program give its bits, and a front end or a normal form that errs is seen in programs that are generated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from string import ascii_letters
from typing import Any

import numpy as np
import pytest

from fuzz.generate import Config
from fuzz.generate.batches import generate
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool, configured, forms, front_end
from oracle.peers.forms import EXEC_FORMS, FORMS
from oracle.peers.front_end import WORDS
from oracle.verdict import Verdict
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dims import Extent, InputDim
from tenferro_ref.errors import Internal, ShapeMismatch
from tenferro_ref.extensions import einsum as einsum_family
from tenferro_ref.extensions import equations, fft, linalg
from tenferro_ref.ops import OPS, STABLEHLO
from tenferro_ref.program import GraphBuilder, GraphProgram, Program, Value, loads, slicing, to_exec, value
from tests.build import numbered

pytestmark = pytest.mark.once


#: Programs with an op of an extension family each, or nearly.
FAMILIES = Config(weights=(("Extension", 25.0),), linalg=30, symbolic=30)


@pytest.mark.parametrize("form", ["normal", "values"])
def test_forms_give_the_bits_of_the_program(form: str) -> None:
    executor, programs = configured(form=form), 0
    for case in generate(11, 0, 220):
        answer = judge(executor, Reference(case, NativeExecutor()))
        assert not answer.verdict.is_disagreement, (case.fingerprint, answer.reason)
        programs += executor.bit_exact(case)
    assert programs > 150  # passes move roundings of the others


@pytest.mark.parametrize("form", [FORMS["json"], lambda program: EXEC_FORMS["exec-json"](to_exec(program))])
def test_a_reader_that_infers_another_number_of_slots_is_seen(
    form: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str) -> Program:
        program = loads(text)
        return program if "n_slots" in json.loads(text) else replace(program, n_slots=program.n_slots + 1)

    program = generate(11, 0, 1)[0].program
    form(program)
    monkeypatch.setattr(forms, "loads", read)
    with pytest.raises(Internal, match="another program"):
        form(program)


def test_an_integer_less_an_extent_is_written_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder()
    x, y = b.input("F64", ("n",)), b.input("F64", ())
    case = Case.of(b.build(y.broadcast_to((5 - x.shape[0],), like=(x,))), [np.ones(2), np.array(7.0)])
    executor = configured(form="values")
    assert judge(executor, Reference(case, NativeExecutor())).verdict is Verdict.PASS
    monkeypatch.setattr(InputDim, "__rsub__", lambda extent, integer: extent - integer)
    assert judge(executor, Reference(case, NativeExecutor())).verdict.is_disagreement


@pytest.mark.parametrize("slot", range(20))
def test_an_output_whose_extent_is_a_long_expression_is_given_as_it_is(slot: int) -> None:
    b = GraphBuilder()
    x, *others = (b.input("F64", (f"n{i}",)) for i in range(100 + slot))
    for other in others:
        x = x * other  # max(max(n0, n1), n2), ...
    assert FORMS["values"](b.build(x)).output_slots


def test_most_instructions_have_words(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    for op in [op for op in OPS if op in WORDS]:
        row = WORDS[op]

        def watched(*args: Any, row: Callable[..., Value | None] = row) -> Value | None:
            written = row(*args)
            made.append(written is not None)
            return written

        monkeypatch.setitem(WORDS._rows, op, watched)
    cases = generate(12, 0, 100)
    for case in cases:
        FORMS["values"](case.program)
    assert sum(made) > 0.8 * sum(len(case.program.instructions) for case in cases)


def _off_by_one(axis: int, extent: int, entry: int | slice) -> range:
    positions = _POSITIONS(axis, extent, entry)
    return positions[:-1] if positions.step < 0 and len(positions) > 1 else positions


_POSITIONS = slicing._positions


def _reverse_last(chain: slicing._Chain, axis: int, start: int) -> None:
    chain.window(axis, start + 1, slicing.InputDim(0, axis))


def _dropped_first(chain: slicing._Chain, axis: int, entry: slice) -> None:
    if entry.step == -1:
        chain.apply(ops.Reverse((axis,)))
        return
    if entry.start is not None:
        chain.drop_until(axis, entry.start)
    if entry.stop is not None:
        chain.keep_until(axis, entry.stop)


def _from_the_left(value_: Value, sources: Sequence[tuple[Extent, Value]], trailing: int) -> Value:
    """A broadcast that takes a symbolic extent from an axis that is counted from the left."""
    rank = len(sources) + trailing
    if any(not isinstance(extent, int) and source.ndim < rank for extent, source in sources if source is not value_):
        raise ShapeMismatch(op="BroadcastInDim", lhs=value_.shape, rhs=())
    return _STRETCH(value_, sources, trailing)


_STRETCH, _DIAGONAL = value._stretch, tn.diagonal


def _shifted(x: Value, source: int, destination: int) -> Value:
    order = [i for i in range(x.ndim) if i != source % x.ndim]
    order.insert(max(destination % x.ndim - 1, 0), source % x.ndim)
    return x.transpose(order)


@pytest.fixture(scope="module")
def usual() -> list[Reference]:
    """Programs with what is due of them; the generator does not use the front end."""
    references = [Reference(case, NativeExecutor()) for case in generate(13, 0, 400)]
    assert all(not judge(NativeExecutor(), r).verdict.is_disagreement for r in references)
    return references


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (slicing, "_positions", _off_by_one),
        (slicing._Chain, "drop_until", _reverse_last),
        (slicing, "_symbolic_slice", _dropped_first),
        (value, "_stretch", _from_the_left),
        (value.Value, "__rsub__", value.Value.__sub__),
        (value.Value, "__or__", value.Value.__and__),
        (tn, "moveaxis", _shifted),
        (tn, "tril", tn.triu),
        (value, "_stretch", lambda value, sources, trailing: value),
        (tn, "mean", lambda x, axis, keepdims=False: x.sum(axis) / 2),
        (tn, "diagonal", lambda x, offset=0, *axes: _DIAGONAL(x, abs(offset), *axes)),
    ],
)
def test_a_front_end_that_errs_is_found(
    module: Any, name: str, fault: Callable[..., Any], usual: list[Reference], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fault)
    executor = configured(form="values")
    assert any(judge(executor, r).verdict.is_disagreement for r in usual)


@pytest.fixture(scope="module")
def families() -> list[Reference]:
    """Programs that give the same in words, with what is due of them."""
    references = [Reference(case, NativeExecutor()) for case in generate(15, 0, 600, FAMILIES)]
    for reference in references:
        answer = judge(configured(form="values"), reference)
        assert not answer.verdict.is_disagreement, (reference.case.fingerprint, answer.reason)
    return references


def _at_the_left(equation: str, shapes: Sequence[Sequence[Extent]]) -> tuple[str, list[list[Extent]]]:
    """An ellipsis whose axes are aligned at the left."""
    widest = max(
        len(shape) - len(term.replace("...", "")) for term, shape in zip(_terms(equation), shapes, strict=True)
    )
    turned = "".join(label for label in ascii_letters if label not in equation)[:widest]
    text, filled = _RESOLVED(equation, shapes)
    for i, (term, shape) in enumerate(zip(_terms(equation), shapes, strict=True)):
        width = len(shape) - len(term.replace("...", ""))
        if width < widest:
            terms = text.split("->")[0].split(",")
            terms[i] = term.replace("...", turned[:width])
            text = f"{','.join(terms)}->{text.split('->')[1]}"
    return text, filled


def _terms(equation: str) -> list[str]:
    return equation.partition("->")[0].split(",")


def _summed(equation: str, shapes: Sequence[Sequence[Extent]]) -> tuple[str, list[list[Extent]]]:
    """An ellipsis that the output lacks is summed."""
    left, _, output = equation.partition("->")
    if "..." not in left or "..." in output:
        return _RESOLVED(equation, shapes)
    text, filled = _RESOLVED(f"{left}->...{output}", shapes)
    return f"{text.partition('->')[0]}->{output}", filled


def _spread_within(equation: str, shapes: Sequence[Sequence[Extent]]) -> tuple[str, list[list[Extent]]]:
    """Behind an ellipsis, axes of one label within an operand are as long as the longest."""
    spread = []
    for term, shape in zip(_terms(equation), shapes, strict=True):
        labels = term.rpartition("...")[2]
        own = list(shape)
        for label in labels:
            axes = [i - len(labels) for i, other in enumerate(labels) if other == label]
            if all(isinstance(own[axis], int) for axis in axes):
                longest = max(e for e in (own[axis] for axis in axes) if isinstance(e, int))
                for axis in axes:
                    own[axis] = longest
        spread.append(own)
    return _RESOLVED(equation, spread)


def _unsorted(text: str) -> str:
    text = "".join(text.split())
    once = [label for label in text if text.count(label) == 1 and label not in ",()."]
    return text if "->" in text else f"{text}->{'...' * ('...' in text)}{''.join(once)}"


_RESOLVED = einsum_family.resolved


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (einsum_family, "resolved", _at_the_left),
        (einsum_family, "resolved", _summed),
        (einsum_family, "resolved", _spread_within),
        (equations, "_broadcast", lambda label, a, b: a if a == b else max(a, b)),
        (einsum_family, "explicit", _unsorted),
        (einsum_family, "_spread", lambda value, shape: value),
        (einsum_family, "lettered", lambda labels: _LETTERED(([part[::-1] for part in labels[0]], labels[1]))),
        (linalg, "cholesky", lambda a: linalg._apply("Cholesky", a)[0].T),
        (linalg, "eigvalsh", lambda a: linalg._apply("EighVals", a)[0][::-1]),
        (linalg, "slogdet", lambda a: _SLOGDET(a)[::-1]),
        (fft, "rfft", lambda x, n, axis, norm: fft._apply("rfft", x, n, axis, "backward")),
        (fft, "irfft", lambda x, n, axis, norm: fft._apply("irfft", x, n, axis - 1, norm)),
    ],
)
def test_a_function_of_a_family_that_errs_is_found(
    module: Any, name: str, fault: Callable[..., Any], families: list[Reference], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fault)
    for words in (front_end.extensions._LINALG, front_end.extensions._FFT):
        for op, function in words.items():
            if function.__name__ == name:
                monkeypatch.setitem(words, op, fault)
    executor = configured(form="values")
    assert any(judge(executor, r).verdict.is_disagreement for r in families)


_LETTERED, _SLOGDET = equations.lettered, linalg.slogdet


def test_outputs_of_a_normal_form_are_in_order(usual: list[Reference], monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(program: GraphProgram) -> GraphProgram:
        program = normal(program)
        return replace(program, output_slots=tuple(sorted(program.output_slots)))

    normal = FORMS["normal"]
    monkeypatch.setitem(FORMS, "normal", wrong)
    assert Verdict.MISMATCH in {judge(configured(form="normal"), r).verdict for r in usual[:64]}


@pytest.mark.parametrize("form", [form for form in FORMS if form])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_sum_of_one_nan_is_that_nan_where_the_program_only_moves_it(form: str, shape: tuple[int, ...]) -> None:
    """`native:as-values` wrote a sum over no axis as a mean, which lost the payload."""
    b = GraphBuilder()
    x = b.input("F64", shape)
    nan = np.full(shape, np.array(0x7FF8000000000123, np.uint64).view(np.float64))
    case = Case.of(b.build(b.apply(ops.ReduceSum(()), x), b.apply(ops.ReduceSum(tuple(range(len(shape)))), x)), [nan])
    assert judge(configured(form=form), Reference(case, NativeExecutor())).verdict is Verdict.PASS


def test_a_contraction_whose_extents_may_differ_fails_by_its_own_name() -> None:
    """`native:as-values` has the words of DotGeneral for DotGeneralWithConj, which its error named."""
    b = GraphBuilder()
    x, y = b.input("F64", ("m", "n")), b.input("F64", ("p", "q"))
    program = b.build(b.apply(ops.DotGeneralWithConj((0, 1), (0, 1), (), (), False, False), x, y))
    for form in FORMS:
        with pytest.raises(ShapeMismatch) as error:
            configured(form=form).run(Case.of(program, [np.ones((2, 3)), np.ones((3, 2))]))
        assert error.value.op == "DotGeneralWithConj"


@pytest.mark.parametrize("dtype", ["I8", "BF16"])
def test_slices_of_every_dtype_that_the_policy_admits(dtype: str) -> None:
    """They were refused: the rules were asked under the default policy."""
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input(dtype, (3,))
    array = numbered(3, dtype=x.dtype)
    (out,) = NativeExecutor().run(Case.of(b.build(x[1:][0]), [array])).outputs
    assert out == array[1]


@pytest.mark.parametrize("dtype", ["F16", "BF16", "F32", "C32"])
def test_a_python_float_adapts_to_every_inexact_dtype(dtype: str) -> None:
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input(dtype, (2,))
    assert (x * 0.5).dtype is x.dtype
    assert (b.input("I32", ()) * 0.5).dtype.name == "F64"
    assert np.shape(b.build(x).output_slots) == (1,)


def test_an_invalid_program_is_refused_as_it_is() -> None:
    b = GraphBuilder()
    program = b.build(b.apply(ops.Transpose((1, 0)), b.input("F64", (2, 3))))
    (ins,) = program.instructions
    case = Case.of(replace(program, instructions=(replace(ins, op=ops.Transpose((1, 2))),)), [np.ones((2, 3))])
    for form in filter(None, FORMS):
        assert judge(configured(form=form), Reference(case, NativeExecutor())).verdict is Verdict.PASS, form


def test_a_form_that_ends_in_an_error_is_a_defect_and_ends_no_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the configuration is drawn, which asks what the form of a program fits."""

    def wrong(program: GraphProgram) -> GraphProgram:
        raise ValueError("no such axis")

    monkeypatch.setitem(FORMS, "values", wrong)
    drawn = Pool().make("native-drawn")
    algebraic = Config(ops=(ops.Add, ops.Multiply, ops.Transpose, ops.ReduceSum))
    answers = [judge(drawn, Reference(case, NativeExecutor())) for case in generate(14, 0, 64, algebraic)]
    assert {answer.verdict for answer in answers} == {Verdict.PASS, Verdict.ERROR}
    assert all("ValueError" in answer.reason for answer in answers if answer.verdict is Verdict.ERROR)
