"""Seeded faults: what is a few ULPs off is seen, and what a budget admits is not."""

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import IEEE, MODELS, XLA
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder
from tests.fuzz.enclosure_report import cases_with
from tools.faults import FAULTS, Detection, detect, has, moved, off_by

pytestmark = pytest.mark.once


SAMPLE = 16
EXACT = [op for op, sizes in FAULTS.items() if sizes == (1,)]
FUNCTIONS = [op for op in FAULTS if op not in EXACT]


@pytest.mark.parametrize("op", FAULTS, ids=lambda op: op.__name__)
def test_the_largest_fault_of_each_op_is_seen_within_200_programs(op):
    for dtype in (DType.F32, DType.F64):
        cases = list(cases_with(op, SAMPLE, dtype))
        for model in (MODELS["numpy"], XLA):
            (d,) = detect(cases, op, dtype, [max(FAULTS[op])], model).values()
            assert d.programs >= SAMPLE // 2
            assert d.rate >= 0.1, (model.name, dtype, d)


def test_no_fault_is_seen_where_there_is_none():
    for op in FAULTS:
        cases, model = list(cases_with(op, 6, DType.F32)), MODELS["numpy"]
        if op in EXACT:  # IEEE's model admits an ULP for functions, and some kernels are off by more
            cases, model = [case for case in cases if not any(has(case, f, DType.F32) for f in FUNCTIONS)], IEEE
        (found,) = detect(cases, op, DType.F32, [0], model).values()
        assert (found.programs > 0, found.seen) == (True, 0), op


def test_one_rounding_shows_in_every_element_of_a_product():
    b = GraphBuilder()
    x = b.input(DType.F64, (50,))
    case = Case.of(b.build(b.apply(ops.Multiply(), x, x)), [np.linspace(1, 2, 50)])
    (out,) = off_by(case, ops.Multiply, DType.F64, 1, np.random.default_rng(0))
    assert (out != case.inputs[0] ** 2).all()
    assert detect([case], ops.Multiply, DType.F64, [1], XLA) == {1: Detection(1, 1)}
    assert detect([case], ops.Exp, DType.F64, [1], XLA) == {1: Detection(0, 0)}


def test_moving_leaves_what_has_no_neighbours():
    x = np.array([1.0, 0.0, np.inf, np.nan, 1e-310, np.finfo(float).max])
    y = moved(x, 3, np.random.default_rng(1))
    assert abs(y[0] - 1) >= 3 * 2.0**-53
    assert y[1] == 0
    assert np.isinf(y[2])
    assert np.isnan(y[3])
    assert y[4] == 1e-310
    assert np.isfinite(y[5])
    z = moved(np.array([1 + 2j, complex(np.inf, 1)]), 2, np.random.default_rng(1))
    assert z[0] != 1 + 2j
    assert np.isinf(z[1].real)
    assert moved(np.array([3]), 2, np.random.default_rng(1))[0] == 3


def test_rates():
    assert Detection(0, 0).within(200) == 0
    assert Detection(200, 12).within(200) > 0.99
    assert Detection(200, 2).within(200) < 0.2
    assert Detection(200, 200).least == pytest.approx(0.01 ** (1 / 200))
