"""The conformance run: folders of `.mlir` files in the style of StableHLO's own test data, and how many of them hold.

A file holds one module, or several between lines `// -----`. A function in it computes values and states what they are:
`stablehlo.custom_call @check.expect_eq(%actual, %expected)`, or the same as an op of the `check` dialect, in its generic or
its short form (`check.expect_eq_const %actual, dense<...> : tensor<...>`). Each such function is read, run natively and on
plugins after it was emitted again, and its statements are judged:

* `eq`: equal values; NaN equals NaN, and a zero the other zero.
* `almost_eq`: at most `tolerance` apart (1e-3 if none is given); infinities and NaN as in `eq`.
* `close`: at most `max_ulp_difference` (3 if none is given) units in the last place apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from oracle.case import Case
from oracle.peers import Executor, NativeExecutor, Pool
from oracle.ulp import ulp_distance
from tenferro_ref.errors import TenferroError
from tenferro_ref.files import read_text
from tenferro_ref.stablehlo.loader import bindings, load_module
from tenferro_ref.tensor import Array


@dataclass(frozen=True)
class Statement:
    """What is expected of outputs 2i and 2i + 1 of a program."""

    kind: str
    tolerance: float = 1e-3
    ulps: int = 3

    def judge(self, actual: Array, expected: Array) -> str | None:
        """What is wrong with `actual`; None if it is as stated."""
        if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
            return f"{actual.dtype}{actual.shape} where {expected.dtype}{expected.shape} is expected"
        good = self._elements(actual, expected)
        if good.all():
            return None
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        return f"{self.kind}: element {list(at)} is {actual[at]}, expected {expected[at]}"

    def _elements(self, actual: Array, expected: Array) -> Array:
        if actual.dtype.kind == "c":
            return self._elements(actual.real, expected.real) & self._elements(actual.imag, expected.imag)
        same = np.asarray((actual == expected) | ((actual != actual) & (expected != expected)))
        if self.kind == "eq" or actual.dtype.kind != "f":
            return same
        with np.errstate(invalid="ignore"):
            if self.kind == "almost_eq":
                return same | np.asarray(abs(actual - expected) <= self.tolerance)
        finite = np.isfinite(actual) & np.isfinite(expected)
        return same | (finite & (ulp_distance(actual, expected) <= self.ulps))


@dataclass(frozen=True)
class Outcome:
    """How far one function came: `read`, `native` and each plugin are "" where they hold, else the reason."""

    name: str
    read: str
    executors: dict[str, str]

    @property
    def holds(self) -> bool:
        return not self.read and not any(self.executors.values())


# --- reading ----------------------------------------------------------------------------------------------------------

_DENSE = r'dense<(?:"[^"]*"|[^>"])*>'
_TENSOR = r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>"
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
    number = re.compile(r"[\d.e+-]+")
    return Statement(
        kind,
        float(number.match(str(tolerance))[0]) if tolerance is not None else 1e-3,  # type: ignore[index]
        int(number.match(str(ulps))[0]) if ulps is not None else 3,  # type: ignore[index]
    )


def _turn_into_outputs(function: Any) -> list[Statement]:
    """Make the operands of a function's statements its results; the statements themselves are taken out."""
    ir = bindings.mlir()
    from jaxlib.mlir.dialects import func

    block = function.operation.regions[0].blocks[0]
    stated = [(op, s) for op in block.operations if (s := _statement(op)) is not None]
    if not stated:
        return []
    with ir.Location.unknown():
        values = [v for op, _ in stated for v in op.operation.operands]
        for op in (list(block.operations)[-1], *(op for op, _ in reversed(stated))):
            op.operation.erase()
        with ir.InsertionPoint(block):
            func.ReturnOp(values)
        type_ = ir.FunctionType.get(function.type.inputs, [v.type for v in values])
        function.attributes["function_type"] = ir.TypeAttr.get(type_)
        if "res_attrs" in function.attributes:
            del function.attributes["res_attrs"]
    return [s for _, s in stated]


# --- running ----------------------------------------------------------------------------------------------------------


def outcomes(path: Path, executors: Sequence[Executor]) -> Iterator[Outcome]:
    """One outcome a function that states something."""
    bindings.context().allow_unregistered_dialects = True
    for number, text in enumerate(re.split(r"^// -----.*$", read_text(path), flags=re.MULTILINE)):
        where = path.name if number == 0 else f"{path.name} ({number + 1})"
        try:
            module = bindings.parse(_generic(text), where)
        except TenferroError as error:
            yield Outcome(where, f"{error.kind}: {error}", {})
            continue
        with bindings.context():
            functions = [op for op in module.body.operations if op.operation.name == "func.func"]
            stated = {f.name.value: s for f in functions if (s := _turn_into_outputs(f))}
        for name, statements in stated.items():
            yield _outcome(module, where if len(stated) == 1 else f"{where} @{name}", name, statements, executors)


def _outcome(
    module: Any, where: str, name: str, statements: Sequence[Statement], executors: Sequence[Executor]
) -> Outcome:
    try:
        bindings.legalize(module, where)
        loaded = load_module(module, where, name)
        case = Case.of(loaded.program, loaded.inputs([]))
    except TenferroError as error:
        return Outcome(where, f"{error.kind}: {error}", {})
    return Outcome(where, "", {e.name: _judge(e, case, statements) for e in executors})


def _judge(executor: Executor, case: Case, statements: Sequence[Statement]) -> str:
    try:
        outputs = executor.run(case).outputs
    except TenferroError as error:
        return f"{error.kind}: {error}"
    pairs = zip(outputs[::2], outputs[1::2], strict=True)
    found = [s.judge(actual, expected) for s, (actual, expected) in zip(statements, pairs, strict=True)]
    return next((reason for reason in found if reason), "")


def run(folder: Path, executors: str) -> list[Outcome]:
    """Every file below `folder`, natively and on `executors` (names separated by commas, "" for none)."""
    pool = Pool()
    try:
        chosen = pool.select(executors.split(",")).executors if executors else ()
        return [o for path in sorted(folder.rglob("*.mlir")) for o in outcomes(path, (NativeExecutor(), *chosen))]
    finally:
        pool.close()
