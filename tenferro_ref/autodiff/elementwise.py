"""Derivative rules of elementwise ops (SEMANTICS B.2).

`x` are operands, `y` the result, `t` tangents, `g` the cotangent of the result.
"""

from __future__ import annotations

from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.autodiff.errors import UnsupportedAdRule
from tenferro_ref.autodiff.rules import JVP, TRANSPOSE, Cotangents, Operand, Optional, conj, linear, or_zeros, total
from tenferro_ref.dtype import INEXACT
from tenferro_ref.program import Value

X = tuple[Value, ...]
T = tuple[Optional, ...]


def _where(mask: Value, tangent: Optional) -> Optional:
    return None if tangent is None else tn.where(mask, tangent, 0.0)


@JVP.row(ops.Add)
def _(op: ops.Add, x: X, y: X, t: T) -> Optional:
    return total(*t)


@JVP.row(ops.Subtract)
def _(op: ops.Subtract, x: X, y: X, t: T) -> Optional:
    if t[0] is None or t[1] is None:
        return t[0] if t[1] is None else -t[1]
    return t[0] - t[1]


@JVP.row(ops.Multiply)
def _(op: ops.Multiply, x: X, y: X, t: T) -> Optional:
    return total(t[0] if t[0] is None else t[0] * x[1], t[1] if t[1] is None else t[1] * x[0])


@JVP.row(ops.Divide)
def _(op: ops.Divide, x: X, y: X, t: T) -> Optional:
    return total(
        None if t[0] is None else t[0] / x[1],
        None if t[1] is None else -((t[1] * x[0]) / (x[1] * x[1])),
    )


@JVP.row(ops.Pow)
def _(op: ops.Pow, x: X, y: X, t: T) -> Optional:
    return total(
        None if t[0] is None else t[0] * (x[1] * x[0] ** (x[1] - 1)),
        None if t[1] is None else t[1] * (tn.log(x[0]) * x[0] ** x[1]),
    )


@JVP.row(ops.Repeated)
def _(op: ops.Repeated, x: X, y: X, t: T) -> Optional:
    """The tangent of the first operand, which is the result: what else is permitted is no value that is computed."""
    return t[0]


@JVP.row(ops.Negate, ops.Conj, ops.Imag)
def _(op: ops.Negate | ops.Conj | ops.Imag, x: X, y: X, t: X) -> Optional:
    return t[0].builder.apply(op, t[0])


@JVP.row(ops.Complex)
def _(op: ops.Complex, x: X, y: X, t: T) -> Optional:
    return y[0].builder.apply(op, *(or_zeros(u, v) for u, v in zip(t, x, strict=True)))


@JVP.row(ops.Abs)
def _(op: ops.Abs, x: X, y: X, t: X) -> Optional:
    """`sign(x) t`; of complex numbers `Re(conj(x / |x|) t)`, since their sign changes with them. 0 at 0."""
    if not x[0].dtype.is_complex:
        return tn.sign(x[0]) * t[0]
    return (conj(x[0] / tn.where(y[0] == 0.0, 1.0, y[0])) * t[0]).astype(y[0].dtype)


@JVP.row(ops.Maximum, ops.Minimum)
def _(op: ops.Maximum | ops.Minimum, x: X, y: X, t: T) -> Optional:
    """The side that equals the result; half of each where both do, nothing where neither does (NaN)."""
    first, second = x[0] == y[0], x[1] == y[0]

    def share(mine: Value, other: Value, tangent: Optional) -> Optional:
        return None if tangent is None else tn.where(mine, tn.where(other, tangent * 0.5, tangent), 0.0)

    return total(share(first, second, t[0]), share(second, first, t[1]))


@JVP.row(ops.Clamp)
def _(op: ops.Clamp, x: X, y: X, t: T) -> Optional:
    value, lower, upper = x
    return total(
        None if t[0] is None else _where((value > lower) & (value < upper), t[0]),
        None if t[1] is None else _where((lower > value) & (lower < upper), t[1]),
        None if t[2] is None else _where(upper < value, t[2]),
    )


@JVP.row(ops.Select)
def _(op: ops.Select, x: X, y: X, t: T) -> Optional:
    return tn.where(x[0], 0.0 if t[1] is None else t[1], 0.0 if t[2] is None else t[2])


@JVP.row(ops.Exp)
def _(op: ops.Exp, x: X, y: X, t: X) -> Optional:
    return t[0] * y[0]


@JVP.row(ops.Expm1)
def _(op: ops.Expm1, x: X, y: X, t: X) -> Optional:
    return t[0] * tn.exp(x[0])


@JVP.row(ops.Log)
def _(op: ops.Log, x: X, y: X, t: X) -> Optional:
    return t[0] / x[0]


@JVP.row(ops.Log1p)
def _(op: ops.Log1p, x: X, y: X, t: X) -> Optional:
    return t[0] / (x[0] + 1.0)


@JVP.row(ops.Sin)
def _(op: ops.Sin, x: X, y: X, t: X) -> Optional:
    return t[0] * tn.cos(x[0])


@JVP.row(ops.Cos)
def _(op: ops.Cos, x: X, y: X, t: X) -> Optional:
    return t[0] * -tn.sin(x[0])


@JVP.row(ops.Tanh)
def _(op: ops.Tanh, x: X, y: X, t: X) -> Optional:
    return t[0] * (1.0 - y[0] * y[0])


@JVP.row(ops.Sqrt)
def _(op: ops.Sqrt, x: X, y: X, t: X) -> Optional:
    return t[0] / (y[0] * 2.0)


@JVP.row(ops.Rsqrt)
def _(op: ops.Rsqrt, x: X, y: X, t: X) -> Optional:
    return t[0] * -(y[0] / (x[0] * 2.0))


@JVP.row(ops.Convert)
def _(op: ops.Convert, x: X, y: X, t: X) -> Optional:
    if op.to.is_narrow_float:
        raise UnsupportedAdRule("jvp", op.name, f"derivatives are of F32, F64, C32 and C64, not of {op.to}")
    return t[0].astype(op.to) if op.to in INEXACT else None


@JVP.row(ops.Sign, ops.Whole, ops.Compare, ops.Remainder, ops.ShapeOf, ops.Constant)
def _(op: ops.Op, x: X, y: X, t: T) -> Optional:
    """Nothing depends on the operands smoothly; the engine says so of Remainder as well (SEMANTICS A.1)."""
    return None


# --- transposes -------------------------------------------------------------------------------------------------------


def not_linear(op: ops.Op) -> UnsupportedAdRule:
    """The error of an op that is asked for in more linear operands than it is linear in at once."""
    return UnsupportedAdRule("transpose", op.name, "it is not linear in these operands together")


@TRANSPOSE.row(ops.Add)
def _(op: ops.Add, x: tuple[Operand, ...], g: Value) -> Cotangents:
    if not (linear(x[0]) and linear(x[1])):
        raise not_linear(op)
    return g, g


@TRANSPOSE.row(ops.Subtract)
def _(op: ops.Subtract, x: tuple[Operand, ...], g: Value) -> Cotangents:
    if not (linear(x[0]) and linear(x[1])):
        raise not_linear(op)
    return g, -g


@TRANSPOSE.row(ops.Multiply)
def _(op: ops.Multiply, x: tuple[Operand, ...], g: Value) -> Cotangents:
    a, b = x
    if isinstance(b, Value):
        return g * conj(b), None
    if isinstance(a, Value):
        return None, g * conj(a)
    raise not_linear(op)


@TRANSPOSE.row(ops.Divide)
def _(op: ops.Divide, x: tuple[Operand, ...], g: Value) -> Cotangents:
    if not isinstance(x[1], Value):
        raise not_linear(op)
    return g / conj(x[1]), None


@TRANSPOSE.row(ops.Negate, ops.Conj)
def _(op: ops.Negate | ops.Conj, x: tuple[Operand, ...], g: Value) -> Cotangents:
    return (g.builder.apply(op, g),)


@TRANSPOSE.row(ops.Imag)
def _(op: ops.Imag, x: tuple[Operand, ...], g: Value) -> Cotangents:
    """`Im(z) = Re(conj(i) z)`."""
    return (g.astype(g.dtype.complex) * 1j,)


@TRANSPOSE.row(ops.Complex)
def _(op: ops.Complex, x: tuple[Operand, ...], g: Value) -> Cotangents:
    """The parts of the cotangent: the product of two complex numbers is the real part of `conj(v) u`."""
    parts = g.astype(g.dtype.real), g.builder.apply(ops.Imag(), g)
    return tuple(part if linear(operand) else None for part, operand in zip(parts, x, strict=True))


@TRANSPOSE.row(ops.Convert)
def _(op: ops.Convert, x: tuple[Operand, ...], g: Value) -> Cotangents:
    if not {op.to, x[0].type.dtype} <= INEXACT:
        raise UnsupportedAdRule("transpose", op.name, "between numbers that are integers and others it is not linear")
    return (g,)  # every cotangent takes the dtype of its operand


@TRANSPOSE.row(ops.Select)
def _(op: ops.Select, x: tuple[Operand, ...], g: Value) -> Cotangents:
    predicate, on_true, on_false = x
    if not isinstance(predicate, Value):
        raise not_linear(op)
    return (
        None,
        tn.where(predicate, g, 0.0) if linear(on_true) else None,
        tn.where(predicate, 0.0, g) if linear(on_false) else None,
    )


TRANSPOSE.unsupported(
    "not a linear function",
    *(
        ops.Pow,
        ops.Remainder,
        ops.Abs,
        ops.Sign,
        ops.Whole,
        ops.Maximum,
        ops.Minimum,
        ops.Clamp,
        ops.Compare,
        ops.Exp,
        ops.Expm1,
        ops.Log,
        ops.Log1p,
    ),
    *(ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt),
)
TRANSPOSE.unsupported("its result does not depend on the values of an operand", ops.ShapeOf, ops.Constant)
