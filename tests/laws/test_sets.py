"""Input sets of a program that are enclosed, compared and judged at once get what each of them gets alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from unittest import mock

import numpy as np
import pytest

from fuzz.generate.input_sets import input_sets_of
from oracle.case import AT_ONCE, Case
from oracle.enclosure import IEEE, NUMPY, XLA, Enclosure
from oracle.judge import Reference, judge, judge_many, prepare
from oracle.peers import Execution, NativeExecutor, attempt
from oracle.verdict import Answer, Verdict
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal, TenferroError, UnsupportedOp, WorkerDied
from tenferro_ref.ops import Op
from tenferro_ref.program import Value
from tests.laws.answers import SLOW, end, wrong_elements, wrong_forms
from tests.laws.by_element import by_bits, by_element, facts
from tests.laws.cases import Array, apply, case_of, generated, same
from tests.laws.corners import corners
from tests.laws.freedoms import draw, times
from tests.op_examples import MOVES, examples, program_of

pytestmark = pytest.mark.once


SETS = 4
#: Another order of the sets.
ORDER = (2, 0, 3, 1)
MODELS = (IEEE.name, NUMPY.name, XLA.name)


def alone(case: Case) -> Reference:
    return Reference(case, NativeExecutor())


def prepared(cases: Sequence[Case]) -> list[Reference]:
    """References that are prepared together."""
    references = [alone(case) for case in cases]
    prepare(references)
    return references


@cache
def programs() -> list[list[Case]]:
    """Programs with enclosures, each with input sets that the native executor computes."""
    found = []
    for case in (*generated(7, 40), *(c.case for c in corners()[::5] if not c.error)):
        sets = [s for s in input_sets_of(case, SETS) if isinstance(attempt(NativeExecutor(), s), Execution)]
        try:
            sizes = [sum(e.size for e in alone(s).enclosures(XLA.name)) for s in sets]
        except UnsupportedOp:
            continue
        if sets and max(sizes) <= SLOW:
            found.append([replace(s) for s in (sets * SETS)[:SETS]])
    assert len(found) > 30
    return found


def bits(enclosures: Sequence[Enclosure]) -> list[tuple[object, ...]]:
    """What enclosures say; the sign of a bound that is zero says nothing."""
    return [
        (p.dtype, np.shape(a), (np.asarray(a) + 0).tobytes("F"))
        for e in enclosures
        for p in e.parts
        for a in (p.lo, p.hi, p.nan, p.pos_zero, p.neg_zero)
    ]


def meet(a: Enclosure, b: Enclosure) -> bool:
    """Some value, or NaN, is in both, for each element."""
    return a.shape == b.shape and all(
        ((np.maximum(p.lo, q.lo) <= np.minimum(p.hi, q.hi)) | (p.nan & q.nan)).all()
        for p, q in zip(a.parts, b.parts, strict=True)
    )


# --- enclosing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_set_beside_copies_of_itself_has_the_enclosure_that_it_has_alone(model: str) -> None:
    for case, *_ in programs():
        own = bits(alone(case).enclosures(model))
        for reference in prepared([replace(case) for _ in range(SETS)]):
            assert bits(reference.enclosures(model)) == own, case.program


@pytest.mark.parametrize("op", [*MOVES, ops.Scatter])
@pytest.mark.parametrize("dtype", [DType.F32, DType.C64, DType.I32, DType.Bool])
def test_so_has_every_example_of_an_op_that_moves_elements(op: type[Op], dtype: DType) -> None:
    for example in examples(op, dtype):
        program, arrays = program_of([example])
        case = Case.of(program, arrays)
        try:
            own = bits(alone(case).enclosures(IEEE.name))
        except UnsupportedOp:
            continue
        for reference in prepared([replace(case) for _ in range(SETS)]):
            assert bits(reference.enclosures(IEEE.name)) == own, example


@pytest.mark.parametrize("model", MODELS)
def test_beside_others_it_meets_that_and_their_order_does_not_show(model: str) -> None:
    for sets in programs():
        together, mixed = prepared(sets), prepared([sets[i] for i in ORDER])
        for case, reference in zip(sets, together, strict=True):
            own = alone(case).enclosures(model)
            assert all(map(meet, reference.enclosures(model), own)), case.program
        for i, reference in zip(ORDER, mixed, strict=True):
            assert bits(reference.enclosures(model)) == bits(together[i].enclosures(model)), reference.case.program


def test_what_is_enclosed_set_by_set_keeps_its_origin() -> None:
    """A product of which only the first elements are kept, as many as an input says: further constants are gathered with it."""

    def trace(x: Value, size: Value) -> Value:
        kept = apply(ops.DynamicTruncate(0), times(x, 1.1, 1.7), size)
        return times(kept, 1.3)

    case = case_of(trace, draw(np.float64, 7), np.int64(5))
    sets = [replace(case, inputs=(draw(np.float64, seed), case.inputs[1])) for seed in range(SETS)]
    for reference, own in zip(prepared(sets), map(alone, sets), strict=True):
        assert bits(reference.enclosures(XLA.name)) == bits(own.enclosures(XLA.name))


def test_native_answers_are_those_of_each_alone() -> None:
    for sets in programs():
        for case, reference in zip(sets, prepared(sets), strict=True):
            result = reference.execution
            assert isinstance(result, Execution)
            assert all(map(same, result.outputs, NativeExecutor().run(case).outputs))


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told(NativeExecutor):
    """Gives what it is told for each case, in company and alone."""

    name: str = "native-told"
    model: str = XLA.name
    bits: bool = False
    company: dict[int, Execution | TenferroError] = field(default_factory=dict, compare=False)
    alone: dict[int, Execution] = field(default_factory=dict, compare=False)

    def run(self, case: Case) -> Execution:
        if id(case) not in self.alone:
            raise Internal(detail="asked alone")
        return self.alone[id(case)]

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return [self.company[id(case)] for case in cases]

    def bit_exact(self, case: Case) -> bool:
        return self.bits


def outputs_of(reference: Reference) -> tuple[Array, ...]:
    assert isinstance(reference.execution, Execution)
    return reference.execution.outputs


def given(reference: Reference) -> list[tuple[Array, ...]]:
    """The native answer, the ends of what is right, an error in each output, results of another form."""
    native, wide = outputs_of(reference), reference.enclosures(XLA.name)
    wrong = wrong_elements(native, int(reference.case.fingerprint[:8], 16))
    return [native, tuple(end(e, False) for e in wide), wrong, tuple(end(e, True) for e in wide), *wrong_forms(native)]


def expected(executor: Told, reference: Reference, outputs: tuple[Array, ...]) -> tuple[Verdict, tuple[object, ...]]:
    """The verdict and the counts that outputs deserve."""
    native = outputs_of(reference)
    if executor.bits:
        found = by_bits(native, outputs)
    else:
        strict = reference.enclosures(IEEE.name)
        found = by_element(strict, None, outputs, native)
        if found[2] and executor.model != IEEE.name:
            found = by_element(reference.enclosures(executor.model), strict, outputs, native)
    right = Verdict.PASS if found[1] or not found[0] else Verdict.UNDECIDED
    return Verdict.MISMATCH if found[2] else right, found


def verdict(answer: Answer) -> tuple[Verdict, tuple[object, ...]]:
    return answer.verdict, facts(answer.comparison)


@pytest.mark.parametrize(
    ("model", "exact", "at_once"), [(XLA.name, False, AT_ONCE), (IEEE.name, False, 40), (XLA.name, True, 1)]
)
def test_each_set_gets_the_verdict_that_it_deserves(model: str, exact: bool, at_once: int) -> None:
    """However many elements are compared in one go."""
    for sets in programs():
        references = prepared(sets)
        for shift in range(len(given(references[0]))):
            results = [given(r)[(i + shift) % len(given(r))] for i, r in enumerate(references)]
            told = Told(model=model, bits=exact)
            told.company.update({id(r.case): Execution(g) for r, g in zip(references, results, strict=True)})
            with mock.patch("oracle.case.AT_ONCE", at_once):
                answers = judge_many(told, references)
            for reference, outputs, answer in zip(references, results, answers, strict=True):
                assert verdict(answer) == expected(told, reference, outputs), reference.case.program
                assert answer.seconds["compare"] > 0


def test_what_is_wrong_in_company_is_asked_again_alone() -> None:
    for sets in programs()[::2]:
        references = prepared(sets)
        for again in (0, 2):  # alone it is right, or as wrong
            told = Told()
            for r in references:
                told.company[id(r.case)] = Execution(given(r)[2], shared=True)
                told.alone[id(r.case)] = Execution(given(r)[again])
            for reference, answer in zip(references, judge_many(told, references), strict=True):
                assert verdict(answer) == expected(told, reference, given(reference)[2]), reference.case.program


def test_sets_that_are_refused_and_other_programs_do_not_disturb() -> None:
    quotient = case_of(lambda x, y: apply(ops.Divide(), x, y), *(np.array(v, np.int32) for v in ([6, 4], [0, 1])))
    others = [replace(quotient, inputs=(quotient.inputs[0], np.array(v, np.int32))) for v in ([6, 3], [2, -1])]
    single = case_of(lambda x: x + x, np.array([0.1, 1e-310]))
    died = WorkerDied(worker="w", how="signal 11", stderr_tail="")
    for sets in programs()[::4]:
        mixed = [quotient, sets[0], others[0], sets[1], single, sets[2], others[1], sets[3]]
        references = prepared(mixed)
        for reference, answer in zip(references, judge_many(NativeExecutor(), references), strict=True):
            assert verdict(answer) == verdict(judge(NativeExecutor(), alone(reference.case)))
        told = Told()
        sound = [r for r in references if isinstance(r.execution, Execution)]
        told.company.update({id(r.case): Execution(given(r)[i % 4]) for i, r in enumerate(sound)})
        told.company.update({id(quotient): Execution(()), id(mixed[3]): died})
        for reference, answer in zip(references, judge_many(told, references), strict=True):
            result = told.company[id(reference.case)]
            if reference not in sound:
                assert answer.verdict is Verdict.MISMATCH
            elif result is died:
                assert answer.verdict is Verdict.CRASH
            else:
                assert verdict(answer) == expected(told, reference, result.outputs)
