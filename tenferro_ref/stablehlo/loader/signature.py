"""What must be known of a module to run it unchanged: its function, the types of arguments and results, and its operations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import count
from typing import Any

from tenferro_ref.errors import FormatError
from tenferro_ref.ops import TensorType
from tenferro_ref.stablehlo.loader import bindings
from tenferro_ref.stablehlo.loader.demands import demands
from tenferro_ref.stablehlo.source import Source

#: What says only where arrays lie: results are the same without it.
_PLACING = ("sdy.mesh", "sdy.sharding_constraint")
_ELEMENT = re.compile(r"tensor<(?:[\d?]+x)*(complex<\w+>|\w+)")


def signature(source: str | bytes, where: str = "StableHLO", entry: str = "main") -> Source:
    """The module with its signature. What its operations do is not looked at: it need not be one that `load` can read.

    Raises
    ------
    FormatError
        No StableHLO, or it does not verify; no function `entry` among several; a function that calls itself, or without a body.
    UnsupportedDType, NonStaticShape
        A function of this type cannot be run by itself: an extent is dynamic, or an argument is no tensor.
    MissingDependency
        The extra `jax` is not installed.
    """
    module = bindings.parse(source, where)
    with bindings.reading(where):
        placed = _leave_out_shardings(module)
        function = entry_function(module, where, entry)
        _check_calls(functions_of(module), where)
        with bindings.located(function, where):
            arguments = tuple(_types(function.type.inputs, "argument"))
            results = tuple(_types(function.type.results, "result"))
        ops, wanted = frozenset(_ops(module)), demands(function, functions_of(module))
        code = source
        if isinstance(code, bytes) and not code.startswith(bindings.MAGIC):
            code = code.decode("utf-8-sig")
        if function.name.value != "main":
            code = _with_main(module, function)
        elif placed:
            code = str(module)
    return Source(code, arguments, results, ops, wanted, where)


def _leave_out_shardings(module: Any) -> bool:
    """Take out in place what says where arrays lie; whether there was anything. Parts that each device runs by itself stay, with all that they need."""
    ir = bindings.mlir()
    found: list[Any] = []
    others: list[Any] = []

    def visit(operation: Any) -> Any:
        (found if operation.name.startswith("sdy.") else others).append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if not found or any(operation.name not in _PLACING for operation in found):
        return False
    for operation in others:
        attributes = operation.attributes
        for name in ("sdy.sharding", "sdy.sharding_rule"):
            if name in attributes:
                del attributes[name]
        for name in ("arg_attrs", "res_attrs"):
            if name in attributes:
                kept = [{a.name: a.attr for a in each if a.name != "sdy.sharding"} for each in attributes[name]]
                with operation.location:
                    attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in kept])
    for operation in found:
        if len(operation.results):
            operation.results[0].replace_all_uses_with(operation.operands[0])
        operation.erase()
    return True


def functions_of(module: Any) -> dict[str, Any]:
    """The functions of a module by name."""
    return {op.name.value: op for op in module.body.operations if op.operation.name == "func.func"}


def entry_function(module: Any, where: str, entry: str) -> Any:
    """The function called `entry`; else the only one there is, or the only one that is not private.

    Raises
    ------
    FormatError
        There is none, or it is not clear which.
    """
    functions = functions_of(module)
    if entry in functions:
        return functions[entry]
    public = [f for f in functions.values() if bindings.Operation(f).attribute("sym_visibility") != "private"]
    for candidates in (list(functions.values()), public):
        if len(candidates) == 1:
            return candidates[0]
    raise FormatError(where=where, detail=f"has no function @{entry}; it has {sorted(functions) or 'none'}")


def _check_calls(functions: Mapping[str, Any], where: str) -> None:
    """Refuse calls that no executor can follow: XLA ends the process at them."""
    calls: dict[str, set[str]] = {name: set() for name in functions}
    for name, function in functions.items():

        def visit(operation: Any, called: set[str] = calls[name]) -> Any:
            if operation.name == "func.call":
                called.add(str(bindings.Operation(operation).attribute("callee")))
            return bindings.mlir().WalkResult.ADVANCE

        function.operation.walk(visit)
    for name in sorted(set().union(*calls.values())):
        if functions[name].is_external:
            raise FormatError(where=where, detail=f"function @{name} is called and has no body")
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        chain = " calls ".join(f"@{name}" for name in error.args[1][::-1])
        raise FormatError(where=where, detail=f"{chain}: a function may not call itself") from None


def _types(types: Any, what: str) -> list[TensorType]:
    """The types, each element of a tuple by itself, as every client hands tuples over."""
    flat: list[TensorType] = []
    for i, type_ in enumerate(types):
        found = re.fullmatch(r"tuple<(.*)>", str(type_))
        if found is None or "tuple<" in found[1] or what == "argument":
            place = f"{what} {i}"
            if str(type_) == "!stablehlo.token":  # of jax.debug.print(ordered=True), for one
                place += ": it puts calls of Python functions, or queues, in order, which no other process has"
            flat.append(bindings.tensor_type(type_, place))
        else:
            elements = re.findall(r"tensor<[^<>]*(?:<[^<>]*>[^<>]*)?>", found[1])
            flat += [bindings.tensor_type(element, f"{what} {i}") for element in elements]
    return flat


def _ops(module: Any) -> set[tuple[str, str]]:
    """Names and element types of all operations but functions and what ends a region."""
    found: set[tuple[str, str]] = set()

    def visit(operation: Any) -> Any:
        name = bindings.Operation(operation).full_name
        types = {str(value.type) for value in (*operation.operands, *operation.results)} or {""}
        found.update((name, element[1] if (element := _ELEMENT.search(text)) else "") for text in types)
        return bindings.mlir().WalkResult.ADVANCE

    module.operation.walk(visit)
    return {(name, element) for name, element in found if name not in ("builtin.module", "func.func")}


def _with_main(module: Any, function: Any) -> str:
    """The module's text with a function `main` that calls `function`; a function of that name is renamed."""
    ir = bindings.mlir()
    from jaxlib.mlir.dialects import func

    functions = functions_of(module)
    if "main" in functions:
        other = next(name for i in count() if (name := f"main_{i}") not in functions)
        ir.SymbolTable.replace_all_symbol_uses("main", other, module.operation)
        functions["main"].attributes["sym_name"] = ir.StringAttr.get(other)
    with ir.Location.unknown(), ir.InsertionPoint(module.body):
        main: Any = func.FuncOp("main", function.type)
        with ir.InsertionPoint(main.add_entry_block()):
            call = func.CallOp(function.type.results, function.name.value, main.entry_block.arguments)
            func.ReturnOp(call.results)
    return str(module)
