"""The linalg family: every op declared once in `OPS`, and functions that append its ops to a program (SEMANTICS 6).

A matrix is in the first two axes, batch axes follow. Factors: `P A = L U`, `P A Q^T = L U`, `A = U diag(S) Vt`, `A = Q R`
(both reduced), `A V = V diag(w)`. Cholesky and Eigh read the lower triangle alone. The kernels are in `linalg_kernels`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dims import Extent, combine, equal_extents
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import DTypeMismatch, NumericalFailure, RankMismatch, ShapeMismatch
from tenferro_ref.extensions import linalg_kernels as kernels
from tenferro_ref.extensions.family import Family, check_count, check_dtype, read_config, register, reject
from tenferro_ref.ops import TensorType
from tenferro_ref.program import Value
from tenferro_ref.program.value import builder_of
from tenferro_ref.tensor import Array

FAMILY = "tenferro-linalg.linalg.v1"

Types = tuple[TensorType, ...]
#: Extents by the letters of a signature.
Extents = dict[str, Extent]


@dataclass(frozen=True, slots=True)
class LinalgOp:
    """One op of the family.

    Attributes
    ----------
    kernel
        `kernel(*matrices, **config) -> results`, for one matrix of the batch.
    signature
        Operands and results, as "nn i32:n nr -> nr": a letter an axis, "." for none, batch axes left out. Letters of the
        operands are bound from left to right; `k` is `min(m, n)`, those of `bound` follow from other extents. An operand
        or result has the op's inexact dtype unless it names another one: its "real" or "complex" one, "i32", "i64".
    config
        The keys of the configuration, with their defaults.
    gauge
        What `gauge` may be besides "Raw": which of the many equally good factors is given.
    batched
        Whether batch axes may follow those of the matrix.
    bound
        `bound(op, extents) -> further extents`, which an operand or result has.
    """

    kernel: Callable[..., tuple[Any, ...]]
    signature: str
    config: Mapping[str, bool | str | int | float | None] = field(default_factory=dict)
    gauge: str = "Raw"
    batched: bool = True
    bound: Callable[[ops.Extension, Extents], Extents] = lambda op, extents: {}

    @property
    def operands(self) -> tuple[tuple[str, str], ...]:
        """Dtype ("" for that of the op) and axes of each operand."""
        return _terms(self.signature.partition("->")[0])

    @property
    def square(self) -> bool:
        """Whether the first operand must be square."""
        return self.operands[0][1] == "nn"


@cache
def _terms(text: str) -> tuple[tuple[str, str], ...]:
    parts = [term.rpartition(":") for term in text.split()]
    return tuple((dtype, axes.strip(".")) for dtype, _, axes in parts)


def _dtype(name: str, inexact: DType) -> DType:
    """A dtype of a signature."""
    named = {"": inexact, "real": inexact.real, "complex": inexact.complex, "i32": DType.I32, "i64": DType.I64}
    return named[name]


#: Unless an op asks for another one.
DERIVATIVE_EPS = 1e-12
#: Ops whose configuration has `derivative_eps`, whether or not their own derivative needs it (SEMANTICS C.2).
_SPECTRAL = ("Svd", "SvdVals", "Eigh", "EighVals")
_RAW = {"gauge": "Raw"}
_TRIANGLE = {"left_side": True, "lower": True, "transpose_a": False, "unit_diagonal": False}
_PREPARED = {"transpose_a": False, "conjugate_a": False}


def _sides(op: ops.Extension, extents: Extents) -> Extents:
    """Rows and columns of a right-hand side: the matrix is on the left or on the right."""
    return {"x": extents["n"]} if config_of(op)["left_side"] else {"y": extents["n"]}


def _columns(op: ops.Extension, extents: Extents) -> Extents:
    """How many columns are asked for."""
    config, m = config_of(op), extents["m"]
    start, end = config["start"], extents["k"] if config["end"] is None else config["end"]
    if start < 0 or (isinstance(end, int) and end < start) or (isinstance(end, int) and isinstance(m, int) and end > m):
        reject(op, f"columns {start} to {end} of {m}", "end")
    return {"c": combine("sub", end, start)}


def _thin(op: ops.Extension, extents: Extents) -> Extents:
    """Nothing; Q may have no more columns than the product has rows and columns."""
    q, k = extents["q"], extents.get("k")
    if isinstance(q, int) and isinstance(k, int) and q > k:
        reject(op, f"Q has {q} columns, and {k} is the most that a product of this shape needs", "q")
    return {}


def _appended(op: ops.Extension, extents: Extents) -> Extents:
    """What a matrix has with further columns."""
    if "p" not in extents:
        return {}
    wider = combine("add", extents["n"], extents["p"])
    return {"w": wider, "l": combine("min", extents["m"], wider)}


#: Every op of the family, by its name in programs.
OPS: dict[str, LinalgOp] = {
    "Cholesky": LinalgOp(kernels.cholesky, "nn -> nn"),
    "Lu": LinalgOp(kernels.lu, "mn -> mm mk kn ."),
    "LuFactor": LinalgOp(kernels.lu_factor, "mn -> mn i32:k ."),
    "LuSolvePrepared": LinalgOp(kernels.lu_solve_prepared, "nn nn i32:n nr -> nr", _PREPARED),
    "SignDetFromLuFactor": LinalgOp(kernels.sign_det, "nn nn . -> ."),
    "LogAbsDetFromLuFactor": LinalgOp(kernels.log_abs_det, "nn nn -> real:."),
    "FullPivLu": LinalgOp(kernels.full_piv_lu, "nn -> nn nn nn nn real:."),
    "FullPivLuSolve": LinalgOp(kernels.full_piv_lu_solve, "nn nr -> nr", {"transpose_a": False}),
    "Svd": LinalgOp(kernels.svd, "mn -> mk real:k kn", _RAW, "CanonicalPivot"),
    "SvdFull": LinalgOp(kernels.svd_full, "mn -> mm real:k nn"),
    "SvdVals": LinalgOp(kernels.svdvals, "mn -> real:k"),
    "Qr": LinalgOp(kernels.qr, "mn -> mk kn", _RAW, "PositiveDiagonal"),
    "RankRevealingQr": LinalgOp(
        kernels.rank_revealing_qr, "mn -> mk kn i64:n i64:.", {**_RAW, "rtol": 0.0, "atol": 0.0}, "PositiveDiagonal"
    ),
    "HouseholderQrFactor": LinalgOp(kernels.geqrf, "mn -> mn k", batched=False),
    "HouseholderQrFromFactors": LinalgOp(
        kernels.householder_from_factors, "mq qn -> mn k", batched=False, bound=_thin
    ),
    "HouseholderQrAppend": LinalgOp(
        kernels.householder_append, "mn k mp -> mw l", batched=False, bound=_appended
    ),
    "HouseholderQrR": LinalgOp(kernels.householder_r, "mn k -> kn", _RAW, "PositiveDiagonal", batched=False),
    "HouseholderQrThinQ": LinalgOp(kernels.householder_columns, "mn k -> mk", _RAW, "PositiveDiagonal", batched=False),
    "HouseholderQrQColumns": LinalgOp(
        kernels.householder_columns, "mn k -> mc", {**_RAW, "start": 0, "end": None}, "PositiveDiagonal", False, _columns
    ),
    "Eigh": LinalgOp(kernels.eigh, "nn -> real:n nn", _RAW, "CanonicalPivot"),
    "EighVals": LinalgOp(kernels.eigvalsh, "nn -> real:n"),
    "Eig": LinalgOp(kernels.eig, "nn -> complex:n complex:nn"),
    "EigVals": LinalgOp(kernels.eigvals, "nn -> complex:n"),
    "TriangularSolve": LinalgOp(kernels.triangular_solve, "nn xy -> xy", _TRIANGLE, bound=_sides),
    "Solve": LinalgOp(kernels.solve, "nn nr -> nr"),
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
    for name in ("rtol", "atol"):
        if not 0 <= config.get(name, 0.0) < math.inf:
            reject(op, f"{config[name]} is negative or not finite", name)
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
    inexact = inputs[0].dtype
    check_dtype(op, inexact, INEXACT)
    for t, (name, _) in zip(inputs, declared.operands, strict=True):
        wanted = _dtype(name, inexact)
        if t.dtype is not wanted:
            raise DTypeMismatch(op=op.op, lhs=wanted.name, rhs=t.dtype.name)
    if inputs[0].rank < 2 or (inputs[0].rank > 2 and not declared.batched):
        raise RankMismatch(op=op.op, expected=2, actual=inputs[0].rank)
    batch = inputs[0].shape[2:]
    extents = _extents(op, declared, inputs)
    return tuple(
        TensorType(_dtype(name, inexact), (*(extents[axis] for axis in axes), *batch))
        for name, axes in _terms(declared.signature.partition("->")[2])
    )


def _extents(op: ops.Extension, declared: LinalgOp, inputs: Types) -> Extents:
    """Extents by letters; where operands differ in what is known of one, the most exact."""
    extents: Extents = {}
    for t, (_, axes) in zip(inputs, declared.operands, strict=True):
        shape, batch = t.shape[: len(axes)], inputs[0].shape[2:]
        if t.rank != len(axes) + len(batch):
            raise RankMismatch(op=op.op, expected=len(axes) + len(batch), actual=t.rank)
        wanted = tuple(extents.get(axis, extent) for axis, extent in zip(axes, shape, strict=True))
        if axes == "nn" and not extents:  # square
            wanted = shape[::-1]
        if any(equal_extents(a, b) is False for a, b in zip(t.shape, (*wanted, *batch), strict=True)):
            if axes == "nn" and not extents:
                rows, columns = shape
                words = f"{op.op}: the matrix must be square, not {rows} x {columns}"
                raise ShapeMismatch(op=op.op, lhs=shape, rhs=wanted).saying(words)
            raise ShapeMismatch(op=op.op, lhs=(*wanted, *batch), rhs=t.shape)
        for axis, extent in zip(axes, shape, strict=True):
            if axis not in extents or isinstance(extent, int):
                extents[axis] = extent
        if {"m", "n"} <= extents.keys():
            m, n = extents["m"], extents["n"]
            extents.setdefault("k", m if equal_extents(m, n) is True else combine("min", m, n))
        extents |= {axis: e for axis, e in declared.bound(op, extents).items() if axis not in extents}
    return extents


def _execute(op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
    """The results of the op, each matrix of the batch by itself.

    Raises
    ------
    NumericalFailure
        A matrix is singular, not positive definite, or not finite; `cause` names it by its batch index (SEMANTICS C.2).
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
            raise NumericalFailure(op=op.op, dtype=DType.of(inputs[0]).name, cause=f"{which}: {error}") from None
        for result, part in zip(results, parts, strict=True):
            result[(..., *index)] = part
    return results


LINALG = register(Family(FAMILY, OPS, _infer, _execute))


# --- front end --------------------------------------------------------------------------------------------------------


def _apply(op: str, *operands: Value, **config: bool | str | int | float | None) -> tuple[Value, ...]:
    if config.get("derivative_eps") == DERIVATIVE_EPS:
        del config["derivative_eps"]
    config = {name: x.item() if isinstance(x, np.generic) else x for name, x in config.items()}
    return builder_of(*operands).apply_many(ops.Extension.of(FAMILY, op, config), *operands)


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


def slogdet(a: Value) -> tuple[Value, Value]:
    """Sign of the determinant (0 for 0, of modulus 1 otherwise) and the logarithm of its modulus."""
    packed, _, parity = lu_factor(a)
    return _apply("SignDetFromLuFactor", a, packed, parity)[0], _apply("LogAbsDetFromLuFactor", a, packed)[0]


def full_piv_lu(a: Value) -> tuple[Value, ...]:
    """P, L, U, Q, parity of P and Q together (real), of a square matrix."""
    return _apply("FullPivLu", a)


def full_piv_lu_solve(a: Value, b: Value, *, transpose_a: bool = False) -> Value:
    """X of `A X = B`, or of `A^T X = B`."""
    return _apply("FullPivLuSolve", a, b, transpose_a=transpose_a)[0]


def svd(a: Value, gauge: str = "Raw", derivative_eps: float = DERIVATIVE_EPS) -> tuple[Value, ...]:
    """U, S (descending, real), Vt; "CanonicalPivot" makes the largest entry of each column of U positive."""
    return _apply("Svd", a, gauge=gauge, derivative_eps=derivative_eps)


def svd_full(a: Value) -> tuple[Value, ...]:
    """U and Vt with all their columns and rows, and S."""
    return _apply("SvdFull", a)


def svdvals(a: Value) -> Value:
    return _apply("SvdVals", a)[0]


def qr(a: Value, gauge: str = "Raw") -> tuple[Value, ...]:
    """Q and R; "PositiveDiagonal" makes the diagonal of R positive."""
    return _apply("Qr", a, gauge=gauge)


def rank_revealing_qr(a: Value, gauge: str = "Raw", rtol: float = 0.0, atol: float = 0.0) -> tuple[Value, ...]:
    """Q, R, the order of the columns and the rank: `A[:, order] = Q R`.

    The rank is how many entries at the head of the diagonal of R have a modulus above `max(atol, rtol * |R[0, 0]|)`.
    """
    return _apply("RankRevealingQr", a, gauge=gauge, rtol=rtol, atol=atol)


def householder_qr(a: Value) -> tuple[Value, ...]:
    """LAPACK's state of a QR factorisation: R with the reflectors below it, and a coefficient for each reflector."""
    return _apply("HouseholderQrFactor", a)


def householder_qr_from_factors(q: Value, r: Value) -> tuple[Value, ...]:
    """The state of the product of two factors."""
    return _apply("HouseholderQrFromFactors", q, r)


def householder_qr_append(packed: Value, coefficients: Value, columns: Value) -> tuple[Value, ...]:
    """The state of the matrix with further columns."""
    return _apply("HouseholderQrAppend", packed, coefficients, columns)


def householder_qr_r(packed: Value, coefficients: Value, gauge: str = "Raw") -> Value:
    """R of a state; "PositiveDiagonal" as in `qr`."""
    return _apply("HouseholderQrR", packed, coefficients, gauge=gauge)[0]


def householder_qr_q(
    packed: Value, coefficients: Value, gauge: str = "Raw", *, start: int | None = None, end: int | None = None
) -> Value:
    """Columns `start` to `end` of all of Q; without either, the thin Q."""
    if start is None and end is None:
        return _apply("HouseholderQrThinQ", packed, coefficients, gauge=gauge)[0]
    return _apply("HouseholderQrQColumns", packed, coefficients, gauge=gauge, start=start or 0, end=end)[0]


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
