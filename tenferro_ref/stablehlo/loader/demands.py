"""What the operations of a module demand of its arguments, for generators of inputs: indices in range, definite matrices.

An argument's values are followed through what copies, converts and combines them to the operations that demand something.
Nothing here is needed to run a module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tenferro_ref.stablehlo.loader.bindings import Operation

#: Operations from whose result an argument is no longer recognised.
_ENDS = frozenset(
    {"dot_general", "dot", "convolution", "reduce", "reduce_window", "gather", "dynamic_slice", "sort", "fft", "while"}
)
_DEFINITE = re.compile(r"cholesky|custom_call:lapack_\w+potrf")


def demands(function: Any, functions: dict[str, Any]) -> tuple[str, ...]:
    """For each argument "" (nothing), "index:N" (integers in [0, N)) or "definite" (a positive definite matrix)."""
    found: list[str] = []
    for argument in function.operation.regions[0].blocks[0].arguments:
        wanted = list(_wanted(function, {argument}, functions, 8))
        limits = [int(w.partition(":")[2]) for w in wanted if w.startswith("index:")]
        found.append(f"index:{min(limits)}" if limits else "definite" if "definite" in wanted else "")
    return tuple(found)


def _wanted(function: Any, followed: set[Any], functions: dict[str, Any], depth: int) -> Iterator[str]:
    """What operations of a function demand of the values that are followed; these grow on the way."""
    if function.is_external or not depth:
        return
    for raw in function.operation.regions[0].blocks[0].operations:
        op, operands = Operation(raw), list(raw.operation.operands)
        places = [i for i, v in enumerate(operands) if v in followed]
        if not places:
            continue
        yield from _of_operation(op, operands, places)
        if op.name == "func.call":
            callee = functions.get(op.attribute("callee"))
            if callee is not None and not callee.is_external:
                inner = callee.operation.regions[0].blocks[0].arguments
                yield from _wanted(callee, {inner[i] for i in places}, functions, depth - 1)
        if op.name not in _ENDS:
            followed.update(raw.operation.results)


def _of_operation(op: Operation, operands: Sequence[Any], places: Sequence[int]) -> Iterator[str]:
    name = op.full_name
    if _DEFINITE.match(name):
        yield "definite"
    if name in ("gather", "scatter"):
        count = 1 if name == "gather" else (len(operands) - 1) // 2
        numbers = "dimension_numbers" if name == "gather" else "scatter_dimension_numbers"
        axes = op.fields(numbers).get("start_index_map" if name == "gather" else "scatter_dims_to_operand_dims", [])
        if count in places:
            yield from (f"index:{_extent(operands[0], axis)}" for axis in axes)
    first = {"dynamic_slice": 1, "dynamic_update_slice": 2}.get(name, len(operands))
    yield from (f"index:{_extent(operands[0], i - first)}" for i in places if i >= first)


def _extent(value: Any, axis: int) -> int:
    return max(1, int(value.type.shape[axis]))
