"""How a function that checks one matrix becomes the row of an op, which checks all matrices of its batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from oracle import configurations
from oracle.checks import CHECK_EXTENSION, UNCHECKED, Check
from oracle.decompositions.measures import Matrices, Scale, scale_of, wide
from oracle.enclosure.formats import flushed
from tenferro_ref import ops
from tenferro_ref.extensions import linalg
from tenferro_ref.tensor import Array

Judge: TypeAlias = Callable[..., Iterator[Check]]
#: `finite(scale, operands, **config)`: whether operands without large elements have finite results whatever the order of operations.
Finite: TypeAlias = Callable[..., bool]
#: `part(matrices, **config)`: the matrices with zeros for what is not read of them.
Part: TypeAlias = Callable[..., Matrices]


def scaled(s: Scale, operands: Matrices, **config: Any) -> bool:
    """Of what divides by norms, or by what it has made of the matrix: only the largest element of each operand counts."""
    return all(not x.any() or s.divides(np.abs(x).max()) for x in operands)


def phased(s: Scale, operands: Matrices, *, gauge: str, **config: Any) -> bool:
    """Likewise, with phases of R's diagonal, the moduli of which complex numbers are divided by."""
    return scaled(s, operands) and (gauge == "Raw" or all(map(s.moderate, operands)))


def whole(matrices: Matrices, **config: Any) -> Matrices:
    return matrices


def lower(matrices: Matrices, **config: Any) -> Matrices:
    """Of the first matrix the lower triangle."""
    a, *others = matrices
    return [np.tril(a), *others]


@dataclass(frozen=True)
class Demands:
    """When results must be finite: `finite` of the parts of the operands that are `read`; and which parts of them, those `made`."""

    finite: Finite = scaled
    read: Part = whole
    made: Part = whole


def judge(*names: str, finite: Finite = scaled, read: Part = whole) -> Callable[[Judge], Judge]:
    """Decorator: `judge(scale, operands, results, **config)` checks one matrix of a linalg op's batch."""

    def add(judge: Judge) -> Judge:
        def every(op: ops.Extension, inputs: Sequence[Array], outputs: Sequence[Array], flushes: bool) -> list[Check]:
            places = ((..., *index) for index in np.ndindex(inputs[0].shape[2:]))
            return batch(judge, places, inputs, outputs, configurations.flags(op), flushes, Demands(finite, read))

        CHECK_EXTENSION.row(*((linalg.FAMILY, name) for name in names))(every)
        return judge

    return add


def batch(
    judge: Judge,
    places: Iterable[Any],
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    config: dict[str, Any],
    flushes: bool,
    demands: Demands,
) -> list[Check]:
    """The checks of the matrices at these places of the arrays.

    Nothing is asked, which is undecided, where what is read of an operand is not finite, or where a result is not finite that may
    have overflowed or need not exist.
    """
    found: list[Check] = []
    for at in places:
        operands, results = [x[at] for x in inputs], [x[at] for x in outputs]
        scale = scale_of(operands[0], flushes)
        seen = [*map(wide, demands.read(operands, **config))]
        if not all(np.isfinite(x).all() for x in seen):
            found += [UNCHECKED] if any(x.size for x in results) else []
        elif all(np.isfinite(x).all() for x in demands.made(results, **config)):
            made = [*map(wide, results)]
            here = [*judge(scale, [*map(wide, operands)], made, **config)]
            # an implementation may read subnormal elements of the operands as zeros
            if flushes and not all(c.holds for c in here):
                without = [*judge(scale, [*map(wide, map(flushed, operands))], made, **config)]
                here = without if all(c.holds for c in without) else here
            found += here
        elif all((np.abs(x) < scale.max**0.25).all() for x in seen) and demands.finite(scale, seen, **config):
            found.append(Check("finite", np.inf, 0.0))
        else:
            found.append(UNCHECKED)
    return found
