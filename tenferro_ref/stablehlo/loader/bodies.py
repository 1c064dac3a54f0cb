"""What the region of a reduction or scatter computes, recognised by its expression.

An expression is a nested tuple: `("argument", i)`, or the op's name, with what else it says, and its operands' expressions;
operands of commutative ops are sorted, GT and GE are turned into LT and LE. A comparison has its direction, in the order of floats
in which a NaN has no place with ` FLOAT` behind it, in their total order with ` TOTALORDER`.
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
#: What says nothing beside its name and operands.
_PLAIN = {*_COMMUTATIVE, "select", "not"}


def argument(i: int) -> Expression:
    return ("argument", i)


def node(name: str, *operands: Expression) -> Expression:
    first, blank, kind = name.partition(" ")
    if first in _MIRRORED:
        return node(_MIRRORED[first] + blank + kind, *operands[::-1])
    return (name, *(sorted(operands, key=repr) if first in _COMMUTATIVE else operands))


def results(op: Operation, region: int = 0, compared: list[Expression] | None = None) -> list[Expression] | None:
    """The expression of each value that the body of `op` returns; None if an op in it has regions of its own.

    Parameters
    ----------
    compared
        Gets the expression of each comparison, in the order in which they are made.
    """
    (block,) = op.raw.operation.regions[region].blocks
    arguments = [argument(i) for i in range(len(block.arguments))]
    return _returned(block, arguments, [] if compared is None else compared)


def _returned(
    block: Any, arguments: list[Expression], compared: list[Expression], depth: int = 0
) -> list[Expression] | None:
    known: dict[Any, Expression] = dict(zip(block.arguments, arguments, strict=True))
    for inner in map(Operation, block.operations):
        raw, name = inner.raw.operation, inner.name
        if list(raw.regions) or any(v not in known for v in raw.operands):
            return None
        operands = [known[v] for v in raw.operands]
        if name in RETURN:
            return operands
        if name == "func.call":
            called = _returned(inner.callee(), operands, compared, depth + 1) if depth < DEEPEST else None
            if called is None:
                return None
            known.update(zip(raw.results, called, strict=True))
            continue
        for i, result in enumerate(raw.results):
            known[result] = node(_name(inner, i), *operands)
        if name == "compare":
            compared.append(known[raw.results[0]])
    return None


def _name(inner: Operation, result: int) -> str:
    """The name of an op, and what else two ops differ in of which one result is not that of the other."""
    raw, name = inner.raw.operation, inner.name
    if name == "compare":
        kind, of_floats = inner.enum("compare_type"), "f" in str(raw.operands[0].type).partition("<")[2]
        kind = " TOTALORDER" if kind == "TOTALORDER" else " FLOAT" if of_floats else ""
        return inner.enum("comparison_direction") + kind
    if name in _PLAIN:
        return name
    attributes = sorted(str(raw.attributes[i]) for i in range(len(raw.attributes)))
    type_ = raw.results[result].type
    same = list(raw.operands) and type_ == raw.operands[0].type
    return " ".join((name, *attributes, *([] if same else [f": {type_}"]), *([f"#{result}"] if result else [])))


#: The ops that a body may apply; of integers, and/or have no op of the engine.
OPS: dict[str, Op] = {
    "add": ops.Add(), "multiply": ops.Multiply(), "maximum": ops.Maximum(), "minimum": ops.Minimum(),
}  # fmt: skip
FOLDS = (*OPS, "and", "or")


def fold(expression: Expression, left: int, right: int) -> str | None:
    """The name in `FOLDS` of a body that combines arguments `left` and `right`; "right" if it returns that one alone."""
    if expression == argument(right):
        return "right"
    return next((name for name in FOLDS if expression == node(name, argument(left), argument(right))), None)
