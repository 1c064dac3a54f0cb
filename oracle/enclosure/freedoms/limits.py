"""Limits: where C99 Annex G names a value of a complex function, a formula by parts gives NaN.

*Bound.* Each part of a function is a product of two real ones, such as `exp x` and `cos y`. Beside an infinity or a NaN one
factor may be 0 and the other infinite or NaN: Annex G (G.6) names 0, IEEE arithmetic gives NaN, and both are admitted. So is NaN
beside the infinite modulus of an infinity and a NaN. Where a factor is infinite and the other NaN, an infinity of either sign or
NaN is admitted by all models, since Annex G leaves the sign open.
Measured (2026-11-22): of 961 pairs of hostile parts NumPy gives Annex G's values or these for every function, as the three builds,
JAX and the interpreter do; but for Rsqrt and Sign, which C99 does not have and all make of a quotient, whose limits may be NaN.
"""

from __future__ import annotations

from oracle.enclosure.rule import Context


def may_be_lost(c: Context) -> bool:
    """Whether a limit that Annex G names may be NaN."""
    return c.model.by_parts
