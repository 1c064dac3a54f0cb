"""Branch cuts: a number beside one may be taken for one on its other side, whatever the sign of a zero says.

*Bound.* The cuts of logarithms, roots and powers are along the negative real axis, where a function jumps by a factor or
a summand of its own. The sign of a zero imaginary part says on which side a number is (C99 Annex G). Measured: the
square root of the three builds and the logarithm, roots and powers of IREE do not ask for it; NumPy, jaxlib's interpreter and the
other functions of the builds do. Both values are admitted, what is between them is not (`Interval.gap`).
"""

from __future__ import annotations

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.rule import Context
from oracle.enclosure.value import Interval


def side_is_known(c: Context, im: Interval) -> Array:
    """Where the sign of a zero imaginary part decides on the side."""
    return np.asarray((im.pos_zero != im.neg_zero) & (not c.model.either_side))
