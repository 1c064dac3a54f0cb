"""How a function that checks one matrix becomes the row of an op, which checks all matrices of its batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from oracle import configurations
from oracle.checks import CHECK_EXTENSION, UNCHECKED, Check
from oracle.decompositions.measures import Matrices, Matrix, Scale, scale_of, wide
from oracle.enclosure.formats import FORMATS, flushed
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import linalg
from tenferro_ref.tensor import Array

Judge: TypeAlias = Callable[..., Iterator[Check]]
#: `finite(scale, operands, **config)`: whether moderate operands have finite results whatever the order of operations.
Finite: TypeAlias = Callable[..., bool]


def always(s: Scale, operands: Matrices, **config: Any) -> bool:
    """Of what makes no number much larger than its operands."""
    return True


def judge(*names: str, finite: Finite = always) -> Callable[[Judge], Judge]:
    """Decorator: `judge(scale, operands, results, **config)` checks one matrix of a linalg op's batch."""

    def add(judge: Judge) -> Judge:
        def every(op: ops.Extension, inputs: Sequence[Array], outputs: Sequence[Array], flushes: bool) -> list[Check]:
            places = ((..., *index) for index in np.ndindex(inputs[0].shape[2:]))
            return batch(judge, places, inputs, outputs, configurations.flags(op), flushes, finite)

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
    finite: Finite = always,
) -> list[Check]:
    """The checks of the matrices at these places of the arrays.

    Nothing is asked, which is undecided, where an operand is not finite, or where a result is not finite that may have overflowed
    or need not exist (`finite`).
    """
    found: list[Check] = []
    for at in places:
        operands, results = [x[at] for x in inputs], [x[at] for x in outputs]
        scale = scale_of(operands[0], flushes)
        if not all(np.isfinite(x).all() for x in operands):
            found += [UNCHECKED] if any(x.size for x in results) else []
        elif all(np.isfinite(x).all() for x in results):
            made = [*map(wide, results)]
            here = [*judge(scale, [*map(wide, operands)], made, **config)]
            # an implementation may read subnormal elements of the operands as zeros
            if flushes and not all(c.holds for c in here):
                without = [*judge(scale, [*map(wide, map(flushed, operands))], made, **config)]
                here = without if all(c.holds for c in without) else here
            found += here
        elif all(map(_moderate, operands)) and finite(scale, [*map(wide, operands)], **config):
            found.append(Check("finite", np.inf, 0.0))
        else:
            found.append(UNCHECKED)
    return found


def _moderate(x: Matrix) -> bool:
    """Whether no product or quotient of a few elements overflows."""
    if x.dtype.kind == "i":
        return True
    f, size = FORMATS[DType.of(x).real], np.abs(x[x != 0])
    return bool((size < f.max**0.25).all() and (size > f.min_normal**0.25).all())
