"""Enclosures of decompositions and solutions in real arithmetic: the true factors, by what `proofs` says of them.

They are for programs that are equal over the real numbers (`oracle.identities`): where several factors are equally good, it is the one
that the kernel of the reference is near to, so that two programs get the same one of the same matrix. What platforms give is
judged by residuals instead (`oracle.decompositions`), since a backward stable factor may be far from the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from oracle import configurations
from oracle.enclosure import proofs
from oracle.enclosure.formats import Array
from oracle.enclosure.freedoms import real
from oracle.enclosure.model import Model
from oracle.enclosure.proofs import Near, known, lower, upper
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Enclosure, Interval, point, rectangle
from tenferro_ref import ops
from tenferro_ref.extensions import lapack, linalg
from tenferro_ref.extensions import linalg_kernels as kernels
from tenferro_ref.table import Table

#: What a row gives: floats, or integers that are known.
Results: TypeAlias = Sequence[Near | Array | int]
#: `row(flags, *operands)` of one matrix of the batch; operands of integers are arrays.
Row: TypeAlias = Callable[..., Results]
#: By family and op.
FACTORS: Table[Row] = Table("enclosure in real arithmetic")


def knows(model: Model, op: ops.Op) -> bool:
    """Whether the results of an op have enclosures here."""
    return real.granted(model) and isinstance(op, ops.Extension) and op.key in FACTORS


def enclosed(op: ops.Extension, contexts: Sequence[Context], operands: Sequence[Enclosure]) -> list[Enclosure]:
    """The enclosures of all results; where nothing is proved of a matrix, anything."""
    shapes = [e.shape for e in operands]
    ours = op.family == linalg.FAMILY
    flags = configurations.flags(op) if ours else lapack.config_of(op)
    batch = shapes[0][2:] if ours else shapes[0][:-2]
    centres = [np.zeros(s, c.dtype.numpy) for s, c in zip(_result_shapes(op, operands), contexts, strict=True)]
    centres = [c.astype(np.result_type(c.dtype, np.float64)) if c.dtype.kind in "fc" else c for c in centres]
    errors = [np.full(c.shape, np.inf) for c in centres]
    values = [_near(e) for e in operands]
    for index in np.ndindex(*batch):
        at = (..., *index) if ours else index
        given = [Near(v.mid[at], v.rad[at]) if isinstance(v, Near) else v[at] for v in values]
        if not all(np.isfinite(v.size).all() for v in given if isinstance(v, Near)):
            continue
        try:
            made = FACTORS[op.key](flags, *given)
        except np.linalg.LinAlgError:
            continue
        for centre, error, result in zip(centres, errors, made, strict=True):
            centre[at], error[at] = (result.mid, result.rad) if isinstance(result, Near) else (result, 0.0)
    return [
        _outward(c, centre, error) if c.dtype.is_float or c.dtype.is_complex else point(centre)
        for c, centre, error in zip(contexts, centres, errors, strict=True)
    ]


def _outward(c: Context, centre: Array, error: Array) -> Enclosure:
    """Bounds in the result's dtype of all numbers within `error`, which may be none of that dtype."""
    f, sides = c.real.format, []
    ok = np.isfinite(error) & (np.abs(centre) + error < f.max / 4)
    for part in (centre.real, centre.imag) if c.dtype.is_complex else (centre.real,):
        low = f.greatest_at_or_below(np.where(ok, part - error, -np.inf))
        high = f.least_at_or_above(np.where(ok, part + error, np.inf))
        zero = (low <= 0) & (high >= 0)
        sides.append(Interval(c.dtype.real, low, high, ~ok, zero, zero))
    return rectangle(*sides) if c.dtype.is_complex else sides[0]


def _result_shapes(op: ops.Extension, operands: Sequence[Enclosure]) -> list[tuple[int, ...]]:
    return [t.static_shape for t in op.result_types(tuple(ops.TensorType(e.dtype, e.shape) for e in operands))]


def _near(x: Enclosure) -> Near | Array:
    """All numbers of an enclosure; those that may not be finite are infinitely far."""
    if isinstance(x, Interval) and not x.dtype.is_float:
        return x.lo
    mids, rads = [], []
    for part in x.parts:
        open_ = part.nan | ~np.isfinite(part.lo) | ~np.isfinite(part.hi)
        lo, hi = (np.where(open_, 0.0, v).astype(np.float64) for v in (part.lo, part.hi))
        mids.append(np.where(lo == hi, lo, lo / 2 + hi / 2))
        rads.append(
            np.where(open_, np.inf, np.where(lo == hi, 0.0, (hi - lo) / 2 + np.spacing(np.abs(hi) + np.abs(lo))))
        )
    if isinstance(x, Interval):
        return Near(mids[0], rads[0])
    return Near(mids[0] + 1j * mids[1], rads[0] + rads[1])


# --- linalg -----------------------------------------------------------------------------------------------------------


def _row(*names: str, family: str = linalg.FAMILY) -> Callable[[Row], Row]:
    return FACTORS.row(*((family, name) for name in names))


@_row("Cholesky")
def _(flags: Any, a: Near) -> Results:
    return [proofs.cholesky(proofs.hermitian(a))]


@_row("Solve")
def _(flags: Any, a: Near, b: Near) -> Results:
    return [proofs.solved(a, b)]


@_row("FullPivLuSolve")
def _(flags: Any, a: Near, b: Near) -> Results:
    return [proofs.solved(_transposed(a) if flags["transpose_a"] else a, b)]


@_row("TriangularSolve")
def _(flags: Any, a: Near, b: Near) -> Results:
    return [_triangular(a, b, flags["left_side"], flags["lower"], flags["transpose_a"], flags["unit_diagonal"])]


def _triangular(a: Near, b: Near, left: bool, low: bool, transpose: bool, unit: bool) -> Near:
    a = lower(a) if low else upper(a)
    if unit:
        np.fill_diagonal(a.mid, 1.0)
        np.fill_diagonal(a.rad, 0.0)
    a = _transposed(a) if transpose else a
    return proofs.solved(a, b) if left else proofs.solved_right(a, b)


@_row("Lu")
def _(flags: Any, a: Near) -> Results:
    p, low, up, parity = kernels.lu(a.mid)
    return [p, *proofs.lu(_ordered(a, _order(p)), low, up), parity]


@_row("LuFactor")
def _(flags: Any, a: Near) -> Results:
    _, pivots, parity = kernels.lu_factor(a.mid)
    return [_packed(a), pivots, parity]


def _packed(a: Near) -> Near:
    """L below the diagonal, U elsewhere."""
    p, low, up, _ = kernels.lu(a.mid)
    left, right = proofs.lu(_ordered(a, _order(p)), low, up)
    mid, rad = (np.zeros(a.mid.shape, v.dtype) for v in (a.mid, a.rad))
    k = min(a.mid.shape)
    for whole, low, up in ((mid, left.mid, right.mid), (rad, left.rad, right.rad)):
        whole[:, :k] += np.tril(low, -1)
        whole[:k] += np.triu(up)
    return Near(mid, rad)


@_row("LuSolvePrepared")
def _(flags: Any, a: Near, packed: Near, pivots: Array, b: Near) -> Results:
    order = np.arange(len(a.mid))
    for i, other in enumerate(pivots - 1):
        order[[i, other]] = order[[other, i]]
    packed = Near(packed.mid.conj(), packed.rad) if flags["conjugate_a"] else packed
    low, up = proofs.unit_lower(packed), upper(packed)
    if not flags["transpose_a"]:
        return [proofs.solved(up, proofs.solved(low, _ordered(b, order)))]
    made = proofs.solved(_transposed(low), proofs.solved(_transposed(up), b))
    return [_ordered(made, order.argsort())]


@_row("FullPivLu")
def _(flags: Any, a: Near) -> Results:
    p, low, up, q, parity = kernels.full_piv_lu(a.mid)
    columns = _transposed(_ordered(_transposed(a), _order(q)))  # A Q^T
    left, right = proofs.lu(_ordered(columns, _order(p)), low, up)
    return [p, left, right, q, parity]


@_row("Qr")
def _(flags: Any, a: Near) -> Results:
    q, r = proofs.qr(a, kernels.qr(a.mid, "Raw")[1])
    if flags["gauge"] == "Raw":
        return [q, r]
    signs = known(np.diag(np.where(r.mid.diagonal().real < 0, -1.0, 1.0)))
    return [q @ signs, signs @ r]


@_row("Eigh")
def _(flags: Any, a: Near) -> Results:
    values, vectors = _eigh(a)
    return [values, vectors if flags["gauge"] == "Raw" else vectors @ _phases(vectors)]


@_row("EighVals")
def _(flags: Any, a: Near) -> Results:
    return [_eigh(a)[0]]


def _eigh(a: Near) -> tuple[Near, Near]:
    return proofs.eigh(proofs.hermitian(a), *kernels.eigh(a.mid, "Raw"))


def _phases(columns: Near) -> Near:
    """The conjugate of the phase of the largest element of each column, on a diagonal."""
    if not columns.mid.size:
        return known(np.eye(columns.mid.shape[1], dtype=columns.mid.dtype))
    at = np.abs(columns.mid).argmax(0), np.arange(columns.mid.shape[1])
    size = np.abs(columns.mid[at])
    return Near(np.diag(columns.mid[at].conj() / size), np.diag(4 * columns.rad[at] / size + np.finfo(float).eps * 4))


@_row("Svd")
def _(flags: Any, a: Near) -> Results:
    u, s, vh = proofs.svd(a, *kernels.svd(a.mid, "Raw"))
    if flags["gauge"] == "Raw":
        return [u, s, vh]
    phases = _phases(u)
    return [u @ phases, s, phases.adjoint @ vh]


@_row("SvdVals")
def _(flags: Any, a: Near) -> Results:
    return [proofs.svd(a, *kernels.svd(a.mid, "Raw"))[1]]


@_row("Eig")
def _(flags: Any, a: Near) -> Results:
    return [*proofs.eig(a, *kernels.eig(a.mid))]


@_row("EigVals")
def _(flags: Any, a: Near) -> Results:
    return [proofs.eig(a, *kernels.eig(a.mid))[0]]


def _transposed(a: Near) -> Near:
    return Near(a.mid.T, a.rad.T)


def _order(permutation: Array) -> Array:
    """Where each row of a permutation matrix has its 1."""
    return permutation.argmax(1) if permutation.size else np.arange(0)


def _ordered(a: Near, rows: Array) -> Near:
    return Near(a.mid[rows], a.rad[rows])


# --- routines of LAPACK, which derivatives by JAX call ----------------------------------------------------------------


@_row("potrf", family=lapack.FAMILY)
def _(flags: Any, a: Near) -> Results:
    if flags["uplo"] == "L":
        made, kept = proofs.cholesky(proofs.hermitian(a)), np.tril(np.ones(a.mid.shape, bool))
    else:
        made, kept = proofs.cholesky(proofs.hermitian(a.adjoint)).adjoint, np.triu(np.ones(a.mid.shape, bool))
    return [Near(np.where(kept, made.mid, a.mid), np.where(kept, made.rad, a.rad)), 0]


@_row("trsm", family=lapack.FAMILY)
def _(flags: Any, a: Near, b: Near) -> Results:
    a = Near(a.mid.conj(), a.rad) if flags["trans_x"] == "C" else a
    return [
        _triangular(a, b, flags["side"] == "L", flags["uplo"] == "L", flags["trans_x"] != "N", flags["diag"] == "U")
    ]


@_row("getrf", family=lapack.FAMILY)
def _(flags: Any, a: Near) -> Results:
    return [_packed(a), kernels.lu_factor(a.mid)[1], 0]


@_row("geqrf", family=lapack.FAMILY)
def _(flags: Any, a: Near) -> Results:
    q, r = proofs.qr(a, np.triu(kernels.geqrf(a.mid)[0][: min(a.mid.shape)]))
    y, tau = proofs.reflectors(q)
    mid, rad = (np.zeros(a.mid.shape, v.dtype) for v in (a.mid, a.rad))
    k = len(tau.mid)
    for whole, up, vectors in ((mid, r.mid, y.mid), (rad, r.rad, y.rad)):
        whole[:k] += np.triu(up)
        whole[:, :k] += np.tril(vectors, -1)
    return [Near(mid, rad), tau]


@_row("orgqr", family=lapack.FAMILY)
def _(flags: Any, packed: Near, tau: Near) -> Results:
    return [proofs.reflected(proofs.unit_lower(packed[:, : len(tau.mid)]), tau, packed.mid.shape[1])]


@_row("gesdd", "gesvd", family=lapack.FAMILY)
def _(flags: Any, a: Near) -> Results:
    if flags["mode"] == "A" and a.mid.shape[0] != a.mid.shape[1]:
        raise np.linalg.LinAlgError("vectors beyond the singular ones are any")
    u, s, vh = proofs.svd(a, *kernels.svd(a.mid, "Raw"))
    none = flags["mode"] == "N"
    return [0, s, 0 if none else u, 0 if none else vh, 0]


@_row("syevd", family=lapack.FAMILY)
def _(flags: Any, a: Near) -> Results:
    values, vectors = _eigh(a if flags["uplo"] == "L" else a.adjoint)
    return [0 if flags["mode"] == "N" else vectors, values, 0]


@_row("geev", family=lapack.FAMILY)
def _(flags: Any, a: Near) -> Results:
    if flags["compute_left"] == "V":
        raise np.linalg.LinAlgError("left vectors are scaled by themselves")
    values, vectors = proofs.eig(a, *kernels.eig(a.mid))
    if np.iscomplexobj(a.mid):
        parts = [values]
    else:
        parts = [Near(values.mid.real, values.rad), Near(values.mid.imag, values.rad)]
    return [*parts, 0, vectors if flags["compute_right"] == "V" else 0, 0]
