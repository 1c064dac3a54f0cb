"""Elementwise fusion: a run of elementwise instructions evaluated block by block (SEMANTICS 5).

Which runs are eligible and the blockwise evaluation live here; the threshold belongs to the executor. The kernels are
those of the unfused path, on flat blocks of the column-major data. They give the same bits for an element wherever it
stands (see `kernels.elementwise` for what that took), so that fused and unfused results are equal bit for bit; wrong
blocks, operands or liveness would show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.ops import ELEMENTWISE, Op, Policy, TensorType
from tenferro_ref.program import ExecProgram
from tenferro_ref.runtime.kernels import bind
from tenferro_ref.runtime.kernels.base import canonical
from tenferro_ref.runtime.kernels.elementwise import FLOAT_UFUNCS
from tenferro_ref.runtime.segment import Segment
from tenferro_ref.tensor import Array

#: Ops that fuse.
FUSIBLE: frozenset[type[Op]] = frozenset(ELEMENTWISE) - {ops.Sign, ops.Compare, ops.Select}
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
            and ins.op.shape  # a result of rank 0 is no block beside others that are
            and set(ins.input_slots) <= set(segment.inputs)
            and reads.count(ins.input_slots[0]) == 1
        ):
            broadcasts.append(step)
        else:
            return None
    return FusionPlan(tuple(broadcasts), tuple(body), segment.outputs) if body else None


def evaluate_plan(
    plan: FusionPlan, policy: Policy, type_: TensorType, values: Mapping[int, Array], block: int
) -> dict[int, Array]:
    """Values of the plan's outputs.

    Parameters
    ----------
    type_
        What `FusionPlan.common_type` gave.
    values
        Arrays of the segment's inputs by slot; not written to.
    block
        Elements that are computed at a time.
    """
    whole = dict(values)
    # slots whose shape is that of `type_`; a broadcast scalar stays a scalar in `whole`
    spread = {slot for slot, array in values.items() if array.ndim == type_.rank}
    for step in plan.broadcasts:
        source = whole[step.operands[0]]
        if source.ndim or step.result in plan.outputs:
            source = bind(step.op, policy)(*[whole[slot] for slot in step.operands])
        whole[step.result] = source
        spread.add(step.result)
    for step in plan.body:
        if not spread.isdisjoint(step.operands):
            spread.add(step.result)
    shape, dtype = type_.static_shape, type_.dtype
    results = {slot: np.empty(shape if slot in spread else (), dtype.numpy, order="F") for slot in plan.outputs}
    results |= {slot: whole[slot] for slot in plan.outputs if slot in whole}
    flat = {slot: array.reshape(-1, order="F") for slot, array in whole.items() if array.ndim}
    flat_results = {slot: array.reshape(-1, order="F") for slot, array in results.items() if slot not in whole}
    scalars = {slot: array for slot, array in whole.items() if array.ndim == 0}
    chain = _steps(plan, policy, dtype, set(flat))
    for start in range(0, max(prod(shape), 1), block):
        registers = scalars | {slot: array[start : start + block] for slot, array in flat.items()}
        parts = {
            slot: array[start : start + block] if slot in spread else array for slot, array in flat_results.items()
        }
        for link in chain:
            operands = [registers[slot] for slot in link.operands]
            if link.in_block:
                reused = None if link.reused is None else registers[link.reused]
                value = link.function(*operands, out=parts.get(link.result, reused))
            else:
                value = link.function(*operands)
            registers[link.result] = canonical(value) if link.settle else value
            for slot in link.dead:
                del registers[slot]
        for slot, part in parts.items():
            if registers[slot] is not part:
                part[...] = registers[slot]
    return results


#: Functions that give the correctly rounded result also where an operand and the result are one array.
_IN_PLACE = (np.add, np.subtract, np.multiply, np.divide)


@dataclass(frozen=True, slots=True)
class _Step:
    """A fused op, ready to run on blocks.

    Attributes
    ----------
    in_block
        `function` is a ufunc and its result a whole block, so that it can be told where to write.
    settle
        The result's NaNs are not canonical yet, and something other than a float function sees them.
    dead
        Operands that no later step reads.
    reused
        One of `dead` that is a whole block of the plan's own: the result is written there.
    """

    function: Callable[..., Any]
    operands: tuple[int, ...]
    result: int
    in_block: bool
    settle: bool
    dead: frozenset[int]
    reused: int | None


def _steps(plan: FusionPlan, policy: Policy, dtype: DType, blocks: set[int]) -> list[_Step]:
    """The body with its kernels looked up.

    Which bits a NaN has does not matter where only float functions read it, so NaNs are made canonical at the end of a chain
    of them and not at every link. That, and writing in place, saves a third of the time (benchmarks/test_native_speed.py).
    """
    ufuncs = FLOAT_UFUNCS if dtype.is_float else {}
    seen = {slot for step in plan.body if type(step.op) not in ufuncs for slot in step.operands} | set(plan.outputs)
    last = {slot: i for i, step in enumerate(plan.body) for slot in step.operands}
    own: set[int] = set()
    steps = []
    for i, step in enumerate(plan.body):
        ufunc = ufuncs.get(type(step.op))
        in_block = ufunc is not None and not blocks.isdisjoint(step.operands)
        dead = frozenset(slot for slot in step.operands if last[slot] == i and slot not in plan.outputs)
        reused = min(own & dead, default=None) if ufunc in _IN_PLACE else None
        settle = ufunc is not None and step.result in seen
        function = ufunc or bind(step.op, policy)
        steps.append(_Step(function, step.operands, step.result, in_block, settle, dead, reused))
        if not blocks.isdisjoint(step.operands):
            blocks.add(step.result)
        if in_block:
            own.add(step.result)
        if ufunc is None:  # its result may be the operand itself, as Conj's of real numbers is
            own.difference_update(step.operands)
    return steps
