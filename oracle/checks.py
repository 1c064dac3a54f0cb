"""Backward-error checks of extension ops whose results are not unique, so that no element has an enclosure.

A check is an invariant of the results with the bound that every backward stable implementation keeps. Those of the linalg family
are in `decompositions`; programs with such ops are judged in stages (`staged`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import TypeAlias

from oracle.verdict import Comparison
from tenferro_ref import ops
from tenferro_ref.table import Table
from tenferro_ref.tensor import Array


@dataclass(frozen=True)
class Check:
    """One invariant of one matrix of a batch: the error may be at most the bound."""

    name: str
    error: float
    bound: float

    @property
    def holds(self) -> bool:
        return bool(self.error <= self.bound)

    @property
    def decided(self) -> bool:
        """Whether the bound says anything."""
        return isfinite(self.bound)


#: Of a matrix of which nothing can be asked.
UNCHECKED = Check("unchecked", 0.0, inf)


Row: TypeAlias = Callable[[ops.Extension, Sequence[Array], Sequence[Array], bool], list[Check]]
#: By family and op: `row(op, inputs, outputs, flushes) -> checks`.
CHECK_EXTENSION: Table[Row] = Table("backward-error checks")
#: By family and op: `promised(outputs) -> outputs`, with what is due where StableHLO's own op may have anything.
PROMISED: dict[tuple[str, str], Callable[[Sequence[Array]], Sequence[Array]]] = {}


def checks(
    op: ops.Extension, inputs: Sequence[Array], outputs: Sequence[Array], *, flushes: bool = True, given: bool = False
) -> list[Check]:
    """The invariants of an op's results, over all matrices of the batch.

    A matrix that is not finite is `UNCHECKED`. A result that is not finite fails.

    Parameters
    ----------
    flushes
        Whether subnormal numbers may be read and written as zeros.
    given
        Whether they are those of a StableHLO module as it is given, which may promise less of them (`PROMISED`).

    Raises
    ------
    UnsupportedOp
        No invariants are known of the op.
    """
    if given and op.key in PROMISED:
        outputs = PROMISED[op.key](outputs)
    return CHECK_EXTENSION[op.key](op, inputs, outputs, flushes)


def compare(
    op: ops.Extension, inputs: Sequence[Array], outputs: Sequence[Array], *, flushes: bool = True, given: bool = False
) -> Comparison:
    """`checks` as a comparison: one element an invariant, which is decided if its bound is finite."""
    found = checks(op, inputs, outputs, flushes=flushes, given=given)
    failed = [c for c in found if not c.holds]
    same = Comparison(elements=len(found), decided=sum(c.decided for c in found))
    if not failed:
        return same
    first = failed[0]
    return replace(
        same,
        outside=len(failed),
        worst_output=0,
        worst_index=(),
        observed=f"{first.name} {first.error:.3g}",
        expected=f"at most {first.bound:.3g}",
        value_class=f"{op.op}: {first.name}",
    )
