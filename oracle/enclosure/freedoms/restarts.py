"""Restarts: a reduction may take in its initial value several times, between any elements.

StableHLO reduces by any tree over the elements in their order, `interspersed with an implementation-defined amount of
init_values_converted at implementation-defined positions` (specification, `reduce`); on a GPU each thread of a warp begins with it.
Of most reductions it changes nothing, or a sign of zero (`zeros`); a product of complex numbers with 1 makes NaN of an infinity.

*Bound.* The factors of a short product, each with and without a product with 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oracle.enclosure.rule import Context
from oracle.enclosure.value import Enclosure


def of_product(
    c: Context, factors: Sequence[Enclosure], once: Callable[[Enclosure], Enclosure]
) -> list[list[Enclosure]]:
    """The factors of a product, and where the model permits it those that a product with 1 makes of them."""
    return [[*factors], [once(x) for x in factors]] if c.model.restart else [[*factors]]
