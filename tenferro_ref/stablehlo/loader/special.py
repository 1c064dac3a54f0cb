"""Rows of functions and of operations on bits, which are ops of the reference alone (`tenferro_ref.ops.reference`)."""

from __future__ import annotations

from typing import cast

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import composed
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.composed import full, select, static
from tenferro_ref.stablehlo.loader.tracer import ROWS, Row, Tracer

# --- functions --------------------------------------------------------------------------------------------------------

#: By the name of the operation; those of CHLO have the name of their dialect.
_FUNCTIONS = {f"chlo.{name}": name for name in ops.Special.functions if name not in ("cbrt", "tan")}

#: `chlo` ops whose rule takes complex numbers as well.
_COMPLEX = frozenset({"chlo.conj", "chlo.tan"})


def keeps(name: str, is_complex: bool) -> bool:
    """Whether a `chlo` op is read as it is, not its decomposition."""
    return name == "chlo.scan" or (name in ROWS and (not is_complex or name in _COMPLEX))


def _function(name: str) -> Row:
    return lambda b, _, x: b.apply(ops.Special(name), x)


for _name, _function_name in {**_FUNCTIONS, "cbrt": "cbrt"}.items():
    ROWS[_name] = _function(_function_name)


@ROWS.row("tan", "chlo.tan")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return composed.tan(x) if x.dtype.is_complex else b.apply(ops.Special("tan"), x)


@ROWS.row("chlo.polygamma", "chlo.zeta")
def _(b: Tracer, op: Operation, x: Value, y: Value) -> Value:
    return b.apply(ops.Special2(op.name.removeprefix("chlo.")), x, y)


@ROWS.row("atan2")
def _(b: Tracer, op: Operation, y: Value, x: Value) -> Value:
    if x.dtype.is_complex:
        raise op.refusal("the angle of two complex numbers has no rule")
    return b.apply(ops.Special2("atan2"), y, x)


@ROWS.row("chlo.square")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return x * x


@ROWS.row("chlo.conj")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.apply(ops.Conj(), x)


@ROWS.row("chlo.is_inf", "chlo.is_pos_inf", "chlo.is_neg_inf")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    size = abs(x) if op.name == "chlo.is_inf" else x
    return b.apply(ops.Compare(CompareDir.Eq), size, full(x, -np.inf if op.name == "chlo.is_neg_inf" else np.inf))


@ROWS.row("chlo.next_after")
def _(b: Tracer, op: Operation, x: Value, y: Value) -> Value:
    """One step on the line of ordinals; of a zero, the least subnormal with the sign of `y`."""
    signed, unsigned = _integer(x.dtype, "int"), _integer(x.dtype, "uint")
    bits = b.apply(ops.Bitcast(signed), x)
    negative = bits < full(bits, 0)
    away = composed.logical("xor", x < y, negative)
    stepped = b.apply(ops.Bitcast(x.dtype), select(away, bits + full(bits, 1), bits + full(bits, -1)))
    sign = b.apply(ops.Bits("and"), b.apply(ops.Bitcast(unsigned), y), full(y, 2 ** (unsigned.bits - 1), unsigned))
    least = b.apply(ops.Bitcast(x.dtype), b.apply(ops.Bits("or"), sign, full(sign, 1)))
    moved = select(x == full(x, 0), least, stepped)
    return select((x != x) | (y != y), x + y, select(x == y, y, moved))


# --- bits -------------------------------------------------------------------------------------------------------------


def _integer(dtype: DType, kind: str) -> DType:
    """The integer dtype of the same width."""
    return next(d for d in DType if d.kind == kind and d.bits == dtype.bits)


@ROWS.row("and", "or", "xor", "not")
def _(b: Tracer, op: Operation, *operands: Value) -> Value:
    return composed.logical(op.name, *operands)


@ROWS.row("shift_left", "shift_right_arithmetic", "shift_right_logical", "popcnt", "count_leading_zeros")
def _(b: Tracer, op: Operation, *operands: Value) -> Value:
    return b.apply(ops.Bits(op.name), *operands)


@ROWS.row("chlo.mulhi")
def _(b: Tracer, op: Operation, x: Value, y: Value) -> Value:
    return high_product(x, y)


def high_product(x: Value, y: Value) -> Value:
    """The upper half of the product of integers."""
    b, dtype = x.builder, x.dtype
    if dtype is DType.U64:
        return _by_halves(x, y)
    if dtype is DType.I64:  # a negative number is less by 2**64 than its bits are as an unsigned one
        zero, high = full(x, 0), _by_halves(x.astype(DType.U64), y.astype(DType.U64)).astype(DType.I64)
        return high - select(x < zero, y, zero) - select(y < zero, x, zero)
    wide = DType.I64 if dtype.kind == "int" else DType.U64
    product = x.astype(wide) * y.astype(wide)
    shift = "shift_right_arithmetic" if dtype.kind == "int" else "shift_right_logical"
    return b.apply(ops.Bits(shift), product, full(product, dtype.bits)).astype(dtype)


def _by_halves(x: Value, y: Value) -> Value:
    """The upper half of the product of unsigned integers of 64 bits, by schoolbook multiplication of their halves."""
    b, half, low = x.builder, full(x, 32), full(x, 2**32 - 1)

    def upper(v: Value) -> Value:
        return b.apply(ops.Bits("shift_right_logical"), v, half)

    def lower(v: Value) -> Value:
        return b.apply(ops.Bits("and"), v, low)

    middle = lower(x) * upper(y) + upper(lower(x) * lower(y))
    return upper(x) * upper(y) + upper(middle) + upper(upper(x) * lower(y) + lower(middle))


@ROWS.row("bitcast_convert")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    """Between widths, elements are cut into a new last axis, or put together along it, the lowest bits first."""
    to, of = op.result.dtype, x.dtype
    if to.bits == of.bits or to is of:
        return b.apply(ops.Bitcast(to), x)
    if to.is_complex or of.is_complex or DType.Bool in (to, of):
        raise op.refusal(f"the bits of {of} as {to} have no rule")
    whole = b.cut.get(x.slot)
    if whole is not None and (whole.dtype, static(whole)) == (to, op.shape):
        return whole
    source, target = _integer(of, "uint"), _integer(to, "uint")
    words = b.apply(ops.Bitcast(source), x)
    if to.bits < of.bits:
        count = of.bits // to.bits
        shape = (*static(x), count)
        spread_out = b.apply(ops.BroadcastInDim(shape, tuple(range(x.ndim))), words)
        amounts = _places(b, shape, source, to.bits)
        pieces = b.apply(ops.Bits("shift_right_logical"), spread_out, amounts).astype(target)
    else:
        amounts = _places(b, static(x), target, of.bits)
        parts = b.apply(ops.Bits("shift_left"), words.astype(target), amounts)
        pieces = b.apply(ops.ReduceSum((x.ndim - 1,)), parts)
    made = b.apply(ops.Bitcast(to), pieces)
    b.cut[made.slot] = x
    return made


def _places(b: Tracer, shape: tuple[int, ...], dtype: DType, width: int) -> Value:
    """Multiples of a width along the last axis."""
    line = b.array((np.arange(shape[-1]) * width).astype(dtype.numpy))
    return b.apply(ops.BroadcastInDim(shape, (len(shape) - 1,)), line)


def total_order(x: Value) -> Value:
    """Integers in the total order of floats: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    signed = _integer(x.dtype, "int")
    bits = x.builder.apply(ops.Bitcast(signed), x)
    low = x.builder.apply(ops.Bits("xor"), bits, full(bits, signed.limits[1]))
    key = select(bits < full(bits, 0), low, bits)
    # a module that puts a constant in the place of each NaN, as JAX does, knows its sign
    return select(x != x, full(key, signed.limits[1]), key) if _nan_is_positive(x) else key


def _nan_is_positive(x: Value) -> bool:
    """Whether a NaN in `x` can only be a constant of the module with a plus sign."""
    b = cast(Tracer, x.builder)
    chosen = _constant_or(b, x)
    if chosen is None:
        return False
    predicate, constant, rest = chosen
    if not np.isnan(constant):  # a number in some places makes no NaN
        return _nan_is_positive(rest)
    asked = _asked_for_nan(b, predicate)
    while asked is not rest and (before := _constant_or(b, rest)) and not np.isnan(before[1]):
        rest = before[2]
    return asked is rest and not np.signbit(constant)


def _constant_or(b: Tracer, x: Value) -> tuple[Value, float, Value] | None:
    """Of `select(predicate, constant, rest)` its operands, else None."""
    op, operands = b.made.get(x.slot, (None, ()))
    if not isinstance(op, ops.Select):
        return None
    source, spread_out = b.made.get(operands[1].slot, (None, ()))
    if isinstance(source, ops.BroadcastInDim):
        source, _ = b.made.get(spread_out[0].slot, (None, ()))
    return (operands[0], float(source.value), operands[2]) if isinstance(source, ops.Constant) else None


def _asked_for_nan(b: Tracer, predicate: Value) -> Value | None:
    """The value that a predicate finds the NaNs of: of `x != x`, which is `~(x == x)`; else None."""
    inverted, operands = b.made.get(predicate.slot, (None, ()))
    if not isinstance(inverted, ops.Select):
        return None
    test, compared = b.made.get(operands[0].slot, (None, ()))
    same = isinstance(test, ops.Compare) and test.dir is CompareDir.Eq and compared[0] is compared[1]
    return compared[0] if same else None


@ROWS.row("reduce_precision")
def _(b: Tracer, op: Operation, x: Value) -> Value:
    return b.apply(ops.ReducePrecision(op.attribute("exponent_bits"), op.attribute("mantissa_bits")), x)
