"""Runtime indices: decided ones move elements, undecided ones give the hull over the starts that are possible."""

import numpy as np
import pytest

from oracle.enclosure import IEEE, XLA, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


F32 = np.float32
X = np.arange(12, dtype=F32).reshape(3, 4)
ROWS = ops.Gather((1,), (0,), (0,), 1, (1, 4))
ADD_ROWS = ops.Scatter((1,), (0,), (0,), 1)


def built(op, *arrays, policy=None):
    b = GraphBuilder() if policy is None else GraphBuilder(policy=policy)
    return b.build(b.apply(op, *(b.input(DType.of(a), a.shape) for a in arrays)))


def one(op, *arrays, model=IEEE, policy=None):
    return enclose(built(op, *arrays, policy=policy), arrays, model)[0]


def blurred(op, x, logs, *rest):
    """`op` at indices exp(logs), truncated: log 3 gives 2 or 3, within the budget of Exp."""
    b = GraphBuilder()
    given = [b.input(DType.of(a), a.shape) for a in (x, logs, *rest)]
    indices = b.apply(ops.Convert(DType.I32), b.apply(ops.Exp(), given[1]))
    operands = (
        (given[0], *given[2:], indices) if isinstance(op, ops.DynamicUpdateSlice) else (given[0], indices, *given[2:])
    )
    return b.build(b.apply(op, *operands)), [x, logs, *rest]


LOGS = np.log(np.array([3.0, 1.5, 2.0])).astype(F32)  # 2 or 3 (clamped to 2), 1, 1 or 2


def test_an_undecided_gather_is_the_hull_of_its_rows():
    (e,) = enclose(*blurred(ROWS, X, LOGS), IEEE)
    assert e.lo.tolist() == [X[2].tolist(), X[1].tolist(), X[1].tolist()]
    assert e.hi.tolist() == [X[2].tolist(), X[1].tolist(), X[2].tolist()]


def test_an_undecided_slice_and_update():
    (e,) = enclose(*blurred(ops.DynamicSlice((1, 2)), X, np.log(F32([2.0, 1.5]))), IEEE)
    assert e.lo.tolist() == [X[1, 1:3].tolist()]
    assert e.hi.tolist() == [X[2, 1:3].tolist()]
    (u,) = enclose(*blurred(ops.DynamicUpdateSlice(), X, np.log(F32([2.0, 1.5])), F32([[-1]])), IEEE)
    assert (u.lo[1, 1], u.hi[1, 1]) == (-1, 5)
    assert (u.lo[2, 1], u.hi[2, 1]) == (-1, 9)
    assert (u.lo[0] == X[0]).all()


def test_of_two_elements_that_a_slice_may_take_none_between_is_possible():
    program, arrays = blurred(ops.DynamicSlice((1,)), F32([7, 9, -1000, 1000]), F32([np.log(3)]))
    (e,) = enclose(program, arrays, XLA)
    assert [bool(e.contains(F32([v]))) for v in (-1000, 0.123, 1000)] == [True, False, True]


def test_an_update_that_may_land_elsewhere_may_be_nothing():
    (e,) = enclose(*blurred(ADD_ROWS, X, LOGS[2:], np.full((1, 4), 8, F32)), IEEE)
    assert (e.hi - e.lo).tolist() == [[0] * 4, [8] * 4, [8] * 4]
    assert e.contains(X + 8 * (np.arange(3) == 2)[:, None].astype(F32)).all()


def test_scattered_duplicates_meet_in_any_order():
    big = F32([1e8, 1.0, -1e8])
    e = one(ops.Scatter((), (0,), (0,), 1), np.zeros(1, F32), np.zeros(3, np.int64), big)
    for order in ([0, 1, 2], [0, 2, 1]):
        total = F32(0)
        for i in order:
            total += big[i]
        assert e.contains(np.array([total])).all()
    assert one(ops.Scatter((), (0,), (0,), 1), F32([1]), np.zeros(1, int), F32([0.1])).contains(F32([1.1])).all()


def test_an_undecided_extent_has_no_enclosure():
    b = GraphBuilder()
    x, s = b.input(DType.F32, (3, 4)), b.input(DType.F32, ())
    size = b.apply(ops.Exp(), s)
    p = b.build(b.apply(ops.DynamicTruncate(0), x, size))
    (e,) = enclose(p, [X, F32(0.5)], XLA)  # exp 0.5 is 1.65, which is 2 whatever the last digit
    assert e.shape == (2, 4)
    with pytest.raises(UnsupportedOp, match="extent of the result is not decided"):
        enclose(p, [X, np.log(F32(2.5))], XLA)


def test_a_constant_zero_that_is_added_may_be_dropped():
    """XLA makes an addition of such a scatter, and `x + 0` is `x` under its model; a zero that is an input is added."""
    b = GraphBuilder()
    x, at = b.input("F32", (1,)), b.input("I32", (1,))
    update = b.apply(ops.BroadcastInDim((1,), ()), b.constant(0.0, DType.F32))
    program = b.build(b.apply(ops.Scatter((), (0,), (0,), 1), x, at, update))
    inputs = [F32([-0.0]), np.zeros(1, np.int32)]
    assert [enclose(program, inputs, model)[0].contains(F32([-0.0])).all() for model in (IEEE, XLA)] == [False, True]
    given = built(ops.Scatter((), (0,), (0,), 1), *inputs, F32([0.0]))
    assert not enclose(given, [*inputs, F32([0.0])], XLA)[0].contains(F32([-0.0])).any()


def test_padding_alone_is_a_constant_zero_that_may_be_dropped():
    """Under XLA `x - (0 + x)` of -0 is +0, where the zero is a Pad that crops its operand away; what is left of one is added."""
    for high, cropped in ((-2, True), (-1, False)):
        b = GraphBuilder()
        x, y = b.input("F32", (2,)), b.input("F32", (1 if cropped else 2,))
        padded = b.apply(ops.Pad((1,), (high,), (0,)), x)
        program = b.build(b.apply(ops.Subtract(), y, b.apply(ops.Add(), padded, y)))
        inputs = [F32([0.0, 0.0]), np.full(y.shape, -0.0, np.float32)]
        plus = np.zeros(y.shape, np.float32)
        assert [enclose(program, inputs, m)[0].contains(plus).all() for m in (IEEE, XLA)] == [False, cropped]
