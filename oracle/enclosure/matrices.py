"""Contractions of more products than are held at once: bounds of all their sums by a few products of matrices.

For numbers within `rad` of `mid`, `|x y - mid_x mid_y| <= |mid_x| rad_y + rad_x (|mid_y| + rad_y)` (Rump 1999). A product of matrices
in float64 is off by at most `gamma_k |mid_x| |mid_y|`, in whatever order BLAS adds (Higham 2002, 3.5), and by what underflows.
"""

from __future__ import annotations

import numpy as np

from oracle.enclosure.bounds import any_order
from oracle.enclosure.formats import Array, quantum
from oracle.enclosure.freedoms import flush
from oracle.enclosure.origin import Terms
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval

#: Half the spacing of float64 at 1, and what underflows of one product.
UNIT, LEAST = 2.0**-53, 2.0**-1074


def product(x: Array, y: Array) -> Array:
    """Sums over the last axis: (m, 1, b, k) and (1, n, b, k) give (m, n, b)."""
    left, right = x[:, 0].transpose(1, 0, 2), y[0].transpose(1, 2, 0)
    return np.asarray(np.matmul(left, right).transpose(1, 2, 0))


def dot(c: Context, x: Interval, y: Interval) -> Interval:
    """As `sums.total` of all products, of floats: (m, 1, b, k) and (1, n, b, k) give (m, n, b).

    A row with a NaN gives NaN; one that may be infinite, and sums that may overflow, give anything.
    """
    f, k = c.format, x.shape[-1]
    known, none = np.ones((), bool), np.zeros((), bool)
    mids, radii, quanta = [], [], []
    for v in (x, y):
        usable = ~v.nan & np.isfinite(v.lo) & np.isfinite(v.hi)
        known, none = known & usable.all(-1), none | v.empty.any(-1)
        lo, hi = np.where(usable, v.lo, 0.0), np.where(usable, v.hi, 0.0)
        mid = lo / 2 + hi / 2 if not v.is_point else lo
        mids.append(mid)
        radii.append(None if v.is_point else np.maximum(hi - mid, mid - lo) * (1 + 8 * UNIT))
        one = usable & (lo == hi)
        quanta.append(np.where(one.all(-1), quantum(lo).min(-1, initial=np.inf), 0.0))
    sizes = [np.abs(mid) if rad is None else np.abs(mid) + rad for mid, rad in zip(mids, radii, strict=True)]
    sums, size = product(*mids), product(*sizes) * (1 + 2 * (k + 4) * UNIT) + 2 * k * LEAST
    spread = np.zeros(())
    if radii[1] is not None:
        spread = spread + product(np.abs(mids[0]), radii[1])
    if radii[0] is not None:
        spread = spread + product(radii[0], sizes[1])
    # beside the products of matrices, this covers what is rounded below
    noise = (k + 16) * UNIT * (1 + k * UNIT) * size + k * LEAST
    spread = spread * (1 + 2 * (k + 8) * UNIT) + noise
    common = quanta[0] * quanta[1]
    common = np.broadcast_to(np.where(common >= c.lost_below, common, 0.0), sums.shape)
    exact = size < common / f.unit
    off = any_order(f, np.abs(sums) + spread, size, k - 1, True) + k * flush.lost_in_contraction(c.model, f)
    known = known & (size + off < f.max / 2)
    lo, hi = np.where(exact, sums, sums - spread - off), np.where(exact, sums, sums + spread + off)
    lo, hi = f.widened(np.where(known, lo, -np.inf), np.where(known, hi, np.inf))
    every, nan = np.ones(sums.shape, bool), ~known | none
    made = c.build(np.where(none, np.inf, lo), np.where(none, -np.inf, hi), nan, every, every)
    around = np.where(exact, 0, spread)
    size = np.where(known, size, np.inf)
    return made.remembering(
        terms=Terms(sums - around, sums + around, size, size, common, k + 1, contraction=True, products=True)
    )
