"""Symbolic extents: `DimExpr` and `ShapeExtent`, and the arithmetic that shape rules do with them (SEMANTICS 3).

A *dim expression* is an `int` (the engine's Const), an `InputDim`, or a `DimOp` over two of them. In an op's attributes
`InputDim` counts the instruction's own inputs; in the metadata of a slot it counts the program's inputs, and `substitute`
takes one to the other. An *extent* is a dim expression that is exact, or `UpperBound(expr)`, or `Unknown(expr)`: being
exact is the common case and costs nothing, so that concrete shapes are plain tuples of ints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tenferro_ref.errors import InvalidArgument

#: Values of a dim expression are a `usize` in the engine.
USIZE_MAX = 2**64 - 1
#: Integers beyond are not shapes, axes or slots of anything, but for parts of dim expressions.
INT_LEAST, INT_LIMIT = -(2**63), 2**63 - 1
#: Operations in one expression: a chain of Concatenate(x, x) doubles the expression at every step.
MAX_OPERATIONS = 256

DimKind: TypeAlias = Literal["add", "sub", "mul", "floordiv", "min", "max"]


def is_integer(value: object, most: int = INT_LIMIT) -> bool:
    """Whether it is an int that a program may hold, and a file. A bool is none, and NumPy's integers are none."""
    return type(value) is int and INT_LEAST <= value <= most


def _operator(kind: DimKind, *, swapped: bool = False) -> Callable[[Any, Extent], Extent]:
    def combined(self: Any, other: Extent) -> Extent:
        if not isinstance(other, (int, _Symbolic)):
            return NotImplemented
        return combine(kind, other, self) if swapped else combine(kind, self, other)

    return combined


class _Symbolic:
    """Arithmetic of extents that are no integers: `n + 1`, `2 * n`, `n // m`."""

    __slots__ = ()
    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", swapped=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", swapped=True)
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _operator("floordiv", swapped=True)


@dataclass(frozen=True, slots=True)
class InputDim(_Symbolic):
    """Extent of axis `axis` of input number `input`."""

    input: int
    axis: int

    def __post_init__(self) -> None:
        """Raise InvalidArgument for what are no numbers."""
        if not (is_integer(self.input) and is_integer(self.axis)):
            raise _fault("InputDim", f"{self.input!r} and {self.axis!r} where two ints of 64 bits are needed")

    def __str__(self) -> str:
        return f"in{self.input}.{self.axis}"


@dataclass(frozen=True, slots=True)
class DimOp(_Symbolic):
    """`kind(lhs, rhs)`, unevaluated; equality is structural (2*3 is not 3*2)."""

    kind: DimKind
    lhs: DimExpr
    rhs: DimExpr
    #: How many operations the expression holds, this one included.
    operations: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise InvalidArgument for another kind or operand than there is, and (ExpressionTooLarge) beyond `MAX_OPERATIONS`."""
        if self.kind not in DIM_KINDS:
            raise _fault("kind", f"{self.kind!r} is none of {', '.join(DIM_KINDS)}")
        for operand in (self.lhs, self.rhs):
            if not isinstance(operand, (InputDim, DimOp)) and not is_integer(operand, USIZE_MAX):
                raise _fault(self.kind, f"{operand!r} is neither an int of 64 bits nor a dim expression")
        count = 1 + sum(e.operations for e in (self.lhs, self.rhs) if isinstance(e, DimOp))
        if count > MAX_OPERATIONS:
            raise _fault("ExpressionTooLarge", f"more than {MAX_OPERATIONS} operations")
        object.__setattr__(self, "operations", count)

    def __str__(self) -> str:
        return f"{self.kind}({self.lhs}, {self.rhs})"


DimExpr: TypeAlias = int | InputDim | DimOp


@dataclass(frozen=True, slots=True)
class UpperBound(_Symbolic):
    """The extent is at most `expr`."""

    expr: DimExpr

    def __str__(self) -> str:
        return f"<={self.expr}"


@dataclass(frozen=True, slots=True)
class Unknown(_Symbolic):
    """Nothing is known of the extent; `expr` is the shape rule's guess."""

    expr: DimExpr

    def __str__(self) -> str:
        return f"?{self.expr}"


#: The engine's `ShapeExtent`: a bare expression is exact.
Extent: TypeAlias = DimExpr | UpperBound | Unknown


def expr_of(extent: Extent) -> DimExpr:
    """The expression of an extent, whatever is known of it."""
    return extent.expr if isinstance(extent, (UpperBound, Unknown)) else extent


def is_exact(extent: Extent) -> bool:
    """Whether the extent is an integer or an expression, not just a bound or unknown."""
    return not isinstance(extent, (UpperBound, Unknown))


def extent_kind(extent: Extent) -> str:
    """`"exact"`, `"an upper bound"` or `"unknown"`: the words of the engine's messages."""
    if isinstance(extent, UpperBound):
        return "an upper bound"
    return "unknown" if isinstance(extent, Unknown) else "exact"


def _fault(name: str, detail: str) -> InvalidArgument:
    return InvalidArgument(op="DimExpr", argument=name, detail=detail)


def _add(a: int, b: int) -> int:
    if a + b > USIZE_MAX:
        raise _fault("AddOverflow", f"{a} + {b} exceeds 2^64 - 1")
    return a + b


def _sub(a: int, b: int) -> int:
    if b > a:
        raise _fault("SubUnderflow", f"{a} - {b} is negative")
    return a - b


def _mul(a: int, b: int) -> int:
    if a * b > USIZE_MAX:
        raise _fault("MulOverflow", f"{a} * {b} exceeds 2^64 - 1")
    return a * b


def _floordiv(a: int, b: int) -> int:
    if b == 0:
        raise _fault("FloorDivByZero", f"{a} // 0")
    return a // b


_EVALUATE: dict[DimKind, Callable[[int, int], int]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "floordiv": _floordiv,
    "min": min,
    "max": max,
}
DIM_KINDS: tuple[DimKind, ...] = tuple(_EVALUATE)


def _known(kind: DimKind, a: Extent, b: Extent) -> type[UpperBound] | type[Unknown] | None:
    """How exact `kind(a, b)` is: None for exact, else the class of its bound (the resolution table of SEMANTICS 3)."""
    exact = is_exact(a) and is_exact(b)
    if exact:
        return None
    if isinstance(a, Unknown) or isinstance(b, Unknown) or kind == "sub":
        return Unknown
    if kind == "floordiv":
        return UpperBound if isinstance(a, UpperBound) and is_exact(b) else Unknown
    return UpperBound


def combine(kind: DimKind, a: Extent, b: Extent) -> Extent:
    """`kind(a, b)`, folded when both are integers.

    Raises
    ------
    InvalidArgument
        AddOverflow, SubUnderflow, MulOverflow or FloorDivByZero, named by `argument`.
    """
    if isinstance(a, int) and isinstance(b, int):
        return _EVALUATE[kind](a, b)
    x, y, wrap = expr_of(a), expr_of(b), _known(kind, a, b)
    if not (isinstance(x, int) and isinstance(y, int)):
        expr: DimExpr = DimOp(kind, x, y)
    else:
        try:
            expr = _EVALUATE[kind](x, y)
        except InvalidArgument:
            if wrap is None:
                raise
            expr = 0  # arithmetic that fails on a bound may succeed on the extent itself
    return expr if wrap is None else wrap(expr)


def substitute(expr: DimExpr, shapes: Sequence[Sequence[Extent]]) -> Extent:
    """Value of `expr` where `InputDim(i, a)` stands for `shapes[i][a]`; an int where the shapes are concrete.

    Raises
    ------
    InvalidArgument
        InputOutOfBounds, AxisOutOfBounds or an arithmetic fault, named by `argument`.
    """
    if isinstance(expr, int):
        return expr
    if isinstance(expr, InputDim):
        if not 0 <= expr.input < len(shapes):
            raise _fault("InputOutOfBounds", f"{expr} with {len(shapes)} inputs")
        shape = shapes[expr.input]
        if not 0 <= expr.axis < len(shape):
            raise _fault("AxisOutOfBounds", f"{expr} where that input has rank {len(shape)}")
        return shape[expr.axis]
    return combine(expr.kind, substitute(expr.lhs, shapes), substitute(expr.rhs, shapes))


def evaluate(expr: DimExpr, shapes: Sequence[Sequence[int]]) -> int:
    """`substitute` for concrete shapes."""
    value = substitute(expr, shapes)
    if not isinstance(value, int):
        raise _fault("shape", f"{expr} does not evaluate to an integer")
    return value


def equal_extents(a: Extent, b: Extent) -> bool | None:
    """Whether two extents are equal: None where only the running program can tell."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return True if a == b and is_exact(a) else None


def rewrap(extent: Extent, expr: DimExpr) -> Extent:
    """`expr`, as exact as `extent` is: exact, a bound, or unknown."""
    if isinstance(extent, UpperBound):
        return UpperBound(expr)
    return Unknown(expr) if isinstance(extent, Unknown) else expr


def simplify(extent: Extent) -> Extent:
    """`extent` with every operation on two integers carried out."""
    expr = expr_of(extent)
    if not isinstance(expr, DimOp):
        return extent
    return rewrap(extent, expr_of(combine(expr.kind, simplify(expr.lhs), simplify(expr.rhs))))


def inputs_of(expr: DimExpr) -> set[int]:
    """Numbers of the inputs that `expr` reads."""
    if isinstance(expr, InputDim):
        return {expr.input}
    return inputs_of(expr.lhs) | inputs_of(expr.rhs) if isinstance(expr, DimOp) else set()


def product(extents: Sequence[Extent]) -> Extent:
    """Product of `extents`, 1 for none."""
    total: Extent = 1
    for extent in extents:
        total = extent if total == 1 else combine("mul", total, extent)
    return total
