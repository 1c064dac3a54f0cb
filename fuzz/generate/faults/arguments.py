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
from tenferro_ref.program import Value

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
_NOWHERE: tuple[tuple[str, Callable[[int], DimExpr]], ...] = (
    ("InputOutOfBounds", lambda rank: InputDim(1, 0)),
    ("InputOutOfBounds", lambda rank: InputDim(-1, 0)),
    ("AxisOutOfBounds", lambda rank: InputDim(0, rank)),
    ("AxisOutOfBounds", lambda rank: InputDim(0, -1)),
)
_TOO_LARGE: tuple[tuple[str, DimExpr], ...] = (
    ("AddOverflow", DimOp("add", DimOp("add", _HUGE, _HUGE), 2)),
    ("MulOverflow", DimOp("mul", _HUGE, 3)),
    ("MulOverflow", DimOp("mul", 2**32, 2**32)),  # 0, were it to wrap
    ("MulOverflow", DimOp("mul", 2**62 + 1, 4)),  # 4
)
_OVER_ZERO: tuple[DimExpr, ...] = (
    DimOp("floordiv", 4, 0),
    DimOp("max", 1, DimOp("floordiv", 4, DimOp("sub", 3, 3))),
)


def _with_extent(op: type[Any], x: Value, extent: DimExpr, argument: str) -> Faulty:
    """`x` with one more axis, whose extent does not come to a number."""
    shape: tuple[DimExpr, ...] = (*shape_of(x), extent)
    faulty = op(shape) if op is ops.Reshape else op(shape, tuple(range(x.type.rank)))
    return Faulty(faulty, (x,), argument=argument, blamed="DimExpr")


@FAULTS.instruction("InvalidArgument", ops.Reshape, ops.BroadcastInDim)
def extent_of_what_is_not_there(g: Growth, op: type[Any]) -> Faulty:
    x = operand(g, ops.Add)
    argument, make = g.choices.choose(_NOWHERE)
    return _with_extent(op, x, make(x.type.rank), argument)


@FAULTS.instruction("InvalidArgument", ops.Reshape, ops.BroadcastInDim)
def extent_beyond_64_bits(g: Growth, op: type[Any]) -> Faulty:
    argument, extent = g.choices.choose(_TOO_LARGE)
    return _with_extent(op, operand(g, ops.Add), extent, argument)


@FAULTS.instruction("InvalidArgument", ops.Reshape, ops.BroadcastInDim)
def extent_over_zero(g: Growth, op: type[Any]) -> Faulty:
    return _with_extent(op, operand(g, ops.Add), g.choices.choose(_OVER_ZERO), "FloorDivByZero")


@FAULTS.instruction("InvalidArgument", ops.Reshape, ops.BroadcastInDim)
def extent_below_zero(g: Growth, op: type[Any]) -> Faulty:
    """Of constants, or of an extent of the operand less one more."""
    x = operand(g, ops.Add, 1)
    axis = any_axis(g, x)
    below = g.choices.choose((DimOp("sub", 2, 3), DimOp("sub", InputDim(0, axis), shape_of(x)[axis] + 1)))
    return _with_extent(op, x, below, "SubUnderflow")


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
