"""The watched form of a module: the operands and results of its calls of LAPACK are results of `main`, too.

Factors are not unique: what is computed from them can be judged only where they are known. Calls of functions in `main` are
inlined; what is called in a loop or a branch is not watched. Needs the extra `jax`.
"""

from __future__ import annotations

from typing import Any

from tenferro_ref.extensions.lapack import garbage
from tenferro_ref.stablehlo.loader import bindings
from tenferro_ref.stablehlo.loader.linalg import routine_of
from tenferro_ref.stablehlo.loader.signature import functions_of, signature
from tenferro_ref.stablehlo.source import Source

#: With which the targets of LAPACK's routines begin.
LAPACK = "lapack_"
#: How deep calls in calls are inlined.
_DEEPEST = 20


def watched(source: str | bytes, where: str = "StableHLO") -> Source:
    """The module with more results: of each call of LAPACK in `main`, in order, the operands and the results.

    Raises
    ------
    FormatError
        No StableHLO, or it does not verify.
    UnsupportedOp
        A routine that is not known.
    """
    module = bindings.parse(source, where)
    with bindings.context():
        main = functions_of(module)["main"]
        for _ in range(_DEEPEST):
            if not inline(module, main):
                break
        operations = [op.operation for op in block_of(main).operations]
        return_values(main, [*operations[-1].operands, *(value for op in operations for value in _seen(op))])
        text = str(module)
    return signature(text, where)


def _seen(op: Any) -> list[Any]:
    """What goes into and comes out of a call of LAPACK, but for what has no meaning; nothing of any other operation."""
    call = bindings.Operation(op)
    if call.name != "custom_call" or not call.attribute("call_target_name").startswith(LAPACK):
        return []
    without = garbage(routine_of(call), len(op.results))
    return [*op.operands, *(result for i, result in enumerate(op.results) if i not in without)]


def block_of(function: Any) -> Any:
    """The one block of a function."""
    return function.operation.regions[0].blocks[0]


def return_values(function: Any, values: list[Any]) -> None:
    """Make `values` the results of a function."""
    ir = bindings.mlir()
    from jaxlib.mlir.dialects import func

    list(block_of(function).operations)[-1].operation.erase()
    with ir.Location.unknown(), ir.InsertionPoint(block_of(function)):
        func.ReturnOp(values)
    type_ = ir.FunctionType.get(function.type.inputs, [value.type for value in values])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    if "res_attrs" in function.attributes:
        del function.attributes["res_attrs"]


def inline(module: Any, main: Any) -> bool:
    """Put the operations of functions in the place of their calls in `main`, and erase these; whether there were any.

    The bindings' own pass knows no calls.
    """
    functions = functions_of(module)
    calls = [o.operation for o in block_of(main).operations if o.operation.name == "func.call"]
    for call in calls:
        put_in_place(block_of(functions[call.attributes["callee"].value]), call)
    return bool(calls)


def put_in_place(block: Any, op: Any) -> None:
    """Put copies of a block's operations in the place of `op`, whose operands are the block's arguments."""
    known = dict(zip(block.arguments, op.operands, strict=True)) if len(block.arguments) else {}
    with bindings.mlir().InsertionPoint(op):
        for inner in block.operations:
            if inner.operation.name in ("func.return", "stablehlo.return"):
                for result, value in zip(list(op.results), inner.operation.operands, strict=True):
                    result.replace_all_uses_with(known.get(value, value))
            else:
                made = inner.operation.clone()
                _use(made, known)
                known.update(zip(inner.operation.results, made.results, strict=True))
    op.erase()


def _use(operation: Any, known: dict[Any, Any]) -> None:
    """Replace operands, also of operations inside, by what is known for them."""

    def visit(inner: Any) -> Any:
        for i, value in enumerate(list(inner.operands)):
            if value in known:
                inner.operands[i] = known[value]
        return bindings.mlir().WalkResult.ADVANCE

    operation.walk(visit)
