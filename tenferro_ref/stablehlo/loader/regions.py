"""Bodies of reductions, sorts and scatters, applied to whole arrays: what a body says of scalars holds for each element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.bodies import DEEPEST, RETURN
from tenferro_ref.stablehlo.loader.composed import spread, static
from tenferro_ref.stablehlo.loader.tracer import ROWS, Tracer

#: Ops of a body on floats that pick or move values, and round nothing.
_EXACT = ("abs", "and", "compare", "complex", "constant", "imag", "maximum", "minimum", "negate", "not", "or", "real",
          "return", "select", "xor", "func.return", "broadcast_in_dim", "reshape", "transpose", "optimization_barrier")  # fmt: skip
#: Ops that tell their first operand from the second: a body with one of them is hardly ever associative.
_ORDERED = (
    "subtract",
    "negate",
    "divide",
    "remainder",
    "power",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
)
#: Of a scalar, that scalar.
_MOVES = ("broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "optimization_barrier")
#: Of scalars these have rows that are about arrays as a whole.
_WHOLE = ("custom_call", "dot_general", "dynamic_slice", "dynamic_update_slice", "gather", "iota", "pad")


def apply_body(
    b: Tracer,
    op: Operation,
    arguments: Sequence[Value],
    region: int = 0,
    compared: list[Value] | None = None,
) -> list[Value]:
    """What the body of `op` gives for arrays of one shape in place of its scalars.

    Parameters
    ----------
    compared
        Gets the first operand of each comparison, in the order of `bodies.results`.

    Raises
    ------
    UnsupportedOp
        The body has an op with regions, one without a row, or one that is about more than one element.
    """
    (block,) = op.raw.operation.regions[region].blocks
    shape = max((static(v) for v in arguments), key=len)
    return _applied(b, op, block, arguments, shape, [] if compared is None else compared)


def _applied(
    b: Tracer,
    op: Operation,
    block: Any,
    arguments: Sequence[Value],
    shape: tuple[int, ...],
    compared: list[Value],
    depth: int = 0,
) -> list[Value]:
    env: dict[Any, Value] = dict(zip(block.arguments, arguments, strict=True))
    for inner in map(Operation, block.operations):
        raw = inner.raw.operation
        if any(v not in env for v in raw.operands) or list(raw.regions) or not _is_of_elements(inner):
            raise op.refusal(f"its body has {raw.name}, which is not applied element by element")
        operands = [env[v] for v in raw.operands]
        if inner.name in RETURN:
            return [spread(v, shape) if v.ndim < len(shape) else v for v in operands]
        if inner.name == "func.call":
            if depth == DEEPEST:
                raise op.refusal(f"calls in its body are nested more than {DEEPEST} deep (is it recursive?)")
            called = _applied(b, op, inner.callee(), operands, shape, compared, depth + 1)
            env.update(zip(raw.results, called, strict=True))
            continue
        if inner.name in _MOVES:
            env[raw.results[0]] = operands[0]
            continue
        if any(v.ndim for v in operands):
            operands = [spread(v, shape) if v.ndim < len(shape) else v for v in operands]
        if inner.name == "compare":
            compared.append(operands[0])
        made = ROWS[inner.name](b, inner, *operands)
        env.update(zip(raw.results, (made,) if isinstance(made, Value) else made, strict=True))
    raise op.refusal("its body returns nothing")


def _is_of_elements(inner: Operation) -> bool:
    """Whether an operation of a body has a row, and is of scalars: rows of what moves elements are about whole arrays."""
    raw = inner.raw.operation
    scalar = all("x" not in str(v.type).partition("complex")[0] for v in (*raw.operands, *raw.results))
    return scalar and inner.name not in _WHOLE and inner.name in (*ROWS, *RETURN, "func.call")


def is_exact(op: Operation, region: int = 0) -> bool:
    """Whether the body rounds nothing."""
    (block,) = op.raw.operation.regions[region].blocks
    return not any(_rounds(inner) for inner in _operations(block))


def _rounds(inner: Operation) -> bool:
    raw = inner.raw.operation
    of_floats = any("f" in str(v.type).partition("<")[2] for v in raw.results)
    modulus = inner.name == "abs" and "complex" in str(raw.operands[0].type)
    return of_floats and (modulus or inner.name not in _EXACT)


def _operations(block: Any, depth: int = 0) -> Iterator[Operation]:
    """Those of a body, and in place of calls those of the functions that are called."""
    for inner in map(Operation, block.operations):
        if inner.name == "func.call" and depth < DEEPEST:
            yield from _operations(inner.callee(), depth + 1)
        else:
            yield inner


def _check_order(op: Operation, region: int) -> None:
    """Raise unless the body can be applied in any order: it rounds nothing, and nothing in it tells left from right."""
    (block,) = op.raw.operation.regions[region].blocks
    for inner in _operations(block):
        if _rounds(inner):
            raise op.refusal("its body rounds: in which order it is applied is not said")
        if inner.name in _ORDERED:
            reason = f"its body has {inner.raw.operation.name}, and need not be associative: in which order it is applied is not said"
            raise op.refusal(reason)


def fold_tree(
    b: Tracer, op: Operation, arrays: Sequence[Value], inits: Sequence[Value], region: int = 0
) -> tuple[list[Value], list[Value], list[Value]]:
    """The body of `op` folded over the last axis of the arrays, neighbours first.

    Returns
    -------
    tuple
        The results with the initial values, once, in front; without these; and with these behind.

    Raises
    ------
    UnsupportedOp
        The body rounds floats, so that the order matters; or cannot be applied to arrays.
    """
    count = static(arrays[0])[-1]
    if count > 1:
        _check_order(op, region)
    current, axis = list(arrays), arrays[0].ndim - 1
    while (count := static(current[0])[-1]) > 1:
        even, odd = ([_every_second(v, axis, start, count // 2) for v in current] for start in (0, 1))
        joined = apply_body(b, op, [*even, *odd], region)
        if count % 2:
            rest = [_every_second(v, axis, count - 1, 1) for v in current]
            joined = [b.apply(ops.Concatenate(axis), *pair) for pair in zip(joined, rest, strict=True)]
        current = joined
    shape = static(arrays[0])[:-1]
    starts = [spread(v, shape) for v in inits]
    if count == 0:
        return starts, starts, starts
    never = [b.reshape(v, shape) for v in current]
    before, behind = ([*starts, *never], [*never, *starts])
    return apply_body(b, op, before, region), never, apply_body(b, op, behind, region)


def _every_second(x: Value, axis: int, start: int, count: int) -> Value:
    shape = static(x)
    starts, limits = [0] * len(shape), list(shape)
    starts[axis], limits[axis] = start, start + 2 * count - 1
    return x.builder.apply(ops.Slice(tuple(starts), tuple(limits), (*(1,) * axis, 2)), x)


def taken(b: Tracer, x: Value, places: np.ndarray, fill: Value | None = None) -> Value:
    """The elements of a vector at known places, in the shape of these; `fill`, a scalar, where a place is negative."""
    if fill is not None:
        x = b.apply(ops.Concatenate(0), x, spread(fill, (1,)))
        places = np.where(places < 0, static(x)[0] - 1, places)
    index = b.array(places.astype(np.int64))
    return b.apply(ops.Gather((), (0,), (0,), places.ndim, (1,)), x, index)


def grouped_places(targets: np.ndarray, numbers: np.ndarray, size: int) -> np.ndarray:
    """For each target in 0 ... size - 1 its numbers in their order, a line each, filled with -1."""
    order = np.argsort(targets, kind="stable")
    targets, numbers = targets[order], numbers[order]
    counts = np.bincount(targets, minlength=size)
    width = max(1, int(counts.max(initial=0)))
    table = np.full((size, width), -1, np.int64)
    within = np.arange(targets.size) - np.repeat(np.cumsum(counts) - counts, counts)
    table[targets, within] = numbers
    return table
