"""Special functions of arguments that are not known exactly, and the ranges that their results stay in."""

import numpy as np
import pytest

from oracle.enclosure import MODELS, enclose
from oracle.enclosure.value import hull, point
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import STABLEHLO
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


def of_interval(op, *ends, dtype=DType.F64, model=MODELS["ieee"]):
    """The enclosure of an op, each of whose operands lies between two numbers (or two arrays of numbers)."""
    b = GraphBuilder(policy=STABLEHLO)
    sides = [[point(np.atleast_1d(np.asarray(v, dtype.numpy))) for v in pair] for pair in ends]
    operands = [hull(*pair) for pair in sides]
    return enclose(b.build(b.apply(op, *(b.input(dtype, x.shape) for x in operands))), operands, model)[0]


@pytest.mark.parametrize("model", [m for m in MODELS.values() if not m.excess], ids=lambda m: m.name)
def test_what_is_lost_on_the_way_does_not_leave_the_range_of_the_function(model):
    """A function in F16 loses a denormal's worth, but cosh stays at least 1 and the error function at most that."""
    for function, x, outside in (("cosh", 0.001, 0.9995), ("erf", 4.0, 1.001), ("erfc", -4.0, 2.002)):
        made = of_interval(ops.Special(function), (x, x), dtype=DType.F16, model=model)
        assert made.contains(np.array([round(outside)], np.float16)).all()
        assert not made.contains(np.array([outside], np.float16)).any(), function
