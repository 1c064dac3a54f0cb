"""The reducer: simpler numbers, and how simple a number is."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.findings.reduce import reduce_case
from fuzz.findings.reduce.weights import numbers, weight, with_numbers
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.program import GraphBuilder
from tests.fuzz.reductions import first_failing, ops_of, reduced, run

pytestmark = pytest.mark.once


def test_a_value_that_the_failure_needs_stays_and_the_rest_becomes_zero() -> None:
    """NaN at a Maximum operand, whatever made the NaN."""

    def fails(case: Case) -> bool:
        values = run(case)
        read = [values[s] for i in case.program.instructions if isinstance(i.op, ops.Maximum) for s in i.input_slots]
        return any(bool(np.isnan(x).any()) for x in read)

    start = first_failing(fails)
    reduction = reduced(start, fails)
    assert ops_of(reduction.case) == ["Maximum"]
    assert len(reduction.case.inputs) == 1
    assert reduction.case.inputs[0].size == 1
    assert np.isnan(reduction.case.inputs[0]).all()


def test_one_hostile_element_of_many_is_found_by_bisection() -> None:
    b = GraphBuilder()
    x = b.input("F64", (40,))
    program = b.build(x + x.sum([0]))
    array = np.random.default_rng(0).normal(size=40)
    array[23] = 1e300

    def fails(case: Case) -> bool:  # needs 40 elements and one that is huge
        return case.inputs[0].shape == (40,) and bool((case.inputs[0] > 1e299).any())

    reduction = reduce_case(Case.of(program, [array]), fails, evaluate=run)
    kept = reduction.case.inputs[0]
    assert np.flatnonzero(kept).tolist() == [23]
    assert int(weight(kept).sum()) < int(weight(np.array([1e300]))[0])  # fewer bits as well
    assert reduction.tests < 120


def test_weights_order_numbers_as_a_reader_would() -> None:
    ladder = [0.0, 1.0, 2.0, np.inf, 4.0, 7.0, 0.1, 1e300 / 3]
    weights = weight(np.array(ladder)).tolist()
    assert weights == sorted(weights)
    assert len(set(weights)) == len(weights)
    odd_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    assert weight(np.array([np.nan])) < weight(odd_nan)
    assert weight(np.array([0.0])) < weight(np.array([-0.0]))
    assert weight(np.array([True, False])).tolist() == [1, 0]
    assert weight(np.array([np.iinfo(np.int64).min]))[0] > weight(np.array([5]))[0]


@pytest.mark.parametrize("dtype", ["F32", "F64", "I32", "I64", "Bool", "C32", "C64"])
def test_numbers_write_back_what_they_read(dtype: str) -> None:
    b = GraphBuilder()
    x = b.input(dtype, (2, 3))
    c = b.constant(1.0, x.dtype)
    array = np.asfortranarray(np.arange(6).reshape(2, 3).astype(x.dtype.numpy))
    case = Case.of(b.build(x, c), [array])
    again = with_numbers(case, numbers(case)).build()
    assert again is not None
    assert again.fingerprint == case.fingerprint
    simpler = reduce_case(case, lambda c: len(c.program.output_slots) == 2 and bool(c.program.instructions)).case
    assert not simpler.inputs or not simpler.inputs[0].any()


@pytest.mark.parametrize("dtype", ["F32", "F64", "C64", "I64"])
def test_a_bound_is_approached_from_above(dtype: str) -> None:
    b = GraphBuilder()
    x = b.input(dtype, (3,))
    start = Case.of(b.build(-x), [np.full(3, 123457.0).astype(x.dtype.numpy)])
    case = reduce_case(
        start, lambda c: bool((np.real(c.inputs[0]) >= 1000).any()) and bool(c.program.instructions)
    ).case
    (value,) = case.inputs[0].ravel().tolist()
    assert 1000 <= np.real(value) < 2048
    assert np.imag(value) == 0
