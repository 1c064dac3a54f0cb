"""Accumulators: in which format a contraction of narrow floats is added up.

XLA adds in F32, as the rules do; the reference adds in F64, and the StableHLO interpreter in the format itself, where products and sums
overflow sooner (measured 2026-11-24: three builds, jaxlib and the interpreter, F16 and five formats of 8 bits).

*Bound.* While nothing overflows, what a wider format gives is inside the bounds of the format itself. Elsewhere the result is what F32
gives, rounded; and what F64 and the format itself give, where the model permits them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from oracle.enclosure.formats import FORMATS, NO_NAN, Array
from oracle.enclosure.poles import united
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval, merged
from tenferro_ref.dtype import DType


def of_contraction(c: Context, own: Interval, added: Callable[[Context], Interval]) -> Interval:
    """A contraction of narrow floats.

    Parameters
    ----------
    own
        What comes of adding in the format itself.
    added
        Its sum in the format of another context.

    Returns
    -------
    Interval
        `own` where it is a number; elsewhere what the accumulators give that the model permits.
    """
    open_ = np.asarray(own.nan | ~np.isfinite(own.lo) | ~np.isfinite(own.hi))
    if not np.count_nonzero(open_):
        return own
    kept = c.dtype not in NO_NAN and c.model.narrow_sums
    wider = [DType.F32, DType.F64] if c.model.narrow_sums else [DType.F32]
    made = [_rounded(c, added(replace(c, dtype=dtype))) for dtype in wider] + [own] * kept
    result = made[0] if len(made) == 1 else united(made[0], *made)

    def pick(arrays: Sequence[Array]) -> Array:
        return np.where(open_, *arrays)

    return merged(pick, (result, own)).from_(own.origin)


def _rounded(c: Context, x: Interval) -> Interval:
    """A sum as a narrow float, which those of 8 bits and fewer may become by way of F16."""
    by_way = [x.lo, x.hi]
    if c.dtype.bits <= 8:
        by_way = [FORMATS[DType.F16].nearest(v) for v in by_way]
    lows, highs = ([c.format.nearest(v) for v in (a, b)] for a, b in zip((x.lo, x.hi), by_way, strict=True))
    pos, neg = x.pos_zero | (x.hi > 0), x.neg_zero | (x.lo < 0)
    made = c.build(np.fmin(*lows), np.fmax(*highs), x.nan, pos, neg)
    if x.gap is None:
        return made
    return replace(made, gap=(c.format.nearest(x.gap[0]), c.format.nearest(x.gap[1])))
