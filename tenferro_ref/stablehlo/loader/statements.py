"""Modules in the style of StableHLO's own test data: functions that state results, as modules that give what is compared.

A function states a result by `stablehlo.custom_call @check.expect_eq(%actual, %expected)`, or by an op of the `check` dialect, in
its generic or its short form (`check.expect_eq_const %actual, dense<...> : tensor<...>`). A file holds one module, or several
between lines `// -----`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tenferro_ref.errors import TenferroError
from tenferro_ref.stablehlo.loader import bindings
from tenferro_ref.stablehlo.loader.signature import functions_of


@dataclass(frozen=True)
class Statement:
    """What is stated of results 2i and 2i + 1 of a module.

    Attributes
    ----------
    kind
        "eq", "almost_eq" (at most `tolerance` apart) or "close" (at most `ulps` units in the last place apart).
    """

    kind: str
    tolerance: float = 1e-3
    ulps: int = 3


@dataclass(frozen=True)
class Stating:
    """A function that states results, as a module whose `main` returns what it compares.

    Attributes
    ----------
    error
        Why there is no such module; "" if there is.
    """

    where: str
    code: str
    statements: tuple[Statement, ...]
    error: str = ""


def stating(text: str, where: str) -> Iterator[Stating]:
    """The functions of a file that state results."""
    for number, part in enumerate(re.split(r"^// -----.*$", text, flags=re.MULTILINE)):
        place = where if number == 0 else f"{where} ({number + 1})"
        if not part.strip():
            continue
        bindings.context().allow_unregistered_dialects = True
        try:
            module = bindings.parse(_generic(part), place)
        except TenferroError as error:
            yield Stating(place, "", (), f"{error.kind}: {error}")
            continue
        finally:
            bindings.context().allow_unregistered_dialects = False
        with bindings.reading(place):
            functions = functions_of(module)
            stated = {name: s for name, f in functions.items() if (s := _turn_into_results(f))}
            for name, statements in stated.items():
                at = place if len(stated) == 1 else f"{place} @{name}"
                yield Stating(at, _alone(functions, name), tuple(statements))


def _alone(functions: dict[str, Any], entry: str) -> str:
    """The text of a function, as `main`, with the functions that it calls."""
    texts = {name: str(function) for name, function in functions.items()}
    needed, left = [], [entry]
    while left:
        name = left.pop()
        if name not in needed:
            needed.append(name)
            left += [other for other in re.findall(r'@"?([\w.$-]+)', texts[name]) if other in texts]
    names = {name: f"{name}_called" if name == "main" and name != entry else name for name in needed}
    names[entry] = "main"

    def renamed(found: re.Match[str]) -> str:
        return f"@{names.get(found[1], found[1])}"

    return "\n".join(re.sub(r'@"?([\w.$-]+)"?', renamed, texts[name]) for name in needed)


# what is not closed must not be looked for to the end of the file again and again
_DENSE = r'dense<(?:"\w*"|[^<>"])*>'
_TENSOR = r"tensor<[^<>]*(?:<[^<>]*>[^<>]*)?>"
_CONST = re.compile(rf"\bcheck\.(\w+)_const\s*(%[\w#]+)\s*,\s*({_DENSE})\s*:\s*({_TENSOR})([^\n]*)")
_SHORT = re.compile(
    rf"(?<![@\"])\bcheck\.(\w+)\s*(%[\w#]+)\s*,\s*(%[\w#]+)((?:\s*,\s*\w+ = [\w.+-]+)*)\s*:\s*({_TENSOR})[^\n]*"
)


def _generic(text: str) -> str:
    """The short forms of the `check` dialect, which the bindings do not know, as generic operations."""
    number = iter(range(len(text)))

    def const(found: re.Match[str]) -> str:
        kind, value, dense, type_, rest = found.groups()
        name = f"%stated_{next(number)}"
        return f"{name} = stablehlo.constant {dense} : {type_} " + _call(kind, value, name, type_, _options(rest))

    def short(found: re.Match[str]) -> str:
        kind, actual, expected, options, type_ = found.groups()
        return _call(kind, actual, expected, type_, _options(options))

    return _SHORT.sub(short, _CONST.sub(const, text))


def _options(text: str) -> str:
    return ", ".join(f'{key} = "{value}"' for key, value in re.findall(r"(\w+) = ([\d.e+-]+)", text))


def _call(kind: str, actual: str, expected: str, type_: str, options: str) -> str:
    return f'"check.{kind}"({actual}, {expected}) {{{options}}} : ({type_}, {type_}) -> ()'


def _statement(op: Any) -> Statement | None:
    """The statement that an operation makes; None for all other operations."""
    name = op.operation.name
    if name == "stablehlo.custom_call":
        name = bindings.Operation(op).attribute("call_target_name")
    kind = name.removeprefix("check.").removeprefix("expect_")
    if not name.startswith("check.") or kind not in ("eq", "almost_eq", "close"):
        return None
    tolerance, ulps = (bindings.Operation(op).attribute(key) for key in ("tolerance", "max_ulp_difference"))
    return Statement(kind, _number(tolerance, 1e-3), int(_number(ulps, 3)))


def _number(attribute: object, default: float) -> float:
    found = re.match(r"[\d.e+-]+", str(attribute))
    return default if attribute is None or found is None else float(found[0])


def _turn_into_results(function: Any) -> Sequence[Statement]:
    """Make the operands of a function's statements its results; the statements themselves are taken out."""
    ir = bindings.mlir()
    from jaxlib.mlir.dialects import func

    if function.is_external:
        return ()
    block = function.operation.regions[0].blocks[0]
    stated = [(op, s) for op in block.operations if (s := _statement(op)) is not None]
    if not stated:
        return ()
    with ir.Location.unknown():
        values = [v for op, _ in stated for v in op.operation.operands]
        for op in (list(block.operations)[-1], *(op for op, _ in reversed(stated))):
            op.operation.erase()
        with ir.InsertionPoint(block):
            func.ReturnOp(values)
        type_ = ir.FunctionType.get(function.type.inputs, [v.type for v in values])
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
        for name in ("res_attrs", "sym_visibility"):
            if name in function.attributes:
                del function.attributes[name]
    return [s for _, s in stated]
