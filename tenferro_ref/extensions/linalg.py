"""The linalg family: metadata rules, and functions that append its ops to a program (SEMANTICS 6).

A matrix is in the first two axes, batch axes follow. Factors: `P A = L U`, `P A Q^T = L U`, `A = U diag(S) Vt`, `A = Q R`
(both reduced), `A V = V diag(w)`. Cholesky and Eigh read the lower triangle alone. How they are computed is in
`linalg_runtime`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenferro_ref import ops
from tenferro_ref.dims import Extent, combine, equal_extents
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import DTypeMismatch, RankMismatch, ShapeMismatch, UnsupportedOp
from tenferro_ref.extensions.config import check_count, check_dtype, read_config, reject
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value

FAMILY = "tenferro-linalg.linalg.v1"

Types = tuple[TensorType, ...]


@dataclass(frozen=True, slots=True)
class _Matrix:
    """Extents of a matrix operand."""

    m: Extent
    n: Extent
    batch: tuple[Extent, ...]
    dtype: DType

    @property
    def k(self) -> Extent:
        return self.m if equal_extents(self.m, self.n) is True else combine("min", self.m, self.n)

    def type(self, *extents: Extent, dtype: DType | None = None) -> TensorType:
        """A result with these extents in front of the batch axes."""
        return TensorType(dtype or self.dtype, (*extents, *self.batch))


def _matrix(op: ops.Extension, t: TensorType) -> _Matrix:
    if t.rank < 2:
        raise RankMismatch(op=op.op, expected=2, actual=t.rank)
    return _Matrix(t.shape[0], t.shape[1], t.shape[2:], t.dtype)


def _square(op: ops.Extension, t: TensorType) -> _Matrix:
    a = _matrix(op, t)
    if equal_extents(a.m, a.n) is False:
        raise ShapeMismatch(op=op.op, lhs=(a.m, a.n), rhs=(a.n, a.m))
    extent = a.n if isinstance(a.n, int) else a.m  # the one that is known
    return _Matrix(extent, extent, a.batch, a.dtype)


def _fits(op: ops.Extension, t: TensorType, *shape: Extent) -> None:
    """`t` has the given shape, as far as one can tell."""
    if t.rank != len(shape):
        raise RankMismatch(op=op.op, expected=len(shape), actual=t.rank)
    if any(equal_extents(a, b) is False for a, b in zip(t.shape, shape, strict=True)):
        raise ShapeMismatch(op=op.op, lhs=tuple(shape), rhs=t.shape)


def _lu(op: ops.Extension, t: TensorType) -> Types:
    a = _matrix(op, t)
    return a.type(a.m, a.m), a.type(a.m, a.k), a.type(a.k, a.n), a.type()


def _lu_factor(op: ops.Extension, t: TensorType) -> Types:
    a = _matrix(op, t)
    return t, a.type(a.k, dtype=DType.I32), a.type()


def _full_piv_lu(op: ops.Extension, t: TensorType) -> Types:
    a = _square(op, t)
    return (*[a.type(a.n, a.n)] * 4, a.type(dtype=a.dtype.real))


def _svd(op: ops.Extension, t: TensorType) -> Types:
    a = _matrix(op, t)
    return a.type(a.m, a.k), a.type(a.k, dtype=a.dtype.real), a.type(a.k, a.n)


def _qr(op: ops.Extension, t: TensorType) -> Types:
    a = _matrix(op, t)
    return a.type(a.m, a.k), a.type(a.k, a.n)


def _eigh(op: ops.Extension, t: TensorType) -> Types:
    a = _square(op, t)
    return a.type(a.n, dtype=a.dtype.real), a.type(a.n, a.n)


def _eig(op: ops.Extension, t: TensorType) -> Types:
    a = _square(op, t)
    return a.type(a.n, dtype=a.dtype.complex), a.type(a.n, a.n, dtype=a.dtype.complex)


def _solve(op: ops.Extension, t: TensorType, b: TensorType) -> Types:
    a = _square(op, t)
    if b.rank != t.rank:
        raise RankMismatch(op=op.op, expected=t.rank, actual=b.rank)
    left = read_config(op, RULES[op.op].config).get("left_side", True)
    _fits(op, b, *((a.n, b.shape[1]) if left else (b.shape[0], a.n)), *a.batch)
    return (b,)


def _lu_solve_prepared(
    op: ops.Extension, t: TensorType, packed: TensorType, pivots: TensorType, b: TensorType
) -> Types:
    a = _square(op, t)
    _fits(op, packed, a.n, a.n, *a.batch)
    _fits(op, pivots, a.n, *a.batch)
    return _solve(op, t, b)


@dataclass(frozen=True, slots=True)
class _Rule:
    infer: Callable[..., Types]
    #: Dtypes of the operands; None stands for the op's one inexact dtype.
    operands: tuple[DType | None, ...] = (None,)
    config: Mapping[str, bool | str] = field(default_factory=dict)
    #: What `gauge` may be besides "Raw": which of the many equally good factors is given.
    gauge: str = "Raw"


_TRIANGLE: dict[str, bool | str] = {"left_side": True, "lower": True, "transpose_a": False, "unit_diagonal": False}
RULES: dict[str, _Rule] = {
    "Cholesky": _Rule(lambda op, t: (_square(op, t).type(*t.shape[:2]),)),
    "Lu": _Rule(_lu),
    "LuFactor": _Rule(_lu_factor),
    "LuSolvePrepared": _Rule(
        _lu_solve_prepared, (None, None, DType.I32, None), {"transpose_a": False, "conjugate_a": False}
    ),
    "FullPivLu": _Rule(_full_piv_lu),
    "FullPivLuSolve": _Rule(_solve, (None, None), {"transpose_a": False}),
    "Svd": _Rule(_svd, config={"gauge": "Raw"}, gauge="CanonicalPivot"),
    "SvdVals": _Rule(lambda op, t: _svd(op, t)[1:2]),
    "Qr": _Rule(_qr, config={"gauge": "Raw"}, gauge="PositiveDiagonal"),
    "Eigh": _Rule(_eigh, config={"gauge": "Raw"}, gauge="CanonicalPivot"),
    "EighVals": _Rule(lambda op, t: _eigh(op, t)[:1]),
    "Eig": _Rule(_eig),
    "EigVals": _Rule(lambda op, t: _eig(op, t)[:1]),
    "TriangularSolve": _Rule(_solve, (None, None), _TRIANGLE),
    "Solve": _Rule(_solve, (None, None)),
}


def config_of(op: ops.Extension) -> dict[str, Any]:
    """The configuration of an op of this family, defaults filled in."""
    rule = RULES[op.op]
    config = read_config(op, rule.config)
    if config.get("gauge", "Raw") not in ("Raw", rule.gauge):
        reject(op, f"{config['gauge']!r} is neither Raw nor {rule.gauge}", "gauge")
    return config


def infer(op: ops.Extension, inputs: Types) -> Types:
    """Types of the results.

    Raises
    ------
    UnsupportedOp
        The family has no such op.
    InvalidArgument
        A configuration that the op does not know.
    Unsupported, DTypeMismatch
        A dtype other than F32, F64, C32, C64; operands of two dtypes.
    RankMismatch
        No matrix (rank below 2), or a right-hand side of another rank than the matrix.
    ShapeMismatch
        A matrix that must be square and is not, or extents that differ between operands. Batch axes do not broadcast.
    """
    rule = RULES.get(op.op)
    if rule is None:
        raise UnsupportedOp(op=op.op, reason=f"family {FAMILY!r} has no such op")
    config_of(op)
    check_count(op, inputs, len(rule.operands))
    for t, wanted in zip(inputs, rule.operands, strict=True):
        wanted = wanted or inputs[0].dtype
        if t.dtype is not wanted:
            raise DTypeMismatch(op=op.op, lhs=wanted.name, rhs=t.dtype.name)
    check_dtype(op, inputs[0].dtype, INEXACT)
    return rule.infer(op, *inputs)


# --- front end --------------------------------------------------------------------------------------------------------


def _apply(op: str, *operands: Value, **config: bool | str) -> tuple[Value, ...]:
    return operands[0].builder.apply_many(ops.Extension.of(FAMILY, op, config), *operands)


def cholesky(a: Value) -> Value:
    """Lower triangular L with `A = L L^H`."""
    return _apply("Cholesky", a)[0]


def lu(a: Value) -> tuple[Value, Value, Value, Value]:
    """P, L, U, parity of P."""
    p, lower, upper, parity = _apply("Lu", a)
    return p, lower, upper, parity


def lu_factor(a: Value) -> tuple[Value, Value, Value]:
    """L and U in one matrix, LAPACK's pivots (from 1), parity."""
    packed, pivots, parity = _apply("LuFactor", a)
    return packed, pivots, parity


def lu_solve_prepared(
    a: Value, packed: Value, pivots: Value, b: Value, *, transpose_a: bool = False, conjugate_a: bool = False
) -> Value:
    """X of `op(A) X = B` from the results of `lu_factor(a)`."""
    return _apply("LuSolvePrepared", a, packed, pivots, b, transpose_a=transpose_a, conjugate_a=conjugate_a)[0]


def full_piv_lu(a: Value) -> tuple[Value, Value, Value, Value, Value]:
    """P, L, U, Q, parity of P and Q together (real)."""
    p, lower, upper, q, parity = _apply("FullPivLu", a)
    return p, lower, upper, q, parity


def full_piv_lu_solve(a: Value, b: Value, *, transpose_a: bool = False) -> Value:
    """X of `A X = B`, or of `A^T X = B`."""
    return _apply("FullPivLuSolve", a, b, transpose_a=transpose_a)[0]


def svd(a: Value, gauge: str = "Raw") -> tuple[Value, Value, Value]:
    """U, S (descending, real), Vt; "CanonicalPivot" makes the largest entry of each column of U positive."""
    u, s, vt = _apply("Svd", a, gauge=gauge)
    return u, s, vt


def svdvals(a: Value) -> Value:
    return _apply("SvdVals", a)[0]


def qr(a: Value, gauge: str = "Raw") -> tuple[Value, Value]:
    """Q and R; "PositiveDiagonal" makes the diagonal of R positive."""
    q, r = _apply("Qr", a, gauge=gauge)
    return q, r


def eigh(a: Value, gauge: str = "Raw") -> tuple[Value, Value]:
    """Eigenvalues (ascending, real) and eigenvectors of a Hermitian matrix.

    "CanonicalPivot" makes the largest entry of each eigenvector positive.
    """
    values, vectors = _apply("Eigh", a, gauge=gauge)
    return values, vectors


def eigvalsh(a: Value) -> Value:
    return _apply("EighVals", a)[0]


def eig(a: Value) -> tuple[Value, Value]:
    """Eigenvalues and eigenvectors, both complex."""
    values, vectors = _apply("Eig", a)
    return values, vectors


def eigvals(a: Value) -> Value:
    return _apply("EigVals", a)[0]


def triangular_solve(
    a: Value,
    b: Value,
    *,
    left_side: bool = True,
    lower: bool = True,
    transpose_a: bool = False,
    unit_diagonal: bool = False,
) -> Value:
    """X of `op(A) X = B`, or of `X op(A) = B`; the other triangle of A is not read."""
    flags = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a, "unit_diagonal": unit_diagonal}
    return _apply("TriangularSolve", a, b, **flags)[0]


def solve(a: Value, b: Value) -> Value:
    """X of `A X = B`."""
    return _apply("Solve", a, b)[0]
