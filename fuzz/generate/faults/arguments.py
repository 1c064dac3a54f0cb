"""Faults: attributes that no operand admits, and integers that an op cannot take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuzz.generate.faults.fault import Faults, Faulty, any_axis, full, of_rank, operand
from fuzz.generate.growth import Growth
from fuzz.generate.shapes import shape_of
from tenferro_ref import ops
from tenferro_ref.dims import DimExpr, DimOp, InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.ops import CONTRACTIONS, MAX_ELEMENTS, MAX_RANK, REDUCTIONS

FAULTS = Faults()


@FAULTS.instruction("InvalidArgument", *CONTRACTIONS)
def axes_without_partner(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, op, 1)
    axis = (any_axis(g, x),)
    if g.choices.pick(2):
        return Faulty(op((), (), (), axis), (x, x), argument="batch_dims")
    return Faulty(op(axis, (), (), ()), (x, x), argument="contracting_dims")


@FAULTS.instruction("InvalidArgument", ops.Constant)
def wrong_byte_count(g: Growth, op: type[Any]) -> Faulty:
    dtype = g.choices.choose(ENGINE_DTYPES)
    length = g.choices.choose((dtype.itemsize + 1, dtype.itemsize - 1, 2 * dtype.itemsize, 0))
    return Faulty(op(dtype, bytes(length)), (), argument="data")


@FAULTS.instruction("InvalidArgument", *REDUCTIONS)
def empty_reduced_axis(g: Growth, op: type[Any]) -> Faulty:
    x = g.fresh(operand(g, op).dtype, g.choices.choose(((0,), (0, 3), (2, 0))))
    empty = shape_of(x).index(0)
    axes = (empty,) if g.choices.pick(2) else g.choices.permutation(x.type.rank)
    return Faulty(op(axes), (x,), argument="axes")


@FAULTS.instruction("InvalidArgument", ops.Reshape, ops.BroadcastInDim)
def negative_extent(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add)
    shape = (*shape_of(x), -g.choices.choose((1, 2, 2**31)))
    return Faulty(op(shape) if op is ops.Reshape else op(shape, tuple(range(x.type.rank))), (x,), argument="shape")


@FAULTS.instruction("InvalidArgument", ops.BroadcastInDim)
def tensor_too_large(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add)
    dims = tuple(range(x.type.rank))
    if g.choices.pick(2):
        return Faulty(op((*shape_of(x), *[1] * (MAX_RANK + 1 - len(dims))), dims), (x,), argument="rank")
    huge = g.choices.choose(((MAX_ELEMENTS + 1,), (2**31, 2**31), (2**62,), (0, 2**62)))
    return Faulty(op((*shape_of(x), *huge), dims), (x,), argument="shape")


_HUGE = 2**63 - 1
_DIM_FAULTS: tuple[tuple[str, Callable[[int], DimExpr]], ...] = (
    ("InputOutOfBounds", lambda rank: InputDim(1, 0)),
    ("InputOutOfBounds", lambda rank: InputDim(-1, 0)),
    ("AxisOutOfBounds", lambda rank: InputDim(0, rank)),
    ("AxisOutOfBounds", lambda rank: InputDim(0, -1)),
    ("AddOverflow", lambda rank: DimOp("add", DimOp("add", _HUGE, _HUGE), 2)),
    ("SubUnderflow", lambda rank: DimOp("sub", 2, 3)),
    ("MulOverflow", lambda rank: DimOp("mul", _HUGE, 3)),
    ("MulOverflow", lambda rank: DimOp("mul", 2**32, 2**32)),  # 0, were it to wrap
    ("MulOverflow", lambda rank: DimOp("mul", 2**62 + 1, 4)),  # 4
    ("FloorDivByZero", lambda rank: DimOp("floordiv", 4, 0)),
    ("FloorDivByZero", lambda rank: DimOp("max", 1, DimOp("floordiv", 4, DimOp("sub", 3, 3)))),
)


@FAULTS.instruction("InvalidArgument", ops.Reshape, ops.BroadcastInDim)
def dim_expression(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add)
    argument, make = g.choices.choose(_DIM_FAULTS)
    shape: tuple[DimExpr, ...] = (*shape_of(x), make(x.type.rank))
    faulty = op(shape) if op is ops.Reshape else op(shape, tuple(range(x.type.rank)))
    return Faulty(faulty, (x,), argument=argument, blamed="DimExpr")


@FAULTS.instruction("UnsupportedOp", ops.Extension)
def family_that_nobody_registered(g: Growth, op: type[Any]) -> Faulty:
    return Faulty(op.of("no-such-crate.op.v1", "f", {"n": 1}), (operand(g, ops.Add),))


# --- values that only a run shows -------------------------------------------------------------------------------------


@FAULTS.instruction("NumericalFailure", ops.Divide, ops.Remainder, late=True)
def integer_zero_divisor(g: Growth, op: type[Any]) -> Faulty:
    x = of_rank(g, [DType.I64, DType.I32], 0)
    return Faulty(op(), (x, full(g, 0, x.dtype, g.choices.choose((shape_of(x), ())))))


@FAULTS.instruction("InvalidArgument", ops.Pow, late=True)
def negative_integer_exponent(g: Growth, op: type[Any]) -> Faulty:
    x = of_rank(g, [DType.I64, DType.I32], 0)
    return Faulty(op(), (x, full(g, -1 - g.choices.pick(3), x.dtype, g.choices.choose((shape_of(x), ())))))
