"""Lowering to StableHLO: what each op becomes, in the table `EMIT` (SEMANTICS 7).

Covered are Phase 1 and Phase 2 of the engine's XLA path and the reductions, over all seven dtypes; `phase1_only` is the
subset that the engine itself has now. How lines are written lives in `writer` and `literals`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from tenferro_ref.dtype import FLOAT, DType
from tenferro_ref.errors import InvalidProgram, UnsupportedDType, UnsupportedOp
from tenferro_ref.ops import (
    INDEXING,
    PHASE1,
    Abs,
    Add,
    BroadcastInDim,
    Clamp,
    Compare,
    Conj,
    Constant,
    Convert,
    Cos,
    Divide,
    DotGeneral,
    EmbedDiag,
    Exp,
    Expm1,
    Extension,
    ExtractDiag,
    Log,
    Log1p,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Op,
    Policy,
    Pow,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reshape,
    Rsqrt,
    Select,
    Sign,
    Sin,
    Sqrt,
    Tanh,
    TensorType,
    Transpose,
    Tril,
    Triu,
)
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo.literals import Shape, type_text
from tenferro_ref.stablehlo.writer import Body, Value
from tenferro_ref.table import Table

#: `row(op, body, shape, *operands) -> result`, where `shape` is the result's.
Row = Callable[..., Value]
EMIT: Table[Row] = Table("stablehlo")


# --- elementwise ------------------------------------------------------------------------------------------------------


def _unary(name: str) -> Row:
    return lambda op, body, shape, x: body.same(name, x)


for _op, _name in {
    Negate: "negate", Exp: "exponential", Log: "log", Sin: "sine", Cos: "cosine", Tanh: "tanh", Sqrt: "sqrt",
    Rsqrt: "rsqrt", Expm1: "exponential_minus_one", Log1p: "log_plus_one",
}.items():  # fmt: skip
    EMIT[_op] = _unary(_name)


def _binary(name: str) -> Row:
    def row(op: Op, body: Body, shape: Shape, x: Value, y: Value) -> Value:
        wide = y.dtype if y.dtype.is_complex else x.dtype
        return body.same(name, *(_beside(body, v, wide, shape) for v in (x, y)))

    return row


def _beside(body: Body, x: Value, dtype: DType, shape: Shape) -> Value:
    """A rank-0 operand takes the dtype and shape of the one beside it: StableHLO's binary ops want equal types."""
    if x.dtype is not dtype:
        x = body.convert(x, dtype)
    return body.broadcast(x, shape) if x.rank < len(shape) else x


EMIT[Add] = _binary("add")
EMIT[Multiply] = _binary("multiply")
EMIT[Divide] = _binary("divide")
EMIT[Pow] = _binary("power")


@EMIT.row(Maximum, Minimum)
def _(op: Op, body: Body, shape: Shape, x: Value, y: Value) -> Value:
    return body.same(op.name.lower(), x, y)


@EMIT.row(Abs)
def _(op: Op, body: Body, shape: Shape, x: Value) -> Value:
    return body.call("abs", [x], x.dtype.real, shape) if x.dtype.is_complex else body.same("abs", x)


@EMIT.row(Conj)
def _(op: Op, body: Body, shape: Shape, x: Value) -> Value:
    if not x.dtype.is_complex:
        return x
    imag = body.same("negate", body.call("imag", [x], x.dtype.real, shape))
    return _complex(body, _real(body, x), imag)


def _real(body: Body, x: Value) -> Value:
    return body.call("real", [x], x.dtype.real, x.shape)


def _complex(body: Body, real: Value, imag: Value) -> Value:
    return body.call("complex", [real, imag], real.dtype.complex, real.shape)


@EMIT.row(Sign)
def _(op: Op, body: Body, shape: Shape, x: Value) -> Value:
    sign = body.same("sign", x)
    if not x.dtype.is_float:
        return sign
    # StableHLO keeps -0, the engine gives +0; adding 0 would be simplified away
    zero = _filled(body, 0, x.dtype, shape)
    return _select(body, _compare(body, "EQ", sign, zero), zero, sign)


def _filled(body: Body, value: complex, dtype: DType, shape: Shape) -> Value:
    scalar = body.constant(dtype.numpy.type(value), dtype)
    return body.broadcast(scalar, shape) if shape else scalar


def _select(body: Body, pred: Value, on_true: Value, on_false: Value) -> Value:
    names = f"{pred.name}, {on_true.name}, {on_false.name}"
    return body.line(f"select {names} : {pred.type}, {on_true.type}", on_true.dtype, on_true.shape)


def _compare(body: Body, direction: str, x: Value, y: Value) -> Value:
    kind = "SIGNED" if x.dtype.is_int else "UNSIGNED" if x.dtype is DType.Bool else "FLOAT"
    types = f"({x.type}, {y.type}) -> {type_text(DType.Bool, x.shape)}"
    return body.line(f"compare {direction}, {x.name}, {y.name}, {kind} : {types}", DType.Bool, x.shape)


@EMIT.row(Compare)
def _(op: Compare, body: Body, shape: Shape, x: Value, y: Value) -> Value:
    return _compare(body, op.dir.name.upper(), x, y)


@EMIT.row(Select)
def _(op: Op, body: Body, shape: Shape, pred: Value, on_true: Value, on_false: Value) -> Value:
    return _select(body, pred, on_true, on_false)


@EMIT.row(Clamp)
def _(op: Op, body: Body, shape: Shape, x: Value, lower: Value, upper: Value) -> Value:
    return body.same("clamp", lower, x, upper)


# --- structural -------------------------------------------------------------------------------------------------------


@EMIT.row(Constant)
def _(op: Constant, body: Body, shape: Shape) -> Value:
    return body.constant(op.value, op.dtype)


@EMIT.row(Convert)
def _(op: Convert, body: Body, shape: Shape, x: Value) -> Value:
    if not x.dtype.is_complex or op.to.is_complex:
        return body.convert(x, op.to)
    if op.to is DType.Bool:  # either part nonzero
        return _compare(body, "NE", x, _filled(body, 0, x.dtype, shape))
    real = _real(body, x)  # StableHLO leaves complex to real open
    return real if real.dtype is op.to else body.convert(real, op.to)


@EMIT.row(Transpose)
def _(op: Transpose, body: Body, shape: Shape, x: Value) -> Value:
    return body.transpose(x, op.perm)


@EMIT.row(Reshape)
def _(op: Reshape, body: Body, shape: Shape, x: Value, *providers: Value) -> Value:
    return body.reshape_column_major(x, shape)


@EMIT.row(BroadcastInDim)
def _(op: BroadcastInDim, body: Body, shape: Shape, x: Value, *providers: Value) -> Value:
    return body.broadcast(x, shape, op.dims)


# --- reductions and contraction ---------------------------------------------------------------------------------------


def _reduction(name: str, identity: Callable[[DType], np.generic]) -> Row:
    def row(op: ReduceSum, body: Body, shape: Shape, x: Value) -> Value:
        if not op.axes:  # a copy, for every dtype
            return x
        init = body.constant(identity(x.dtype), x.dtype)
        over = f"applies stablehlo.{name} across dimensions = {sorted(op.axes)}"
        types = f"({x.type}, {init.type}) -> {type_text(x.dtype, shape)}"
        return body.line(f"reduce({x.name} init: {init.name}) {over} : {types}", x.dtype, shape)

    return row


def _lowest(dtype: DType) -> np.generic:
    return dtype.numpy.type(-np.inf if dtype.is_float else np.iinfo(dtype.value).min if dtype.is_int else False)


def _highest(dtype: DType) -> np.generic:
    return dtype.numpy.type(np.inf if dtype.is_float else np.iinfo(dtype.value).max if dtype.is_int else True)


EMIT[ReduceSum] = _reduction("add", lambda dtype: dtype.numpy.type(0))
EMIT[ReduceProd] = _reduction("multiply", lambda dtype: dtype.numpy.type(1))
EMIT[ReduceMax] = _reduction("maximum", _lowest)
EMIT[ReduceMin] = _reduction("minimum", _highest)


@EMIT.row(DotGeneral)
def _(op: DotGeneral, body: Body, shape: Shape, lhs: Value, rhs: Value) -> Value:
    batches = len(op.lhs_batch_dims)
    frees = len(shape) - batches
    batching = f", batching_dims = {list(op.lhs_batch_dims)} x {list(op.rhs_batch_dims)}" if batches else ""
    contracting = f", contracting_dims = {list(op.lhs_contracting_dims)} x {list(op.rhs_contracting_dims)}"
    attrs = f"{batching}{contracting}, precision = [DEFAULT, DEFAULT]"
    product = body.call("dot_general", [lhs, rhs], lhs.dtype, shape[frees:] + shape[:frees], attrs)
    # StableHLO gives batch axes first. Equal extents do not make this the identity; lacking one of the groups does
    return body.transpose(product, [*range(batches, len(shape)), *range(batches)]) if batches and frees else product


# --- what is not covered ----------------------------------------------------------------------------------------------

EMIT.unsupported(
    "outside the engine's Phase 1 and Phase 2 of XLA lowering", ExtractDiag, EmbedDiag, Tril, Triu, *INDEXING
)
EMIT.unsupported("an extension reaches XLA only through a fixed-shape lowering to standard ops", Extension)


# --- programs ---------------------------------------------------------------------------------------------------------


def lower_to_stablehlo(view: LoweringView, *, phase1_only: bool = False) -> str:
    """StableHLO text of a program at the view's input shapes.

    Parameters
    ----------
    phase1_only
        Refuse what the engine's XLA path refuses: ops other than `PHASE1`, dtypes other than F32 and F64.

    Raises
    ------
    UnsupportedOp, UnsupportedDType, NonStaticShape, InvalidProgram
        The program cannot be said in StableHLO, or not in the asked-for subset (SEMANTICS 7.3).
    ValidationError
        A symbolic program whose op's rule breaks at these input shapes: what the native executor raises too.
    """
    body = Body()
    return body.module(lower_into(body, view, phase1_only=phase1_only))


def lower_into(body: Body, view: LoweringView, *, phase1_only: bool = False) -> list[Value]:
    """Write a program to `body`, with its own parameters; the program's outputs. Errors as `lower_to_stablehlo`."""
    dtypes, static = FLOAT if phase1_only else frozenset(DType), view.program.is_static
    env: dict[int, Value] = {}

    def read(slot: int, reader: str) -> Value:
        if slot not in env:
            raise InvalidProgram(detail=f"{reader} reads slot {slot}, which has no value there")
        return env[slot]

    for i, (slot, spec) in enumerate(zip(view.input_slots, view.input_specs, strict=True)):
        if spec.dtype not in dtypes:
            raise UnsupportedDType(dtype=spec.dtype.name, context="program input")
        env[slot] = body.parameter(spec.dtype, view.static_shape("program input", i, slot))
    for ins in view.instructions():
        if phase1_only and type(ins.op) not in PHASE1:
            raise UnsupportedOp(op=ins.op_name, reason="outside Phase 1")
        operands = [read(slot, ins.op_name) for slot in ins.input_slots]
        shape = ins.static_output_shape(0)
        row = EMIT[type(ins.op)]
        if ins.dtype not in dtypes:
            raise UnsupportedDType(dtype=ins.dtype.name, context=_CONTEXTS.get(type(ins.op), "instruction output"))
        _check_policy(ins.op, view.policy, operands)
        if not static:  # at concrete shapes a rule can break that symbols left open
            ins.op.result_types(tuple(TensorType(v.dtype, v.shape) for v in operands), view.policy)
        env[ins.output_slots[0]] = row(ins.op, body, shape, *operands)
    return [read(slot, f"output {i}") for i, slot in enumerate(view.output_slots)]


#: What a dtype is refused as, for ops where it is not an "instruction output".
_CONTEXTS: dict[type[Op], str] = {
    Constant: "constant",
    Convert: "convert target",
    ReduceSum: "reduce init",
    DotGeneral: "dot_general output",
}


def _check_policy(op: Op, policy: Policy, operands: list[Value]) -> None:
    if isinstance(op, (Divide, Pow)) and operands[0].dtype.is_int and policy.integer_faults == "error":
        what = "a zero divisor" if isinstance(op, Divide) else "a negative exponent"
        raise UnsupportedOp(op=op.name, reason=f'{what} must be an error under integer_faults="error"; XLA has none')


def fingerprint(text: str) -> str:
    """64 hex digits that identify a module's text (its SHA-256)."""
    return hashlib.sha256(text.encode()).hexdigest()
