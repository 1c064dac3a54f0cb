"""Elementwise fusion: a run of elementwise instructions evaluated block by block (SEMANTICS 5).

Which runs are eligible and the blockwise evaluation live here; the threshold belongs to the executor. The kernels are
those of the unfused path, on flat blocks of the column-major data. They give the same bits for an element wherever it
stands (see `kernels.elementwise` for what that took), so that fused and unfused results are equal bit for bit; wrong
blocks, operands or liveness would show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.ops import Op, Policy, TensorType
from tenferro_ref.program import ExecProgram
from tenferro_ref.runtime.kernels import KERNELS
from tenferro_ref.runtime.kernels.base import canonical
from tenferro_ref.runtime.kernels.elementwise import FLOAT_FUNCTIONS
from tenferro_ref.runtime.segment import Segment
from tenferro_ref.tensor import Array

#: Ops that fuse. Not Sign, Compare, Select and Convert.
FUSIBLE: frozenset[type[Op]] = frozenset({
    ops.Add, ops.Multiply, ops.Negate, ops.Conj, ops.Divide, ops.Abs, ops.Maximum, ops.Minimum, ops.Clamp, ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Pow, ops.Expm1,
    ops.Log1p,
})  # fmt: skip
FUSIBLE_DTYPES = INEXACT
#: Elements a block: a few operands of it fit a core's second-level cache.
BLOCK = 16384


@dataclass(frozen=True, slots=True)
class FusedOp:
    """One instruction of a plan, over slots."""

    op: Op
    operands: tuple[int, ...]
    result: int


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """A fusible segment: broadcasts of segment inputs, done first, and whole unless they spread a scalar; elementwise ops."""

    broadcasts: tuple[FusedOp, ...]
    body: tuple[FusedOp, ...]
    outputs: tuple[int, ...]

    def common_type(self, types: Mapping[int, TensorType], threshold: int = 0) -> TensorType | None:
        """The one dtype and shape that all values of the plan have, scalars aside.

        None if there is no such type, or it has fewer than `threshold` elements.
        """
        slots = {s for step in self.body for s in (*step.operands, step.result)}
        dtypes = {types[s].dtype for s in slots}
        shapes = {types[s].static_shape for s in slots if types[s].rank}
        if len(dtypes) != 1 or len(shapes) > 1:
            return None
        (dtype,), shape = dtypes, shapes.pop() if shapes else ()
        return TensorType(dtype, shape) if dtype in FUSIBLE_DTYPES and prod(shape) >= threshold else None


def plan_fusion(program: ExecProgram, segment: Segment) -> FusionPlan | None:
    """The plan of a segment, as far as the program alone decides it; None if the segment does not fuse."""
    instructions = [program.instructions[i] for i in segment.instructions]
    reads = [slot for ins in instructions for slot in ins.input_slots]
    broadcasts, body = [], []
    dead: set[int] = set()
    for ins in instructions:
        if len(ins.output_slots) != 1 or dead.intersection(ins.input_slots):
            return None  # a slot read behind its flagged last use: one by one finds the error
        dead.update(slot for slot, last in zip(ins.input_slots, ins.last_use, strict=True) if last)
        step = FusedOp(ins.op, ins.input_slots, ins.output_slots[0])
        if type(ins.op) in FUSIBLE:
            body.append(step)
        elif (
            isinstance(ins.op, ops.BroadcastInDim)
            and set(ins.input_slots) <= set(segment.inputs)
            and reads.count(ins.input_slots[0]) == 1
        ):
            broadcasts.append(step)
        else:
            return None
    return FusionPlan(tuple(broadcasts), tuple(body), segment.outputs) if body else None


def evaluate_plan(
    plan: FusionPlan, policy: Policy, type_: TensorType, values: Mapping[int, Array], block: int = BLOCK
) -> dict[int, Array]:
    """Values of the plan's outputs.

    Parameters
    ----------
    type_
        What `FusionPlan.common_type` gave.
    values
        Arrays of the segment's inputs by slot; not written to.
    """
    whole = dict(values)
    spread = set()  # slots whose value is one scalar everywhere and is kept as that
    for step in plan.broadcasts:
        source = whole[step.operands[0]]
        if source.ndim == 0 and step.result not in plan.outputs:
            whole[step.result] = source
            spread.add(step.result)
        else:
            whole[step.result] = _apply(step, policy, whole)
    scalars = {slot for slot, value in whole.items() if value.ndim == 0}
    blockwise = []
    for step in plan.body:
        if type_.rank and not scalars.issuperset(step.operands):
            blockwise.append(step)
        else:
            whole[step.result] = _apply(step, policy, whole)
            scalars.add(step.result)
            if not spread.isdisjoint(step.operands):
                spread.add(step.result)
    shape = type_.static_shape
    results = {slot: whole[slot] for slot in plan.outputs if slot in whole}
    results |= {slot: np.full(shape, whole[slot], order="F") for slot in spread.intersection(results)}
    if blockwise:
        results |= _evaluate_blocks(plan, blockwise, policy, type_, whole, scalars, block)
    return results


#: Functions whose result is the correctly rounded one on every code path, also where operand and result are one array.
_IN_PLACE = (np.add, np.multiply, np.divide)


@dataclass(frozen=True, slots=True)
class _Step:
    """A fused op, ready to run on blocks.

    Attributes
    ----------
    settle
        The NaNs of `function` are not canonical, and somebody will see them.
    buffer
        Which scratch block the result goes to, if it goes to one.
    """

    function: Callable[..., Any]
    operands: tuple[int, ...]
    result: int
    settle: bool
    buffer: int | None


def _steps(plan: FusionPlan, body: Sequence[FusedOp], policy: Policy, dtype: DType) -> list[_Step]:
    """`body` with its kernels looked up and its scratch blocks assigned.

    Which NaN a float function gives is nobody's business as long as only other float functions read it; so it is made
    canonical at the end of such a chain, not at every link, and the links share a few blocks of memory.
    """
    bare = [FLOAT_FUNCTIONS.get(type(step.op)) if dtype.is_float else None for step in body]
    seen = {slot for step, function in zip(body, bare, strict=True) if function is None for slot in step.operands}
    seen.update(plan.outputs)
    last = {slot: i for i, step in enumerate(body) for slot in step.operands}
    buffers: dict[int, int] = {}  # by slot
    free: list[int] = []
    count = 0
    steps = []
    for i, (step, function) in enumerate(zip(body, bare, strict=True)):
        dead = [buffers[slot] for slot in set(step.operands) if slot in buffers and last[slot] == i]
        buffer = None
        if isinstance(function, np.ufunc) and step.result not in seen:
            if function in _IN_PLACE:
                free += dead
                dead = []
            buffer = free.pop() if free else count
            count = max(count, buffer + 1)
            buffers[step.result] = buffer
        free += dead
        settle = function is not None and step.result in seen
        function = function or partial(KERNELS[type(step.op)], step.op, policy)
        steps.append(_Step(function, step.operands, step.result, settle, buffer))
    return steps


def _evaluate_blocks(
    plan: FusionPlan,
    body: Sequence[FusedOp],
    policy: Policy,
    type_: TensorType,
    whole: Mapping[int, Array],
    scalars: set[int],
    block: int,
) -> dict[int, Array]:
    shape = type_.static_shape
    dtype, size = type_.dtype.numpy, prod(shape)
    steps = _steps(plan, body, policy, type_.dtype)
    produced = {step.result for step in body}
    read = {slot for step in body for slot in step.operands} - produced
    registers = {slot: whole[slot] for slot in read & scalars}
    flat = {slot: whole[slot].reshape(-1, order="F") for slot in read - scalars}
    results = {slot: np.empty(shape, dtype, order="F") for slot in plan.outputs if slot in produced}
    flat_results = {slot: array.reshape(-1, order="F") for slot, array in results.items()}
    # the last block takes the rest, so that no block is shorter than the others
    edges = [*range(0, max(size - block, 0) + 1, block), size]
    scratch = {s.result: s.buffer for s in steps if s.buffer is not None}
    memory = [np.empty(edges[-1] - edges[-2], dtype) for _ in set(scratch.values())]
    targets = {slot: memory[buffer][:block] for slot, buffer in scratch.items()}
    for start, stop in pairwise(edges):
        if stop - start != block:
            targets = {slot: memory[buffer][: stop - start] for slot, buffer in scratch.items()}
        for views, arrays in ((registers, flat), (targets, flat_results)):
            for slot, array in arrays.items():
                views[slot] = array[start:stop]
        for step in steps:
            operands = [registers[slot] for slot in step.operands]
            target = targets.get(step.result)
            if isinstance(step.function, np.ufunc):
                value = step.function(*operands, out=target)
            else:
                value = step.function(*operands)
            if step.settle:
                value = canonical(value)
            if target is not None and value is not target:
                target[...] = value
            registers[step.result] = value
    return dict(results)


def _apply(step: FusedOp, policy: Policy, values: Mapping[int, Array]) -> Array:
    result = KERNELS[type(step.op)](step.op, policy, *(values[slot] for slot in step.operands))
    return result[0] if isinstance(result, tuple) else result


__all__ = ["BLOCK", "FUSIBLE", "FUSIBLE_DTYPES", "FusedOp", "FusionPlan", "evaluate_plan", "plan_fusion"]
