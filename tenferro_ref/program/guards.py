"""Shape guards: extents of a program's inputs that must be equal, which only the inputs can tell (SEMANTICS A.5).

Rules of extension families state them where two symbolic extents have to agree, as einsum does for equal labels. In a
guard `InputDim(i, a)` is axis `a` of *program* input `i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from tenferro_ref.dims import DimExpr, DimOp, InputDim, evaluate, expr_of, simplify
from tenferro_ref.errors import InvalidArgument, ShapeConstraintEvaluation, ShapeConstraintViolation

T = TypeVar("T")

#: The one relation that there is.
EQUAL: Literal["Equal"] = "Equal"

_CAUSES = {
    "InputOutOfBounds": "MissingInput",
    "AddOverflow": "Overflow",
    "MulOverflow": "Overflow",
    "SubUnderflow": "Underflow",
    "FloorDivByZero": "DivisionByZero",
}


@dataclass(frozen=True, slots=True)
class ShapeGuard:
    """`lhs` and `rhs` must be equal; guards that differ only in their source are the same.

    Attributes
    ----------
    family, instruction_index
        The extension family whose rule asks for it, and which instruction of the graph it was.
    """

    lhs: DimExpr
    rhs: DimExpr
    family: str = field(compare=False)
    instruction_index: int | None = field(default=None, compare=False)

    def check(self, shapes: Sequence[Sequence[int]]) -> None:
        """Compare the two sides for inputs of these shapes.

        Raises
        ------
        ShapeConstraintViolation
            They differ.
        ShapeConstraintEvaluation
            One has no value.
        """
        lhs, rhs = (self._value(side, lambda e: evaluate(e, shapes)) for side in (self.lhs, self.rhs))
        if lhs != rhs:
            raise self._violation(lhs, rhs)

    def resolved(self, known: Mapping[InputDim, DimExpr]) -> tuple[DimExpr, DimExpr]:
        """Both sides, each symbol replaced by what it is known to equal, and integers combined.

        Raises
        ------
        ShapeConstraintViolation
            They are different integers.
        ShapeConstraintEvaluation
            One has no value, whatever the inputs.
        """
        lhs, rhs = (self._value(side, lambda e: _resolved(e, known)) for side in (self.lhs, self.rhs))
        if isinstance(lhs, int) and isinstance(rhs, int) and lhs != rhs:
            raise self._violation(lhs, rhs)
        return lhs, rhs

    def _value(self, expr: DimExpr, value: Callable[[DimExpr], T]) -> T:
        try:
            return value(expr)
        except InvalidArgument as error:
            cause = _CAUSES.get(error.argument, error.argument)
            raise ShapeConstraintEvaluation(self.family, self.instruction_index, EQUAL, str(expr), cause) from None

    def _violation(self, lhs: int, rhs: int) -> ShapeConstraintViolation:
        sides = (str(self.lhs), str(self.rhs), lhs, rhs)
        return ShapeConstraintViolation(self.family, self.instruction_index, EQUAL, *sides)


def _resolved(expr: DimExpr, known: Mapping[InputDim, DimExpr]) -> DimExpr:
    while isinstance(expr, InputDim) and expr in known:
        expr = known[expr]
    if not isinstance(expr, DimOp):
        return expr
    return expr_of(simplify(DimOp(expr.kind, _resolved(expr.lhs, known), _resolved(expr.rhs, known))))


def normalised(guards: Iterable[ShapeGuard]) -> tuple[ShapeGuard, ...]:
    """The guards that do not follow from those before them.

    Raises
    ------
    ShapeConstraintViolation, ShapeConstraintEvaluation
        As `ShapeGuard.resolved`: no inputs can fit.
    """
    known: dict[InputDim, DimExpr] = {}
    compared: set[tuple[DimExpr, DimExpr]] = set()
    kept = []
    for guard in guards:
        lhs, rhs = guard.resolved(known)
        if lhs == rhs or (lhs, rhs) in compared:
            continue
        kept.append(guard)
        compared.add((lhs, rhs))
        symbol, value = (lhs, rhs) if isinstance(lhs, InputDim) else (rhs, lhs)
        if isinstance(symbol, InputDim) and not isinstance(value, DimOp):
            known[symbol] = value
    return tuple(kept)
