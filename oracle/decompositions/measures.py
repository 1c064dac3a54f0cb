"""What matrices are measured by: the bounds of a dtype, norms, residuals, and the checks made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from oracle.checks import Check
from oracle.enclosure.complexes import PRODUCT, RECIPROCAL
from oracle.enclosure.formats import FORMATS
from tenferro_ref.dtype import DType

Matrix: TypeAlias = np.ndarray[Any, Any]
Matrices: TypeAlias = Sequence[Matrix]

#: What is demanded for Higham's c in gamma~_k = c k u / (1 - c k u), in real and in complex arithmetic.
SMALL = {False: 8, True: 24}
#: How many underflows of real numbers one of a real, or of a complex, product is at most: in each part two products and their sum.
PARTS = {False: 1.0, True: 3 * 2**0.5}
#: Units of a sum of k products, beside k: one addition less, a product, and one by the rounded reciprocal of a divisor.
BESIDE = {False: 2.0, True: PRODUCT + RECIPROCAL - 1}


@dataclass(frozen=True)
class Scale:
    """Bounds of one dtype.

    Attributes
    ----------
    max
        The largest number.
    tiny
        The least normal number: iterations and Householder vectors may be off by as much.
    lost
        What a subnormal product or quotient may be off: the least subnormal number, or `tiny` where subnormals are flushed; of complex
        numbers that of each part, which is two products and their sum.
    """

    unit: float
    complex: bool
    max: float
    tiny: float
    lost: float
    wide_unit: float

    def eliminated(self, k: int) -> float:
        """gamma of a sum of k products, divided by something: whatever the order, with or without reciprocals and FMA."""
        return gamma((k + BESIDE[self.complex]) * self.unit)

    def demanded(self, k: int) -> float:
        """gamma~_k."""
        return gamma(SMALL[self.complex] * k * self.unit)

    @property
    def flushes(self) -> bool:
        """Whether subnormal numbers may be read as zeros, or made zeros."""
        return self.lost >= self.tiny

    def reflected(self, a: Matrix) -> float:
        """What a column's norm may be off by underflows where reflectors make a triangle of `a`, one after another.

        Of `a - tau v (v^T a)` there are as many products and sums as rows, times tau of at most 2 and elements of v of at most 1;
        and the product and the difference.
        """
        rows = len(a)
        return float(min(a.shape) * np.sqrt(rows) * (4 * rows + 2) * self.tiny * PARTS[self.complex])

    def holds(self, *sizes: Matrix) -> bool:
        """Whether no sum whose terms have these moduli together overflows, of complex products neither; NaN is too large."""
        return all(bool((x < self.max / 4).all()) for x in sizes)

    def divides(self, x: Matrix) -> bool:
        """Whether no quotient of a few elements by one of these overflows, nor one by its square: complex numbers have that."""
        return bool((np.abs(x) > self.tiny**0.25).all())

    def moderate(self, x: Matrix) -> bool:
        """Whether that is so of all elements but zeros."""
        return self.divides(x[x != 0])

    def residual(self, factors: Sequence[Matrix], minus: Matrix) -> tuple[Matrix, Matrix]:
        """The product of `factors` less `minus`, and how far the evaluation of that may be off."""
        product, size, roundings = factors[0], np.abs(factors[0]), 4.0
        for f in factors[1:]:
            product, size, roundings = product @ f, size @ np.abs(f), roundings + len(f) + BESIDE[True]
        return product - minus, gamma(roundings * self.wide_unit) * (size + np.abs(minus))


def gamma(ku: float) -> float:
    """`ku / (1 - ku)`, infinite from `ku` = 0.5 on."""
    return ku / (1 - ku) if ku < 0.5 else np.inf


def scale_of(x: Matrix, flushes: bool) -> Scale:
    """The bounds of the dtype of a matrix, before it is made wider."""
    f = FORMATS[DType.of(x).real]
    lost, is_complex = f.min_normal if flushes else f.least_subnormal, x.dtype.kind == "c"
    return Scale(f.unit, is_complex, f.max, f.min_normal, lost * PARTS[is_complex], f.wide_unit)


def wide(x: Matrix) -> Matrix:
    """In the dtype in which residuals are evaluated; integers as they are."""
    if x.dtype.kind == "i":
        return x
    kinds = {"f4": np.float64, "f8": np.longdouble, "c8": np.complex128, "c16": np.clongdouble}
    return x.astype(kinds[x.dtype.str[1:]])


# --- measures -------------------------------------------------------------------------------------------------------


def norm(x: Matrix) -> float:
    """Frobenius norm."""
    return float(np.sqrt((np.abs(x) ** 2).sum()))


def columns(x: Matrix) -> Matrix:
    """2-norms of the columns."""
    return np.asarray(np.sqrt((np.abs(x) ** 2).sum(0)))


def h(x: Matrix) -> Matrix:
    """The conjugate transpose."""
    return x.conj().T


def excess(error: Matrix, bound: Matrix) -> tuple[float, float]:
    """The element whose error is furthest beyond its bound."""
    if not error.size:
        return 0.0, 0.0
    worst = np.unravel_index(np.argmax(np.abs(error) - bound), error.shape)
    return float(np.abs(error[worst])), float(bound[worst])


def zero(name: str, x: Matrix) -> Check:
    """Every element is exactly zero."""
    return Check(name, float(np.abs(x).max(initial=0.0)), 0.0)


def within(name: str, off: tuple[Matrix, Matrix], bound: Matrix) -> Check:
    """A residual, element by element."""
    return Check(name, *excess(off[0], bound + off[1]))


def within_norm(name: str, off: tuple[Matrix, Matrix], bound: float) -> Check:
    """A residual, by its Frobenius norm."""
    return Check(name, norm(off[0]), bound + norm(off[1]))


def orthogonal(s: Scale, name: str, q: Matrix, bound: float) -> Check:
    """Columns, against the identity (of its norm-wise distance from an orthogonal matrix twice as much)."""
    k = q.shape[1]
    return within_norm(name, s.residual((h(q), q), np.eye(k)), 2 * np.sqrt(k) * bound)


def descending(s: Scale, x: Matrix) -> Check:
    """Subnormal numbers may be compared as zeros."""
    return Check("order", float(np.maximum(np.diff(x), 0).max(initial=0.0)), s.tiny)


def positive(s: Scale, columns: Matrix) -> Check:
    """A gauge: the largest entry of each column, or one as large, is positive (SEMANTICS 6)."""
    size = np.abs(columns)
    greatest = size.max(0, initial=0.0)
    largest = size >= greatest * (1 - 16 * s.unit)
    off = np.where(largest, np.abs(columns - size), np.inf).min(0, initial=np.inf) / np.where(
        greatest == 0, 1, greatest
    )
    return Check("gauge", float(off.max(initial=0.0)), 16 * s.unit)


def symmetrised(a: Matrix) -> Matrix:
    """From its lower triangle, which is all that is read."""
    low = np.tril(a, -1)
    return np.asarray(low + h(low) + np.diag(np.diag(a).real))


def standard(a: Matrix) -> Matrix:
    """For LAPACK, which has no wider type than float64."""
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
