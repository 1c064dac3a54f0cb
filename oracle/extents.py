"""The extents that an op's attributes give, computed here: a fault in the engine's arithmetic of shapes must not be the oracle's, too."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from tenferro_ref.dims import DimExpr, DimKind, DimOp, InputDim

_OPERATIONS: dict[DimKind, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "min": min, "max": max,
}  # fmt: skip


def extents(expressions: Sequence[DimExpr], shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """What the expressions are where the operands of the op have these shapes."""

    def value(expression: DimExpr) -> int:
        match expression:
            case InputDim(number, axis):
                return shapes[number][axis]
            case DimOp(kind, lhs, rhs):
                return _OPERATIONS[kind](value(lhs), value(rhs))
        return expression

    return tuple(map(value, expressions))
