"""Derivative rules of the linalg family (SEMANTICS B.3).

Tangents only: they are linear in `da` by products, triangles and solves with known factors, so that cotangents follow by
transposing. Matrices are on the first two axes, batches behind. Inverses are solves. Cholesky and eigh read the lower
triangle of their operand, and so do their tangents.
"""

from __future__ import annotations

from collections.abc import Callable

from tenferro_ref import ops
from tenferro_ref.autodiff.elementwise import T, X, not_linear
from tenferro_ref.autodiff.rules import (
    JVP,
    TRANSPOSE,
    Cotangents,
    Operand,
    Optional,
    constant_extent,
    constant_extents,
    part,
    summed,
    total,
)
from tenferro_ref.autodiff.rules import conj as conjugate
from tenferro_ref.extensions import linalg
from tenferro_ref.program import Value
from tenferro_ref.program.value import choose


def _key(*names: str) -> list[tuple[str, str]]:
    return [(linalg.FAMILY, name) for name in names]


# --- matrices with batches behind -------------------------------------------------------------------------------------


def _mm(a: Value, b: Value) -> Value:
    """Matrix product."""
    batch = tuple(range(2, a.ndim))
    return a.builder.apply(ops.DotGeneral((1,), (0,), batch, batch), a, b)


def _t(a: Value) -> Value:
    return a.transpose(1, 0, *range(2, a.ndim))


def _h(a: Value) -> Value:
    """Adjoint."""
    return conjugate(_t(a))


def _low(a: Value, k: int = 0) -> Value:
    return a.builder.apply(ops.Tril(k), a)


def _up(a: Value, k: int = 0) -> Value:
    return a.builder.apply(ops.Triu(k), a)


def _on_diagonal(a: Value) -> Value:
    """The matrix without what is beside its diagonal."""
    return _up(_low(a))


def _diagonal(a: Value) -> Value:
    return a.builder.apply(ops.ExtractDiag(0, 1), a)


def _as_real(a: Value) -> Value:
    """The real part, as a real dtype."""
    return a.astype(a.dtype.real)


def _imaginary(a: Value) -> Value:
    """The matrix with `i Im a` in place of `a`."""
    return (a - conjugate(a)) * 0.5


def _hermitian(a: Value) -> Value:
    """The Hermitian matrix that the lower triangle of `a` stands for."""
    strict = _low(a, -1)
    return strict + _h(strict) + _on_diagonal(_as_real(a).astype(a.dtype))


def _columns(row: Value, like: Value) -> Value:
    """A vector (and batch) in the shape of a matrix: entry j in column j."""
    return _spread(row, like, 1)


def _rows(column: Value, like: Value) -> Value:
    """A vector (and batch) in the shape of a matrix: entry i in row i."""
    return _spread(column, like, 0)


def _spread(vector: Value, like: Value, axis: int) -> Value:
    dims = (axis, *range(2, like.ndim))
    return vector.builder.apply(ops.BroadcastInDim(like.type.static_shape, dims), vector).astype(like.dtype)


def _gaps(op: ops.Extension, values: Value, like: Value) -> Value:
    """`d / (d^2 + eps^2)` for `d = value_j - value_i`, eps the op's `derivative_eps`: the reciprocal of the gaps, 0 on the diagonal."""
    d = _columns(values, like) - _rows(values, like)
    apart = _low(d, -1) + _up(d, 1)
    # 1 on the diagonal, where the square of eps^2, which the next derivative divides by, would be lost in F32
    unit = _on_diagonal(like.builder.constant(1.0, like.dtype).broadcast_to(like.shape))
    return apart / (apart * apart + (unit + linalg.derivative_eps(op) ** 2))


# --- Cholesky, solves -------------------------------------------------------------------------------------------------


@JVP.row(*_key("Cholesky"))
def _(op: ops.Extension, x: X, y: X, t: X) -> Optional:
    """dL = L phi(L^-1 dA L^-H), phi the lower triangle with half the diagonal."""
    (factor,) = y
    half = linalg.triangular_solve(factor, _hermitian(t[0]))
    inner = _h(linalg.triangular_solve(factor, _h(half)))
    return _mm(factor, _low(inner) - _on_diagonal(inner) * 0.5)


@JVP.row(*_key("TriangularSolve"))
def _(op: ops.Extension, x: X, y: X, t: T) -> Optional:
    """dX = A^-1 (dB - dA X), with the part of dA that the op reads; on the right side (dB - X dA) A^-1."""
    config = linalg.config_of(op)
    right_hand = t[1]
    if t[0] is not None:
        strict = 1 if config["unit_diagonal"] else 0
        da = _low(t[0], -strict) if config["lower"] else _up(t[0], strict)
        da = _t(da) if config["transpose_a"] else da
        right_hand = total(t[1], -(_mm(da, y[0]) if config["left_side"] else _mm(y[0], da)))
    return None if right_hand is None else x[0].builder.apply(op, x[0], right_hand)


@TRANSPOSE.row(*_key("TriangularSolve"))
def _(op: ops.Extension, x: tuple[Operand, ...], g: Value) -> Cotangents:
    a = x[0]
    if not isinstance(a, Value):
        raise not_linear(op)
    config = linalg.config_of(op)
    # A^-H g: the adjoint of a transposed system is the conjugate of the system
    flipped = {**config, "transpose_a": not config["transpose_a"]}
    return None, linalg.triangular_solve(conjugate(a), g, **flipped)


@JVP.row(*_key("Solve", "FullPivLuSolve"))
def _(op: ops.Extension, x: X, y: X, t: T) -> Optional:
    return _solved(op, t[0], t[1], y[0], lambda b: x[0].builder.apply(op, x[0], b))


@JVP.row(*_key("LuSolvePrepared"))
def _(op: ops.Extension, x: X, y: X, t: T) -> Optional:
    return _solved(op, t[0], t[3], y[0], lambda b: x[0].builder.apply(op, *x[:3], b))


def _solved(op: ops.Extension, da: Optional, db: Optional, x: Value, solve: Callable[[Value], Value]) -> Optional:
    """dX = A^-1 (dB - dA X), with A as the op takes it."""
    if da is not None:
        config = linalg.config_of(op)
        da = _t(da) if config.get("transpose_a") else da
        da = conjugate(da) if config.get("conjugate_a") else da
        db = total(db, -_mm(da, x))
    return None if db is None else solve(db)


@TRANSPOSE.row(*_key("Solve", "FullPivLuSolve"))
def _(op: ops.Extension, x: tuple[Operand, ...], g: Value) -> Cotangents:
    a = x[0]
    if not isinstance(a, Value):
        raise not_linear(op)
    if op.op == "Solve":
        return None, linalg.solve(_h(a), g)
    transposed = linalg.config_of(op)["transpose_a"]
    return None, linalg.full_piv_lu_solve(conjugate(a), g, transpose_a=not transposed)


@TRANSPOSE.row(*_key("LuSolvePrepared"))
def _(op: ops.Extension, x: tuple[Operand, ...], g: Value) -> Cotangents:
    """The adjoint system, from the same factors: what was transposed is not, what was conjugated is not."""
    a, packed, pivots, _ = x
    if not (isinstance(a, Value) and isinstance(packed, Value) and isinstance(pivots, Value)):
        raise not_linear(op)
    config = linalg.config_of(op)
    flags = {"transpose_a": not config["transpose_a"], "conjugate_a": a.dtype.is_complex and not config["conjugate_a"]}
    return None, None, None, linalg.lu_solve_prepared(a, packed, pivots, g, **flags)


@JVP.row(*_key("LuFactor"))
def _(op: ops.Extension, x: X, y: X, t: T) -> tuple[Optional, ...]:
    """None: ops that use the factors take the matrix beside them, and its tangent."""
    return None, None, None


@JVP.row(*_key("SignDetFromLuFactor"))
def _(op: ops.Extension, x: X, y: X, t: T) -> Optional:
    """i s Im tr(A^-1 dA): zero for real numbers. As for all users of the factors, the matrix carries the tangent."""
    if t[0] is None or not t[0].dtype.is_complex:
        return None
    return y[0] * _imaginary(_trace(linalg.solve(x[0], t[0])))


@JVP.row(*_key("LogAbsDetFromLuFactor"))
def _(op: ops.Extension, x: X, y: X, t: T) -> Optional:
    """Re tr(A^-1 dA)."""
    return None if t[0] is None else _as_real(_trace(linalg.solve(x[0], t[0])))


def _trace(a: Value) -> Value:
    return summed(_diagonal(a), (0,))


# --- factors ----------------------------------------------------------------------------------------------------------


@JVP.row(*_key("Lu"))
def _(op: ops.Extension, x: X, y: X, t: X) -> tuple[Optional, ...]:
    """F = L^-1 P dA U^-1 on the leading square block; dL = L tril-(F), dU = triu(F) U."""
    p, lower, upper, _ = y
    m, n = (constant_extent(op, extent) for extent in x[0].shape[:2])
    return None, *_lu_tangents(_mm(p, t[0]), lower, upper, m, n), None


@JVP.row(*_key("FullPivLu"))
def _(op: ops.Extension, x: X, y: X, t: X) -> tuple[Optional, ...]:
    """As Lu, of the matrix whose columns are permuted, too: P A Q^T = L U."""
    p, lower, upper, q, _ = y
    n = constant_extent(op, x[0].shape[0])
    return None, *_lu_tangents(_mm(_mm(p, t[0]), _t(q)), lower, upper, n, n), None, None


def _lu_tangents(da: Value, lower: Value, upper: Value, m: int, n: int) -> tuple[Value, Value]:
    """Tangents of L and U for that of the permuted matrix."""
    k = min(m, n)
    l1, u1 = part(lower, 0, 0, k), part(upper, 1, 0, k)
    left = linalg.triangular_solve(l1, part(part(da, 0, 0, k), 1, 0, k), unit_diagonal=True)
    f = linalg.triangular_solve(u1, left, left_side=False, lower=False)
    dl, du = _mm(l1, _low(f, -1)), _mm(_up(f), u1)
    concatenate = da.builder.apply
    if m > k:  # L2 U = P2 A
        rest = linalg.triangular_solve(u1, part(da, 0, k, m), left_side=False, lower=False)
        dl = concatenate(ops.Concatenate(0), dl, rest - _mm(part(lower, 0, k, m), _up(f)))
    if n > k:  # L U2 = P A2
        rest = linalg.triangular_solve(l1, part(da, 1, k, n), unit_diagonal=True)
        du = concatenate(ops.Concatenate(1), du, rest - _mm(_low(f, -1), part(upper, 1, k, n)))
    return dl, du


@JVP.row(*_key("Qr"))
def _(op: ops.Extension, x: X, y: X, t: X) -> tuple[Optional, ...]:
    q, r = y
    m, n = (constant_extent(op, extent) for extent in x[0].shape[:2])
    if m >= n:
        # M = Q^H dA R^-1; Y = triu(M + M^H) - diag(M + M^H)/2; dR = Y R; dQ = dA R^-1 - Q Y
        quotient = linalg.triangular_solve(r, t[0], left_side=False, lower=False)
        inner = _mm(_h(q), quotient)
        sum_ = inner + _h(inner)
        y_ = _up(sum_) - _on_diagonal(sum_) * 0.5
        return quotient - _mm(q, y_), _mm(y_, r)
    # X = Q^H dA1 R1^-1; W = T - T^H, T = tril-(X) + i Im diag X / 2; dQ = Q W; dR = Q^H dA - W R
    turned = _mm(_h(q), t[0])
    inner = linalg.triangular_solve(part(r, 1, 0, m), part(turned, 1, 0, m), left_side=False, lower=False)
    skew = _low(inner, -1)
    if skew.dtype.is_complex:
        skew = skew + _on_diagonal(_imaginary(inner)) * 0.5
    w = skew - _h(skew)
    return _mm(q, w), turned - _mm(w, r)


@JVP.row(*_key("Eigh"))
def _(op: ops.Extension, x: X, y: X, t: X) -> tuple[Optional, ...]:
    """P = V^H dA V; dw = Re diag P; dV = V (F * P), and what the gauge turns it by."""
    constant_extents(op, x[0].type)
    values, vectors = y
    inner = _mm(_h(vectors), _mm(_hermitian(t[0]), vectors))
    dw, dv = _as_real(_diagonal(inner)), _mm(vectors, _gaps(op, values, inner) * inner)
    return dw, _turned(vectors, dv, _turn(op, vectors, dv))


def _turn(op: ops.Extension, vectors: Value, tangent: Value) -> Optional:
    """By how much a gauge turns each vector while it changes, i Im(dv_p / v_p); None if not at all.

    The pivot `v_p`, which the gauge keeps a positive number, is the entry of the largest real part. Of several, each has its share.
    """
    if linalg.config_of(op)["gauge"] == "Raw" or not vectors.dtype.is_complex or 0 in vectors.shape:
        return None
    real = _as_real(vectors)
    pivot = real.max(0)
    chosen = real == _columns(pivot, real)
    count = summed(chosen.astype(pivot.dtype), (0,))
    away = summed(choose(chosen, _imaginary(tangent), 0), (0,))
    return away / (count * pivot).astype(away.dtype)


def _turned(vectors: Value, tangent: Value, turn: Optional) -> Value:
    """The tangent of vectors that are turned back."""
    return tangent if turn is None else tangent - vectors * _columns(turn, vectors)


@JVP.row(*_key("EighVals"))
def _(op: ops.Extension, x: X, y: X, t: X) -> Optional:
    _, vectors = linalg.eigh(x[0])
    return _as_real(_diagonal(_mm(_h(vectors), _mm(_hermitian(t[0]), vectors))))


@JVP.row(*_key("EigVals"))
def _(op: ops.Extension, x: X, y: X, t: X) -> Optional:
    """dw = diag(V^-1 dA V)."""
    _, vectors = linalg.eig(x[0])
    return _diagonal(linalg.solve(vectors, _mm(t[0].astype(vectors.dtype), vectors)))


@JVP.row(*_key("SvdVals"))
def _(op: ops.Extension, x: X, y: X, t: X) -> Optional:
    u, _, vh = linalg.svd(x[0])
    return _as_real(_diagonal(_mm(_h(u), _mm(t[0], _h(vh)))))


@JVP.row(*_key("Svd"))
def _(op: ops.Extension, x: X, y: X, t: X) -> tuple[Optional, ...]:
    """dP = U^H dA V, F_ij = 1 / (s_j^2 - s_i^2), D = i Im diag dP / 2s.

    dU = U (F * (dP S + S dP^H) + D) + (I - U U^H) dA V / S;
    dV = V (F * (S dP + dP^H S) - D) + (I - V V^H) dA^H U / S; a gauge turns both as U demands.
    """
    constant_extents(op, x[0].type)
    u, s, vh = y
    v = _h(vh)
    inner = _mm(_h(u), _mm(t[0], v))
    right, left = _columns(s, inner), _rows(s, inner)
    gaps = _gaps(op, s * s, inner)
    adjoint = _h(inner)
    of_u, of_v = gaps * (inner * right + left * adjoint), gaps * (left * inner + adjoint * right)
    if inner.dtype.is_complex:
        phase = _on_diagonal(_imaginary(inner) / (right * 2.0))
        of_u, of_v = of_u + phase, of_v - phase
    du = _mm(u, of_u) + _outside(u, _mm(t[0], v), s)
    dv = _mm(v, of_v) + _outside(v, _mm(_h(t[0]), u), s)
    turn = _turn(op, u, du)
    return _turned(u, du, turn), _as_real(_diagonal(inner)), _h(_turned(v, dv, turn))


def _outside(basis: Value, a: Value, s: Value) -> Value:
    """`(I - B B^H) a / S`: zero where the basis is whole."""
    return (a - _mm(basis, _mm(_h(basis), a))) / _columns(s, a)


JVP.unsupported(
    "tangents of eigenvectors of a matrix that is not Hermitian; EigVals has one of first order", *_key("Eig")
)
JVP.unsupported("vectors beyond the singular ones are any that complete a basis; Svd has one", *_key("SvdFull"))
JVP.unsupported("order and rank jump where columns change places; Qr has one", *_key("RankRevealingQr"))
JVP.unsupported(
    "reflectors are one state of many with the same product; Qr has one",
    *[key for key in linalg.LINALG.keys if key[1].startswith("Householder")],
)
TRANSPOSE.unsupported("not a linear function", *TRANSPOSE.holes(linalg.LINALG.keys))
