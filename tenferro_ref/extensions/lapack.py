"""LAPACK's routines as XLA's custom calls on CPU have them (`lapack_sgetrf_ffi`): operands, results and flags are the routine's.

They are for modules that have such calls. Batch axes come first, as in StableHLO; flags are LAPACK's letters. Results that a
routine leaves without a meaning (`GARBAGE`) are there, so that an instruction has the results of its call, and are zeros here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import DTypeMismatch, InvalidArgument, RankMismatch, ShapeMismatch
from tenferro_ref.extensions import linalg_kernels as kernels
from tenferro_ref.extensions.elimination import Matrix
from tenferro_ref.extensions.family import Family, check_count, check_dtype, read_config, register, reject
from tenferro_ref.extensions.linalg_kernels import finite, lapack
from tenferro_ref.ops import TensorType
from tenferro_ref.tensor import Array

FAMILY = "tenferro-lapack.ffi.v1"

Ports: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Routine:
    """One routine.

    Attributes
    ----------
    kernel
        `kernel(*matrices, **flags) -> results` of one matrix of the batch.
    operands, results
        The dtype of each (the matrix's "t", the "real" or "complex" one of it, "int") and its extents, behind the batch's:
        those of the matrix are m and n ("nn": it is square), k is the smaller of both, j one less than n, q at most k. The shape
        r is that of the last operand, which the matrix is applied to from the left or from the right.
    flags
        The letters that each flag may be; T and F are a boolean.
    matrix
        Which operand is the matrix.
    """

    kernel: Callable[..., tuple[Any, ...]]
    operands: Ports
    results: Ports
    flags: dict[str, str] = field(default_factory=dict)
    matrix: int = 0

    @property
    def square(self) -> bool:
        """Whether the matrix must be square."""
        return self.operands[self.matrix][1] == "nn"


def _potrf(a: Matrix, uplo: str) -> tuple[Matrix, int]:
    """The factor in one triangle; the other one keeps the matrix."""
    if uplo == "L":
        return np.where(np.tril(np.ones(a.shape, bool)), kernels.cholesky(a)[0], a), 0
    factor = kernels.cholesky(a.conj().T)[0].conj().T
    return np.where(np.triu(np.ones(a.shape, bool)), factor, a), 0


def _trsm(a: Matrix, b: Matrix, side: str, uplo: str, trans_x: str, diag: str) -> tuple[Matrix]:
    a = a.conj() if trans_x == "C" else a
    return kernels.triangular_solve(a, b, side == "L", uplo == "L", trans_x != "N", diag == "U")


def _getrf(a: Matrix) -> tuple[Matrix, Matrix, int]:
    packed, pivots, _ = kernels.lu_factor(a)
    return packed, pivots, first_zero(packed)


def first_zero(packed: Matrix) -> int:
    """`info` of getrf: the first pivot, from 1, that is zero; 0 if none is."""
    zeros = np.flatnonzero(packed.diagonal() == 0)
    return int(zeros[0]) + 1 if zeros.size else 0


def _orgqr(packed: Matrix, tau: Matrix) -> tuple[Matrix]:
    name = "ungqr" if np.iscomplexobj(packed) else "orgqr"
    return (lapack(name, packed, tau)(packed, tau)[0],)


def _ormqr(packed: Matrix, tau: Matrix, c: Matrix, left: str, transpose: str) -> tuple[Matrix]:
    """Q c or c Q, or with the adjoint of Q, of all the reflectors' product Q."""
    if left == "T":
        return (kernels.reflect(packed, tau, c, adjoint=transpose == "T"),)
    return (kernels.reflect(packed, tau, c.conj().T, adjoint=transpose == "F").conj().T,)


def _geqp3(a: Matrix, pivots: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """QR of the columns in an order, counted from 1, that makes the diagonal of R fall."""
    if pivots.any():
        raise np.linalg.LinAlgError("columns that must come first are not supported")
    packed, order, tau, _, _ = lapack("geqp3", a)(finite(a))
    return packed, order, tau


def _gehrd(a: Matrix) -> tuple[Matrix, Matrix, int]:
    """H with the vectors of the reflectors below its subdiagonal, and the coefficient of each."""
    if len(a) < 2:
        return a, np.zeros(0, a.dtype), 0
    return lapack("gehrd", a)(a)  # type: ignore[no-any-return]


def _sytrd(a: Matrix, uplo: str) -> tuple[Matrix | int, ...]:
    """T's diagonals, and in one triangle of the matrix these with the vectors of the reflectors."""
    if not len(a):
        none = np.zeros(0, a.dtype)
        return a, none.real, none.real, none, 0
    name, lower = "hetrd" if np.iscomplexobj(a) else "sytrd", uplo == "L"
    packed, diagonal, beside, tau, _ = lapack(name, a)(a, lower=lower)
    kept = np.tril(np.ones(a.shape, bool)) if lower else np.triu(np.ones(a.shape, bool))
    return np.where(kept, packed, a), diagonal, beside, tau, 0


def _gees(a: Matrix, mode: str, sort: str) -> tuple[Matrix | int, ...]:
    form, _, *values, vectors, _, _ = lapack("gees", a)(lambda *_: 0, finite(a))
    size = np.linalg.norm(vectors, axis=0)
    if np.iscomplexobj(a) and (np.abs(size - 1) > 64 * len(a) * np.finfo(a.dtype).eps).any():  # finding 0239
        vectors = vectors / size
        form = np.triu(vectors.conj().T @ a @ vectors)
        values = [form.diagonal()]
    return form, vectors if mode == "V" else 0, *values, 0, 0


def _gtsv(below: Matrix, diagonal: Matrix, above: Matrix, b: Matrix) -> tuple[Matrix | int, ...]:
    from scipy.linalg import solve_banded

    if len(b) == 1 and not diagonal[0]:
        raise np.linalg.LinAlgError("it is singular")
    bands = np.stack([np.roll(above, 1), diagonal, np.roll(below, -1)])
    return 0, 0, 0, solve_banded((1, 1), bands, b, check_finite=False), 0


def _gesdd(a: Matrix, mode: str) -> tuple[Matrix | int, ...]:
    if mode == "N":
        return 0, kernels.svdvals(a)[0], 0, 0, 0
    u, values, vt = np.linalg.svd(finite(a), full_matrices=mode == "A")
    return 0, values, u, vt, 0


def _syevd(a: Matrix, mode: str, uplo: str) -> tuple[Matrix | int, ...]:
    half = finite(np.triu(a) if uplo == "U" else np.tril(a))  # the other one is not read
    values, vectors = np.linalg.eigh(half, "U" if uplo == "U" else "L")
    return vectors if mode == "V" else 0, values, 0


def _geev(a: Matrix, compute_left: str, compute_right: str) -> tuple[Matrix | int, ...]:
    from scipy.linalg import eig

    # xGEEV of the OpenBLAS that SciPy brings along does not scale the values of very small or large matrices back (finding 0203)
    limit = np.finfo(a.dtype).maxexp - 8
    power = int(np.clip(np.frexp(np.abs(finite(a)).max(initial=0.0))[1], -limit, limit))
    scale = a.real.dtype.type(2.0) ** power
    values, left, right = eig(a / scale, left=True, right=True)
    values = values * scale
    parts = (values,) if np.iscomplexobj(a) else (values.real, values.imag)
    return *parts, left if compute_left == "V" else 0, right if compute_right == "V" else 0, 0


_UPLO = {"uplo": "LU"}
_ANY, _SQUARE = ("t", "mn"), ("t", "nn")
_DIAGONAL, _TAU, _OTHER, _INFO = ("t", "m"), ("t", "q"), ("t", "r"), ("int", "")
_VECTORS = (("complex", "nn"), ("complex", "nn"), _INFO)
_SVD = (_ANY, ("real", "k"))

_GESDD = Routine(_gesdd, (_ANY,), (*_SVD, ("t", "mk"), ("t", "kn"), _INFO), {"mode": "ASN"})

#: Every routine, by its name without the letter of the dtype. Results of gesdd and gesvd are those of the mode "S"; gehrd's
#: range of rows is all of them.
ROUTINES: dict[str, Routine] = {
    "potrf": Routine(_potrf, (_SQUARE,), (_SQUARE, _INFO), _UPLO),
    "trsm": Routine(_trsm, (_SQUARE, _OTHER), (_OTHER,), {"side": "LR", **_UPLO, "trans_x": "NTC", "diag": "NU"}),
    "getrf": Routine(_getrf, (_ANY,), (_ANY, ("int", "k"), _INFO)),
    "geqrf": Routine(kernels.geqrf, (_ANY,), (_ANY, ("t", "k"))),
    "orgqr": Routine(_orgqr, (_ANY, _TAU), (_ANY,)),
    "geqp3": Routine(_geqp3, (_ANY, ("int", "n")), (_ANY, ("int", "n"), ("t", "k"))),
    "ormqr": Routine(_ormqr, (_ANY, _TAU, _OTHER), (_OTHER,), {"left": "TF", "transpose": "TF"}),
    "gesdd": _GESDD,
    "gesvd": _GESDD,
    "syevd": Routine(_syevd, (_SQUARE,), (_SQUARE, ("real", "n"), _INFO), {"mode": "VN", **_UPLO}),
    "geev": Routine(_geev, (_SQUARE,), _VECTORS, {"compute_left": "VN", "compute_right": "VN"}),
    "gehrd": Routine(_gehrd, (_SQUARE,), (_SQUARE, ("t", "j"), _INFO)),
    "sytrd": Routine(_sytrd, (_SQUARE,), (_SQUARE, ("real", "n"), ("real", "j"), ("t", "j"), _INFO), _UPLO),
    "gees": Routine(_gees, (_SQUARE,), (_SQUARE, _SQUARE, _INFO, _INFO), {"mode": "VN", "sort": "N"}),
    "gtsv": Routine(_gtsv, (*[_DIAGONAL] * 3, _ANY), (*[_DIAGONAL] * 3, _ANY, _INFO), matrix=3),
}
#: The names of complex routines that differ.
COMPLEX_NAMES = {"ungqr": "orgqr", "unmqr": "ormqr", "heevd": "syevd", "hetrd": "sytrd"}


def config_of(op: ops.Extension) -> dict[str, str]:
    """The flags of a routine.

    Raises
    ------
    InvalidArgument
        A flag that the routine has not, or a letter that it does not know.
    """
    known = ROUTINES[op.op].flags
    config = read_config(op, {name: letters[0] for name, letters in known.items()})
    for name, letter in config.items():
        if len(letter) != 1 or letter not in known[name]:
            reject(op, f"{letter!r} is none of {', '.join(known[name])}", name)
    return config


def garbage(op: ops.Extension, results: int) -> Collection[int]:
    """Which results have no meaning."""
    config = config_of(op)
    if op.op in ("gesdd", "gesvd"):
        return (0, 2, 3) if config["mode"] == "N" else (0,)
    if op.op == "gtsv":  # the factors have one, but nobody reads them
        return (0, 1, 2)
    if op.op == "gees":  # nothing is sorted, and nothing counted
        return (*((1,) if config["mode"] == "N" else ()), results - 2)
    if op.op == "syevd" and config["mode"] == "N":
        return (0,)
    if op.op == "geev":
        sides = zip(("compute_left", "compute_right"), (results - 3, results - 2), strict=True)
        return tuple(i for name, i in sides if config[name] == "N")
    return ()


def _infer(op: ops.Extension, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Types of the results.

    Raises
    ------
    InvalidArgument
        Flags that the routine does not have.
    Unsupported, DTypeMismatch
        A dtype other than F32, F64, C32, C64; an operand of another dtype than the matrix asks for.
    RankMismatch, ShapeMismatch
        No matrix, one that must be square (or have no more columns than rows) and is not, or another operand that does not fit.
    """
    routine, config = ROUTINES[op.op], config_of(op)
    check_count(op, inputs, len(routine.operands))
    a = inputs[routine.matrix]
    check_dtype(op, a.dtype, INEXACT)
    if a.rank < 2:
        raise RankMismatch(op=op.op, expected=2, actual=a.rank)
    (*batch, m, n) = a.static_shape
    if (routine.square and m != n) or (op.op == "orgqr" and m < n):
        raise ShapeMismatch(op=op.op, lhs=(m, n), rhs=(n, m))
    dtypes = {"t": a.dtype, "real": a.dtype.real, "complex": a.dtype.complex, "int": DType.I32}
    extents = {"m": m, "n": n, "k": min(m, n), "j": max(n - 1, 0)}
    for t, (letter, axes) in zip(inputs, routine.operands, strict=True):
        if t.dtype is not dtypes[letter]:
            raise DTypeMismatch(op=op.op, lhs=dtypes[letter].name, rhs=t.dtype.name)
        wanted = _wanted(t.static_shape, axes, config, extents)
        if t.static_shape != (*batch, *wanted):
            raise ShapeMismatch(op=op.op, lhs=(*batch, *wanted), rhs=t.static_shape)
    results = routine.results
    if op.op == "geev" and not a.dtype.is_complex:
        results = (("real", "n"), ("real", "n"), *results)
    elif op.op == "geev":
        results = (("t", "n"), *results)
    elif op.op == "gees":
        values = [("t", "n")] if a.dtype.is_complex else [("real", "n"), ("real", "n")]
        results = (*results[:2], *values, *results[2:])
    elif op.op in ("gesdd", "gesvd") and config["mode"] != "S":
        results = (*_SVD, ("t", "mm"), ("t", "nn"), _INFO)
    return tuple(
        TensorType(
            dtypes[letter], inputs[-1].shape if axes == "r" else (*batch, *(extents[axis] for axis in axes))
        )
        for letter, axes in results
    )  # fmt: skip


def _wanted(
    shape: tuple[int, ...], axes: str, config: Mapping[str, str], extents: Mapping[str, int]
) -> tuple[int, ...]:
    """The extents, behind the batch's, that an operand of this shape must have."""
    if axes == "q":  # as many reflectors as it has, which may be fewer than there can be
        return (min((extents["k"], *shape[-1:])),)
    if axes != "r":
        return tuple(extents[axis] for axis in axes)
    left = config.get("side") == "L" or config.get("left") == "T"
    return (extents["m"], *shape[-1:]) if left else (*shape[-2:-1], extents["m"])


def _execute(op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
    """The results of the routine, each matrix of the batch by itself.

    Raises
    ------
    InvalidArgument
        A matrix that the routine cannot work on; the message names it by its batch index.
    """
    types = _infer(op, tuple(TensorType(DType.of(x), x.shape) for x in inputs))
    results, routine = [np.zeros(t.static_shape, t.dtype.numpy, order="F") for t in types], ROUTINES[op.op]
    for index in np.ndindex(inputs[routine.matrix].shape[:-2]):
        try:
            with np.errstate(all="ignore"):
                parts = routine.kernel(*(x[index] for x in inputs), **config_of(op))
        except np.linalg.LinAlgError as error:
            which = f"matrix {list(index)} of the batch" if index else "the matrix"
            raise InvalidArgument(op=op.op, argument="a", detail=f"{which}: {error}") from None
        for result, part in zip(results, parts, strict=True):
            result[index] = part
    return results


LAPACK = register(Family(FAMILY, ROUTINES, _infer, _execute))
