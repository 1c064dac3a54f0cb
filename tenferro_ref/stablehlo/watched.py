"""The watched form of a module: the operands and results of its calls of LAPACK are results of `main`, too.

Factors are not unique: what is computed from them can be judged only where they are known. Calls of functions in `main` are
inlined. A loop becomes as many branches as it has turns for the inputs, each under the loop's condition, and one more for the
condition that ends it. An operation that branches gives what is seen in its branches as further results, zeros where another one is
taken. Needs the extra `jax`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from tenferro_ref.extensions.lapack import garbage
from tenferro_ref.stablehlo.loader import bindings, load
from tenferro_ref.stablehlo.loader.linalg import routine_of
from tenferro_ref.stablehlo.loader.reader import NUMBER
from tenferro_ref.stablehlo.loader.signature import functions_of, signature
from tenferro_ref.stablehlo.loader.tracer import Evaluate
from tenferro_ref.stablehlo.source import Source
from tenferro_ref.tensor import Array

#: With which the targets of LAPACK's routines begin.
LAPACK = "lapack_"
#: What takes one of its regions.
_BRANCHING = ("stablehlo.case", "stablehlo.if")
_LOOP = "stablehlo.while"
#: The most turns that loops are written out for; beyond, none is.
_MOST_TURNS = 200
#: How deep calls in calls are inlined.
_DEEPEST = 20


def watched(source: str | bytes, where: str, evaluate: Evaluate, inputs: Sequence[Array]) -> Source:
    """The module with more results: of each call of LAPACK in `main`, in order, the operands and the results.

    Parameters
    ----------
    evaluate, inputs
        As for `load`: how often a loop turns may depend on them.

    Raises
    ------
    FormatError
        No StableHLO, or it does not verify.
    UnsupportedOp
        A routine that is not known.
    """
    module = bindings.parse(source, where)
    with bindings.reading(where):
        main = functions_of(module)["main"]
        for _ in range(_DEEPEST):
            if not sum(inline(module, block) for block in _blocks(block_of(main), (*_BRANCHING, _LOOP))):
                break
        if loops := _number_loops(block_of(main)):
            turns = load(str(module), where, evaluate=evaluate, inputs=inputs).turns
            if sum(_copies(op, turns) for op in loops) <= _MOST_TURNS:
                _write_out(block_of(main), turns)
        seen = _seen_in(block_of(main))
        return_values(main, [*list(block_of(main).operations)[-1].operation.operands, *seen])
        text = str(module)
    return signature(text, where)


def _blocks(block: Any, names: Sequence[str] = _BRANCHING) -> Iterator[Any]:
    """A block, and those in operations of these names in it."""
    yield block
    for op in list(block.operations):
        if op.operation.name in names:
            for region in op.operation.regions:
                yield from _blocks(region.blocks[0], names)


def _number_loops(block: Any) -> list[Any]:
    """The loops that call LAPACK, wherever they are; each is given a number."""
    ir = bindings.mlir()
    loops: list[Any] = []
    for inner in _blocks(block, (*_BRANCHING, _LOOP)):
        for op in (o.operation for o in inner.operations if o.operation.name == _LOOP):
            if any(
                _seen(o.operation) for b in _blocks(op.regions[1].blocks[0], (*_BRANCHING, _LOOP)) for o in b.operations
            ):
                op.attributes[NUMBER] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(loops))
                loops.append(op)
    return loops


def _copies(op: Any, turns: Mapping[int, int]) -> int:
    """How many copies of the body of a loop there are when it, and the loops around it, are written out."""
    around = [op]
    while around[-1].name != "func.func":
        around.append(around[-1].parent.operation)
    return prod(turns.get(o.attributes[NUMBER].value, 0) for o in around if NUMBER in o.attributes)


def _write_out(block: Any, turns: Mapping[int, int]) -> None:
    """Put branches, a turn each, in the place of the numbered loops; then of those in these."""
    while loops := [
        op.operation
        for inner in _blocks(block)
        for op in inner.operations
        if op.operation.name == _LOOP and NUMBER in op.operation.attributes
    ]:
        _write_out_loop(loops[0], turns.get(loops[0].attributes[NUMBER].value, 0))


def _seen_in(block: Any) -> list[Any]:
    """What goes into and comes out of the calls of LAPACK in a block and its branches, as values of the block."""
    return [
        value
        for op in list(block.operations)
        for value in (_from_branches(op.operation) if op.operation.name in _BRANCHING else _seen(op.operation))
    ]


def _from_branches(op: Any) -> list[Any]:
    """The same of a branching operation, which is replaced by one with these as further results."""
    ir = bindings.mlir()
    blocks = [region.blocks[0] for region in op.regions]
    seen = [_seen_in(block) for block in blocks]
    more = [(i, value) for i, values in enumerate(seen) for value in values]
    if not more:
        return []
    with ir.Location.unknown(), ir.InsertionPoint(op):
        types = [value.type for value in (*op.results, *(value for _, value in more))]
        attributes = {
            a.name: a.attr for a in map(op.attributes.__getitem__, range(len(op.attributes)))
        }  # iterating gives names
        made = ir.Operation.create(op.name, types, list(op.operands), attributes, regions=len(blocks))
    for k, (block, region) in enumerate(zip(blocks, made.regions, strict=True)):
        last = list(block.operations)[-1].operation
        with ir.Location.unknown(), ir.InsertionPoint(last):
            given = [value if i == k else filled(value.type, 0) for i, value in more]
            ir.Operation.create("stablehlo.return", [], [*last.operands, *given])
        last.erase()
        block.append_to(region)
    own = len(op.results)
    for old, new in zip(op.results, list(made.results)[:own], strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return list(made.results)[own:]


def _write_out_loop(op: Any, turns: int) -> None:
    """Put one branch a turn in the place of a loop, and one that goes on with the same values either way."""
    ir = bindings.mlir()
    condition, body = (region.blocks[0] for region in op.regions)
    values = list(op.operands)
    with ir.Location.unknown(), ir.InsertionPoint(op):
        for turn in range(turns + 1):
            test = _copied(condition, values)
            types = [value.type for value in values]
            made = ir.Operation.create("stablehlo.if", types, test, regions=2)
            for place, region in enumerate(made.regions):
                with ir.InsertionPoint(region.blocks.append()):
                    next_ = _copied(body, values) if place == 0 and turn < turns else values
                    ir.Operation.create("stablehlo.return", [], next_)
            values = list(made.results)
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def filled(type_: Any, digit: int) -> Any:
    """The result of a new constant, at the insertion point, whose elements are all 0 or all 1 (+ 0i)."""
    ir = bindings.mlir()
    element = str(ir.ShapedType(type_).element_type)
    number = f"({digit}.0, 0.0)" if element.startswith("complex") else f"{digit}.0"
    number = str(digit) if element[0] in "iu" else number
    # Attribute.parse cannot give complex numbers: "Can't cast unknown element type"
    made = ir.Operation.parse(f'"stablehlo.constant"() <{{value = dense<{number}> : {type_}}}> : () -> {type_}')
    ir.InsertionPoint.current.insert(made)
    return made.results[0]


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


def inline(module: Any, block: Any) -> bool:
    """Put the operations of functions in the place of their calls in a block, and erase these; whether there were any.

    The bindings' own pass knows no calls.
    """
    functions = functions_of(module)
    calls = [o.operation for o in block.operations if o.operation.name == "func.call"]
    for call in calls:
        put_in_place(block_of(functions[call.attributes["callee"].value]), call)
    return bool(calls)


def put_in_place(block: Any, op: Any) -> None:
    """Put copies of a block's operations in the place of `op`, whose operands are the block's arguments."""
    with bindings.mlir().InsertionPoint(op):
        for result, value in zip(list(op.results), _copied(block, op.operands), strict=True):
            result.replace_all_uses_with(value)
    op.erase()


def _copied(block: Any, arguments: Sequence[Any]) -> list[Any]:
    """Copies of a block's operations at the insertion point, for these arguments: what they return."""
    known = dict(zip(block.arguments, arguments, strict=True)) if len(block.arguments) else {}
    for inner in block.operations:
        if inner.operation.name in ("func.return", "stablehlo.return"):
            return [known.get(value, value) for value in inner.operation.operands]
        made = inner.operation.clone()
        _use(made, known)
        known.update(zip(inner.operation.results, made.results, strict=True))
    return []


def _use(operation: Any, known: dict[Any, Any]) -> None:
    """Replace operands, also of operations inside, by what is known for them."""

    def visit(inner: Any) -> Any:
        for i, value in enumerate(list(inner.operands)):
            if value in known:
                inner.operands[i] = known[value]
        return bindings.mlir().WalkResult.ADVANCE

    operation.walk(visit)
