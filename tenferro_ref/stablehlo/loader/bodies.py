"""What the region of a reduction or scatter computes, recognised by its expression.

An expression is a nested tuple: `("argument", i)`, or the op's name with its operands' expressions; operands of commutative
ops are sorted, GT and GE are turned into LT and LE.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tenferro_ref import ops
from tenferro_ref.ops import Op
from tenferro_ref.stablehlo.loader.bindings import Operation

Expression: TypeAlias = tuple[Any, ...]

#: What a body, or a function that it calls, ends with.
RETURN = ("return", "func.return")
#: The deepest nesting of calls in a body.
DEEPEST = 16
_COMMUTATIVE = {"add", "multiply", "maximum", "minimum", "and", "or", "xor", "EQ", "NE"}
_MIRRORED = {"GT": "LT", "GE": "LE"}


def argument(i: int) -> Expression:
    return ("argument", i)


def _node(name: str, *operands: Expression) -> Expression:
    if name in _MIRRORED:
        return _node(_MIRRORED[name], *operands[::-1])
    return (name, *(sorted(operands, key=repr) if name in _COMMUTATIVE else operands))


def results(op: Operation, region: int = 0) -> list[Expression] | None:
    """The expression of each value that the body of `op` returns; None if an op in it has regions of its own."""
    (block,) = op.raw.operation.regions[region].blocks
    return _returned(block, [argument(i) for i in range(len(block.arguments))])


def _returned(block: Any, arguments: list[Expression], depth: int = 0) -> list[Expression] | None:
    known: dict[Any, Expression] = dict(zip(block.arguments, arguments, strict=True))
    for inner in map(Operation, block.operations):
        raw, name = inner.raw.operation, inner.name
        if list(raw.regions) or any(v not in known for v in raw.operands):
            return None
        operands = [known[v] for v in raw.operands]
        if name in RETURN:
            return operands
        if name == "func.call":
            called = _returned(inner.callee(), operands, depth + 1) if depth < DEEPEST else None
            if called is None:
                return None
            known.update(zip(raw.results, called, strict=True))
            continue
        if name == "compare":
            total = inner.enum("compare_type") == "TOTALORDER"
            name = "TOTALORDER" if total else inner.enum("comparison_direction")
        elif name == "constant":
            name = str(raw)
        for result in raw.results:
            known[result] = _node(name, *operands)
    return None


#: The ops that a body may apply; of integers, and/or have no op of the engine.
OPS: dict[str, Op] = {
    "add": ops.Add(), "multiply": ops.Multiply(), "maximum": ops.Maximum(), "minimum": ops.Minimum(),
}  # fmt: skip
FOLDS = (*OPS, "and", "or")


def fold(expression: Expression, left: int, right: int) -> str | None:
    """The name in `FOLDS` of a body that combines arguments `left` and `right`; "right" if it returns that one alone."""
    if expression == argument(right):
        return "right"
    return next((name for name in FOLDS if expression == _node(name, argument(left), argument(right))), None)
