"""Smaller modules: one step each on the way to the smallest that still shows a disagreement.

A step returns one value of `main` alone, puts an operand, a constant or a new argument in the place of an operation's
result, leaves an argument out or a value that a loop carries, inlines calls, puts a branch or the body of a loop in its place, or makes an extent smaller; operations in
regions are treated as those of `main`, but that the body of a reduction stays as it is: another one may depend on an order that nothing
says. What no result depends on goes with it. Whether a step keeps what is looked for does
not live here (`fuzz.findings.reduce_module`). Needs the extra `jax`; MLIR may end the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from tenferro_ref.errors import TenferroError
from tenferro_ref.stablehlo.loader import bindings
from tenferro_ref.stablehlo.loader.signature import functions_of
from tenferro_ref.stablehlo.watched import block_of, filled, inline, put_in_place, return_values

#: Operations of `main` beyond which steps are no longer tried one by one.
_MOST_OPS = 400
#: Operations whose bodies join elements in any order.
_JOINING = frozenset(
    f"stablehlo.{name}"
    for name in ("all_reduce", "reduce", "reduce_scatter", "reduce_window", "scatter", "select_and_scatter")
)
#: Operations of `main` up to which their results become arguments: each such step carries a second module.
_MOST_VALUES = 60


@dataclass(frozen=True)
class Smaller:
    """A module that is smaller than another by one step.

    Attributes
    ----------
    arguments
        Which arguments of the other it has; their values are cut to its shapes.
    value
        A module with the arguments of the other whose result is the value of one more argument, which `arguments` counts as
        the last one; "" where there is none.
    """

    step: str
    code: str
    arguments: tuple[int, ...]
    value: str = ""


def smaller(code: str | bytes, where: str = "StableHLO") -> Iterator[Smaller]:
    """The modules that are smaller than `code` by one step and verify, the boldest steps first.

    Raises
    ------
    FormatError
        `code` is no module.
    """
    first = bindings.parse(code, where)
    with bindings.reading(where):
        text = str(first)
        main = functions_of(first)["main"]
        count, results = len(_operations(first)), len(main.type.results)
        calls = "call @" in text
        if isinstance(code, bytes):
            yield Smaller("as text", text, tuple(range(len(main.type.inputs))))
        numbers = range(min(count, _MOST_OPS))
        # the less a module has before the value it returns, the smaller it is
        steps: list[tuple[str, Callable[[Any], object]]] = []
        if results > 1:
            steps += [(f"result {i} alone", partial(_return_result, number=i)) for i in range(results)]
        steps += [("calls inlined", lambda m: inline(m, block_of(_main(m))))] if calls else []
        regions = [len(op.regions) for op in _operations(first)]
        steps += [
            (f"region {r} of operation {k} in its place", partial(_region_in_place, k=k, r=r))
            for k in numbers
            for r in range(regions[k])
        ]
        steps += [
            (f"value {v} of loop {k} as it begins", partial(_carried_not, k=k, v=v))
            for k in numbers
            if (op := _op(first, k)).name == "stablehlo.while" and len(op.operands) > 1
            for v in range(len(op.operands))
        ]
        steps += [(f"value {k} as the result", partial(_return_op, k=k)) for k in numbers[:-1]]
        kept = {k for k, op in enumerate(_operations(first)) if _joins(op)}
        free = [k for k in reversed(numbers) if k not in kept]
        steps += [(f"operation {k} left out", partial(_bypass, k=k)) for k in free]
        steps += [(f"operation {k} as a constant", partial(_as_constant, k=k)) for k in free]
        for name, step in (*steps, ("what is not used", lambda m: None)):
            yield from _stepped(name, step, text, text)
        for k in free if count <= _MOST_VALUES else ():
            if _is_small_constant(_op(first, k)):
                continue
            value = _alone(text, k)
            yield from _stepped(f"operation {k} as an argument", partial(_as_argument, k=k), text, text, value)
    for name, changed in _extents(text):
        yield from _stepped(name, lambda m: None, changed, text)


def one_result(code: str | bytes, where: str, number: int) -> Iterator[Smaller]:
    """The module that returns that result alone, unless it is the only one.

    Raises
    ------
    FormatError
        `code` is no module.
    """
    text = str(bindings.parse(code, where))
    yield from _stepped(f"result {number} alone", partial(_return_result, number=number), text, text)


def _alone(text: str, k: int) -> str:
    """The module that returns the result of an operation alone; "" if there is none."""
    try:
        module = bindings.parse(text, "a value")
        with bindings.context():
            _return_value(module, k)
            _drop_dead(module)
            return str(module)
    except (LookupError, ValueError, bindings.mlir().MLIRError):
        return ""


def _stepped(
    name: str, step: Callable[[Any], object], start: str, text: str, value: str | None = None
) -> Iterator[Smaller]:
    """The module after a step from `start`, if the step is possible, leaves a sound module, and that is not `text`."""
    try:
        module = bindings.parse(start, "a smaller module")
        with bindings.context():
            step(module)
            _drop_dead(module)
            kept = _drop_arguments(module)
            code = str(module)
            if code != text and value != "" and module.operation.verify():
                yield Smaller(name, code, kept, value or "")
    except (TenferroError, LookupError, ValueError, bindings.mlir().MLIRError):
        return


def _main(module: Any) -> Any:
    return functions_of(module)["main"]


def _last(module: Any) -> Any:
    return list(block_of(_main(module)).operations)[-1].operation


def _operations(module: Any) -> list[Any]:
    """The operations of `main`, those in regions behind the one that has them; without what ends a block."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name not in ("func.func", "func.return", "stablehlo.return"):
            found.append(op)
        return bindings.mlir().WalkResult.ADVANCE

    _main(module).operation.walk(visit, bindings.mlir().WalkOrder.PRE_ORDER)
    return found


def _joins(op: Any) -> bool:
    """Whether an operation is in the body of a reduction, a window or a scatter."""
    while op.name != "func.func":
        op = op.parent.operation
        if op.name in _JOINING:
            return True
    return False


def _is_small_constant(op: Any) -> bool:
    """Whether it is a constant of one number; where there are more, an argument can be cut to fewer."""
    shape: list[int] = bindings.mlir().ShapedType(op.results[0].type).shape if op.name == "stablehlo.constant" else [0]
    return prod(shape) == 1


def _op(module: Any, k: int) -> Any:
    return _operations(module)[k]


def _return_result(module: Any, number: int) -> None:
    return_values(_main(module), [list(_last(module).operands)[number]])


def _return_op(module: Any, k: int) -> None:
    if _op(module, k).name == "stablehlo.constant":
        raise LookupError
    _return_value(module, k)


def _return_value(module: Any, k: int) -> None:
    op = _op(module, k)
    if len(op.results) != 1 or op.parent.name != "func.func":
        raise LookupError
    return_values(_main(module), [op.results[0]])


def _bypass(module: Any, k: int) -> None:
    """Operands of the same types in the place of the results."""
    op = _op(module, k)
    results, operands = list(op.results), list(op.operands)
    for i, result in enumerate(results):
        alike = [x for x in operands[i : i + 1] + operands if x.type == result.type]
        result.replace_all_uses_with(alike[0])


def _region_in_place(module: Any, k: int, r: int) -> None:
    """A branch that is taken, a loop's body run once."""
    op = _op(module, k)
    put_in_place(op.regions[r].blocks[0], op)


def _carried_not(module: Any, k: int, v: int) -> None:
    """A loop that does not carry its value `v`, in whose place the initial one is."""
    ir, op = bindings.mlir(), _op(module, k)
    initial = op.operands[v]

    def others(values: Any) -> list[Any]:
        return [value for i, value in enumerate(values) if i != v]

    with ir.Location.unknown(), ir.InsertionPoint(op):
        made = ir.Operation.create(op.name, [r.type for r in others(op.results)], others(op.operands), regions=2)
    for region, new in zip(op.regions, made.regions, strict=True):
        block = region.blocks[0]
        block.append_to(new)
        block.arguments[v].replace_all_uses_with(initial)
        block.erase_argument(v)
    last = list(made.regions[1].blocks[0].operations)[-1]
    with ir.Location.unknown(), ir.InsertionPoint(last):
        ir.Operation.create("stablehlo.return", [], others(last.operands))
    last.erase()
    op.results[v].replace_all_uses_with(initial)
    for old, result in zip(others(op.results), made.results, strict=True):
        old.replace_all_uses_with(result)
    op.erase()


def _as_constant(module: Any, k: int) -> None:
    """Ones in the place of the result."""
    ir, op = bindings.mlir(), _op(module, k)
    if op.name == "stablehlo.constant":
        raise LookupError
    for result in list(op.results):
        with ir.Location.unknown(), ir.InsertionPoint(op):
            result.replace_all_uses_with(filled(result.type, 1))


def _as_argument(module: Any, k: int) -> None:
    """A new argument, the last one, in the place of the result."""
    ir, op, main = bindings.mlir(), _op(module, k), _main(module)
    with ir.Location.unknown():
        op.results[0].replace_all_uses_with(block_of(main).add_argument(op.results[0].type, ir.Location.unknown()))
    if "arg_attrs" in main.attributes:
        del main.attributes["arg_attrs"]


def _drop_dead(module: Any) -> None:
    """Leave out operations of `main` without a use of their results, and functions without a call."""
    for op in reversed(_operations(module)):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()
    text = str(module)
    for name, function in functions_of(module).items():
        if name != "main" and len(re.findall(rf"@{re.escape(name)}\b", text)) == 1:
            function.operation.erase()


def _drop_arguments(module: Any) -> tuple[int, ...]:
    """Leave out unused arguments; gives the numbers of the others."""
    ir, main = bindings.mlir(), _main(module)
    arguments = list(block_of(main).arguments)
    kept = tuple(i for i, a in enumerate(arguments) if any(True for _ in a.uses))
    types = [arguments[i].type for i in kept]
    for i in reversed(range(len(arguments))):
        if i not in kept:
            block_of(main).erase_argument(i)
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, main.type.results))
    if "arg_attrs" in main.attributes and len(kept) < len(arguments):
        del main.attributes["arg_attrs"]
    return kept


def _extents(text: str) -> Iterator[tuple[str, str]]:
    """The text with one extent made smaller wherever it occurs as such; most of these verify only where axes match."""
    extents = sorted({int(n) for n in re.findall(r"(?<=[<x])(\d+)(?=x)", text) if int(n) > 1}, reverse=True)
    for extent in extents:
        for less in dict.fromkeys((1, 2, extent // 2, extent - 1)):
            if 0 < less < extent:
                number = rf"(?<=[<x]){extent}(?=x)|(?<=[:, \[]){extent}(?=[\],>:])"
                yield f"extent {extent} as {less}", re.sub(number, str(less), text)
