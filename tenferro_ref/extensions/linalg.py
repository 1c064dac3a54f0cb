"""The linalg family: every op declared once in `OPS`, and functions that append its ops to a program (SEMANTICS 6).

A matrix is in the first two axes, batch axes follow. Factors: `P A = L U`, `P A Q^T = L U`, `A = U diag(S) Vt`, `A = Q R`
(both reduced), `A V = V diag(w)`. Cholesky and Eigh read the lower triangle alone. The kernels are in `linalg_kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import Extent, combine, equal_extents
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import DTypeMismatch, InvalidArgument, RankMismatch, ShapeMismatch
from tenferro_ref.extensions import linalg_kernels as kernels
from tenferro_ref.extensions.family import Family, check_count, check_dtype, read_config, register, reject
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value
from tenferro_ref.tensor import Array

FAMILY = "tenferro-linalg.linalg.v1"

Types = tuple[TensorType, ...]


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The first operand: its type, and the extents of its matrices as far as they are known."""

    operand: TensorType
    m: Extent
    n: Extent

    @property
    def k(self) -> Extent:
        return self.m if equal_extents(self.m, self.n) is True else combine("min", self.m, self.n)

    def type(self, *extents: Extent, dtype: DType | None = None) -> TensorType:
        """A result with these extents in front of the batch axes."""
        return TensorType(dtype or self.operand.dtype, (*extents, *self.operand.shape[2:]))

    def real(self, *extents: Extent) -> TensorType:
        return self.type(*extents, dtype=self.operand.dtype.real)

    def complex(self, *extents: Extent) -> TensorType:
        return self.type(*extents, dtype=self.operand.dtype.complex)


def _matrix(op: ops.Extension, t: TensorType, square: bool) -> _Matrix:
    if t.rank < 2:
        raise RankMismatch(op=op.op, expected=2, actual=t.rank)
    m, n = t.shape[:2]
    if square:
        if equal_extents(m, n) is False:
            raise ShapeMismatch(op=op.op, lhs=(m, n), rhs=(n, m))
        m = n = n if isinstance(n, int) else m  # the one that is known
    return _Matrix(t, m, n)


def _check_shape(op: ops.Extension, t: TensorType, *shape: Extent) -> None:
    """Raise unless `t` has the given shape, as far as one can tell."""
    if t.rank != len(shape):
        raise RankMismatch(op=op.op, expected=len(shape), actual=t.rank)
    if any(equal_extents(a, b) is False for a, b in zip(t.shape, shape, strict=True)):
        raise ShapeMismatch(op=op.op, lhs=tuple(shape), rhs=t.shape)


def _solution(op: ops.Extension, a: _Matrix, b: TensorType) -> Types:
    if b.rank != a.operand.rank:
        raise RankMismatch(op=op.op, expected=a.operand.rank, actual=b.rank)
    sides = (a.n, b.shape[1]) if config_of(op).get("left_side", True) else (b.shape[0], a.n)
    _check_shape(op, b, *sides, *a.operand.shape[2:])
    return (b,)


def _prepared_solution(op: ops.Extension, a: _Matrix, packed: TensorType, pivots: TensorType, b: TensorType) -> Types:
    _check_shape(op, packed, a.n, a.n, *a.operand.shape[2:])
    _check_shape(op, pivots, a.n, *a.operand.shape[2:])
    return _solution(op, a, b)


@dataclass(frozen=True, slots=True)
class LinalgOp:
    """One op of the family.

    Attributes
    ----------
    kernel
        `kernel(*matrices, **config) -> results`, for one matrix of the batch.
    types
        `types(op, first operand, *other operand types) -> result types`.
    square
        Whether the first operand must be square.
    operands
        Dtypes of the operands; None stands for the op's one inexact dtype.
    config
        The keys of the configuration, with their defaults.
    gauge
        What `gauge` may be besides "Raw": which of the many equally good factors is given.
    """

    kernel: Callable[..., tuple[Any, ...]]
    types: Callable[..., Types]
    square: bool = True
    operands: tuple[DType | None, ...] = (None,)
    config: Mapping[str, bool | str] = field(default_factory=dict)
    gauge: str = "Raw"


#: Unless an op asks for another one.
DERIVATIVE_EPS = 1e-12
#: Ops whose configuration has `derivative_eps`, whether or not their own derivative needs it (SEMANTICS C.2).
_SPECTRAL = ("Svd", "SvdVals", "Eigh", "EighVals")
_PAIR = (None, None)
_RAW = {"gauge": "Raw"}
_TRIANGLE = {"left_side": True, "lower": True, "transpose_a": False, "unit_diagonal": False}
_PREPARED = {"transpose_a": False, "conjugate_a": False}

#: Every op of the family, by its name in programs.
OPS: dict[str, LinalgOp] = {
    "Cholesky": LinalgOp(kernels.cholesky, lambda _, a: (a.operand,)),
    "Lu": LinalgOp(
        kernels.lu, lambda _, a: (a.type(a.m, a.m), a.type(a.m, a.k), a.type(a.k, a.n), a.type()), square=False
    ),
    "LuFactor": LinalgOp(
        kernels.lu_factor, lambda _, a: (a.operand, a.type(a.k, dtype=DType.I32), a.type()), square=False
    ),
    "LuSolvePrepared": LinalgOp(
        kernels.lu_solve_prepared, _prepared_solution, operands=(None, None, DType.I32, None), config=_PREPARED
    ),
    "FullPivLu": LinalgOp(kernels.full_piv_lu, lambda _, a: (*[a.type(a.n, a.n)] * 4, a.real())),
    "FullPivLuSolve": LinalgOp(
        kernels.full_piv_lu_solve, _solution, operands=_PAIR, config={"transpose_a": False}
    ),
    "Svd": LinalgOp(
        kernels.svd, lambda _, a: (a.type(a.m, a.k), a.real(a.k), a.type(a.k, a.n)),
        square=False, config=_RAW, gauge="CanonicalPivot",
    ),
    "SvdVals": LinalgOp(kernels.svdvals, lambda _, a: (a.real(a.k),), square=False),
    "Qr": LinalgOp(
        kernels.qr, lambda _, a: (a.type(a.m, a.k), a.type(a.k, a.n)),
        square=False, config=_RAW, gauge="PositiveDiagonal",
    ),
    "Eigh": LinalgOp(
        kernels.eigh, lambda _, a: (a.real(a.n), a.type(a.n, a.n)), config=_RAW, gauge="CanonicalPivot"
    ),
    "EighVals": LinalgOp(kernels.eigvalsh, lambda _, a: (a.real(a.n),)),
    "Eig": LinalgOp(kernels.eig, lambda _, a: (a.complex(a.n), a.complex(a.n, a.n))),
    "EigVals": LinalgOp(kernels.eigvals, lambda _, a: (a.complex(a.n),)),
    "TriangularSolve": LinalgOp(kernels.triangular_solve, _solution, operands=_PAIR, config=_TRIANGLE),
    "Solve": LinalgOp(kernels.solve, _solution, operands=_PAIR),
}  # fmt: skip


def _read(op: ops.Extension) -> dict[str, Any]:
    spectral = {"derivative_eps": DERIVATIVE_EPS} if op.op in _SPECTRAL else {}
    return read_config(op, {**OPS[op.op].config, **spectral})


def config_of(op: ops.Extension) -> dict[str, Any]:
    """The configuration of an op of this family that its values depend on, defaults filled in.

    Raises
    ------
    InvalidArgument
        A configuration that the op does not know.
    """
    declared = OPS[op.op]
    config = _read(op)
    if config.get("gauge", "Raw") not in ("Raw", declared.gauge):
        reject(op, f"{config['gauge']!r} is neither Raw nor {declared.gauge}", "gauge")
    eps = config.pop("derivative_eps", DERIVATIVE_EPS)
    if not 0 < eps < math.inf:
        reject(op, f"{eps} is not finite and positive", "derivative_eps")
    return config


def derivative_eps(op: ops.Extension) -> float:
    """What keeps the tangents of singular vectors and eigenvectors finite: its square is added to squared gaps of the spectrum."""
    return float(_read(op)["derivative_eps"])


def _infer(op: ops.Extension, inputs: Types) -> Types:
    """Types of the results.

    Raises
    ------
    InvalidArgument
        A configuration that the op does not know.
    Unsupported, DTypeMismatch
        A dtype other than F32, F64, C32, C64; operands of two dtypes.
    RankMismatch
        No matrix (rank below 2), or a right-hand side of another rank than the matrix.
    ShapeMismatch
        A matrix that must be square and is not, or extents that differ between operands. Batch axes do not broadcast.
    """
    declared = OPS[op.op]
    config_of(op)
    check_count(op, inputs, len(declared.operands))
    for t, wanted in zip(inputs, declared.operands, strict=True):
        wanted = wanted or inputs[0].dtype
        if t.dtype is not wanted:
            raise DTypeMismatch(op=op.op, lhs=wanted.name, rhs=t.dtype.name)
    check_dtype(op, inputs[0].dtype, INEXACT)
    return declared.types(op, _matrix(op, inputs[0], declared.square), *inputs[1:])


def _execute(op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
    """The results of the op, each matrix of the batch by itself.

    Raises
    ------
    InvalidArgument
        A matrix is singular, not positive definite, or not finite; the message names it by its batch index.
    """
    types = _infer(op, tuple(TensorType(DType.of(x), x.shape) for x in inputs))
    results = [np.zeros(t.shape, t.dtype.numpy, order="F") for t in types]
    kernel, config = OPS[op.op].kernel, config_of(op)
    for index in np.ndindex(inputs[0].shape[2:]):
        try:
            with np.errstate(all="ignore"):
                parts = kernel(*(x[(..., *index)] for x in inputs), **config)
        except np.linalg.LinAlgError as error:
            which = f"matrix {list(index)} of the batch" if index else "the matrix"
            raise InvalidArgument(op=op.op, argument="a", detail=f"{which}: {error}") from None
        for result, part in zip(results, parts, strict=True):
            result[(..., *index)] = part
    return results


LINALG = register(Family(FAMILY, OPS, _infer, _execute))


# --- front end --------------------------------------------------------------------------------------------------------


def _apply(op: str, *operands: Value, **config: bool | str | float) -> tuple[Value, ...]:
    if config.get("derivative_eps") == DERIVATIVE_EPS:
        del config["derivative_eps"]
    return operands[0].builder.apply_many(ops.Extension.of(FAMILY, op, config), *operands)


def cholesky(a: Value) -> Value:
    """Lower triangular L with `A = L L^H`."""
    return _apply("Cholesky", a)[0]


def lu(a: Value) -> tuple[Value, ...]:
    """P, L, U, parity of P."""
    return _apply("Lu", a)


def lu_factor(a: Value) -> tuple[Value, ...]:
    """L and U in one matrix, LAPACK's pivots (from 1), parity."""
    return _apply("LuFactor", a)


def lu_solve_prepared(
    a: Value, packed: Value, pivots: Value, b: Value, *, transpose_a: bool = False, conjugate_a: bool = False
) -> Value:
    """X of `op(A) X = B` from the results of `lu_factor(a)`."""
    return _apply("LuSolvePrepared", a, packed, pivots, b, transpose_a=transpose_a, conjugate_a=conjugate_a)[0]


def full_piv_lu(a: Value) -> tuple[Value, ...]:
    """P, L, U, Q, parity of P and Q together (real)."""
    return _apply("FullPivLu", a)


def full_piv_lu_solve(a: Value, b: Value, *, transpose_a: bool = False) -> Value:
    """X of `A X = B`, or of `A^T X = B`."""
    return _apply("FullPivLuSolve", a, b, transpose_a=transpose_a)[0]


def svd(a: Value, gauge: str = "Raw", derivative_eps: float = DERIVATIVE_EPS) -> tuple[Value, ...]:
    """U, S (descending, real), Vt; "CanonicalPivot" makes the largest entry of each column of U positive."""
    return _apply("Svd", a, gauge=gauge, derivative_eps=derivative_eps)


def svdvals(a: Value) -> Value:
    return _apply("SvdVals", a)[0]


def qr(a: Value, gauge: str = "Raw") -> tuple[Value, ...]:
    """Q and R; "PositiveDiagonal" makes the diagonal of R positive."""
    return _apply("Qr", a, gauge=gauge)


def eigh(a: Value, gauge: str = "Raw", derivative_eps: float = DERIVATIVE_EPS) -> tuple[Value, ...]:
    """Eigenvalues (ascending, real) and eigenvectors of a Hermitian matrix.

    "CanonicalPivot" makes the largest entry of each eigenvector positive.
    """
    return _apply("Eigh", a, gauge=gauge, derivative_eps=derivative_eps)


def eigvalsh(a: Value) -> Value:
    return _apply("EighVals", a)[0]


def eig(a: Value) -> tuple[Value, ...]:
    """Eigenvalues and eigenvectors, both complex."""
    return _apply("Eig", a)


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
