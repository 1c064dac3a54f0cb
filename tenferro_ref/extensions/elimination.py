"""Elimination and substitution where a pivot is subnormal, which OpenBLAS gets wrong (findings 0213 and 0214).

Its `getrf` leaves the column below such a pivot as it is, and its triangular solvers multiply by the reciprocal of a
diagonal element, which overflows. Here all is computed in the next wider format and rounded once.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Matrix: TypeAlias = np.ndarray[Any, Any]
_WIDER = {"f": np.float64, "d": np.longdouble, "F": np.complex128, "D": np.clongdouble}


def is_needed(pivots: Matrix) -> bool:
    """Whether one of the pivots is subnormal."""
    size = np.abs(pivots)
    return bool(((size > 0) & (size < np.finfo(pivots.dtype).tiny)).any())


def _wide(a: Matrix) -> Matrix:
    return a.astype(_WIDER[a.dtype.char])


def eliminated(a: Matrix) -> tuple[Matrix, Matrix]:
    """L and U of a matrix in one, and for each row the row (from 0) that it was exchanged with: partial pivoting."""
    packed, pivots = _wide(a), np.arange(min(a.shape))
    with np.errstate(all="ignore"):
        for j in range(len(pivots)):
            chosen = j + int(np.abs(packed[j:, j]).argmax())
            pivots[j] = chosen
            packed[[j, chosen]] = packed[[chosen, j]]
            if packed[j, j] != 0:
                packed[j + 1 :, j] /= packed[j, j]
                packed[j + 1 :, j + 1 :] -= np.outer(packed[j + 1 :, j], packed[j, j + 1 :])
        return packed.astype(a.dtype), pivots


def substituted(a: Matrix, b: Matrix, *, lower: bool) -> Matrix:
    """X of `A X = B` for a triangular A without zeros in its diagonal; the other triangle is not read."""
    n = len(a)
    matrix, x = _wide(a), _wide(b)
    with np.errstate(all="ignore"):
        for i in range(n) if lower else reversed(range(n)):
            known = slice(0, i) if lower else slice(i + 1, n)
            x[i] = (x[i] - matrix[i, known] @ x[known]) / matrix[i, i]
        return x.astype(b.dtype)
