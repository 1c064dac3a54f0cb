"""Invalid programs raise the error that was foretold, from the types and from JSON, and every fault is reached."""

from __future__ import annotations

import inspect
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from fuzz.generate import DEFAULT, Config
from fuzz.generate.decode import GENE
from fuzz.generate.faults import decode_invalid, faults, kinds
from fuzz.generate.faults.batches import invalid_case
from fuzz.generate.header import HEADER
from fuzz.generate.strategies import invalid_cases
from oracle.case import Case, Refusal
from tenferro_ref import errors, ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import dumps, loads

pytestmark = pytest.mark.once


#: Every fault is reached within this many programs.
PROGRAMS = 2_500


def facts(error: TenferroError) -> tuple[object, ...]:
    return (error.kind, *(getattr(error, name, None) for name in ("op", "axis", "argument")))


def due(case: Case) -> Refusal:
    assert case.refusal is not None
    return case.refusal


def expected(case: Case) -> tuple[object, ...]:
    return (due(case).kind, due(case).op, due(case).axis, due(case).argument)


def sample(count: int) -> list[Case]:
    rng = random.Random(11)
    return [
        decode_invalid(DEFAULT, None, rng.randbytes(HEADER), [rng.randbytes(GENE) for _ in range(rng.randrange(5))], rng.randbytes(GENE))
        for _ in range(count)
    ]  # fmt: skip


def test_every_fault_is_reached_and_raises_what_was_foretold() -> None:
    reached: Counter[str] = Counter()
    for case in sample(PROGRAMS):
        reached[due(case).fault] += 1
        with pytest.raises(TenferroError) as caught:
            _ = case.program.slot_types
        assert facts(caught.value) == expected(case), case
    assert {fault.name for fault in faults()} - reached.keys() == set()


@given(invalid_cases())
def test_json_and_the_compiler_raise_the_same(case: Case) -> None:
    with pytest.raises(TenferroError) as caught:
        loads(dumps(case.program))
    assert loads(dumps(case.program), infer=False) == case.program
    assert facts(caught.value) == expected(case)
    with pytest.raises(TenferroError) as caught:
        compile_std_to_exec(case.program)
    assert facts(caught.value) == expected(case)


@pytest.mark.parametrize("kind", kinds())
def test_one_kind_can_be_asked_for(kind: str) -> None:
    @given(invalid_cases(kind=kind))
    def check(case: Case) -> None:
        assert due(case).kind == kind

    check()


def test_every_kind_that_inference_raises_is_covered() -> None:
    # kinds that need a run, a file, a plugin or an API call are no matter of types: values, places, guards of a compiled program
    validation = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.ValidationError)
        and kind is not errors.ValidationError
        and name
        not in ("NumericalFailure", "PlacementMismatch", "ShapeConstraintEvaluation", "ShapeConstraintViolation")
    }
    assert set(kinds()) == validation | {"InvalidCompiledGraph", "UnsupportedOp"}


def test_operands_that_a_fault_needs_are_no_larger_than_others() -> None:
    """One that is squared on an axis of 16,385 elements took 2 GiB: case 8 of the batch whose seed is 1."""
    sizes = [array.size for array in invalid_case(1, 0, 8, 8).inputs]
    assert max(sizes) <= DEFAULT.max_elements


def test_the_simplest_invalid_program_is_small() -> None:
    case = decode_invalid(DEFAULT, "ShapeMismatch", b"", [], b"")
    assert len(case.program.instructions) <= 2


def test_a_small_vocabulary_keeps_the_faults_that_it_can_make() -> None:
    config = Config(ops=(ops.Negate,))
    kinds = {fault.kind for fault in faults(config)}
    assert "InvalidCompiledGraph" in kinds
    assert "AxisRoleConflict" not in kinds


@given(invalid_cases())
def test_up_to_the_fault_the_program_is_valid(case: Case) -> None:
    at = due(case).at
    if at is not None:
        sound = replace(case.program, instructions=case.program.instructions[:at], output_slots=())
        assert sound.slot_types
