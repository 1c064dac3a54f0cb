"""What a case contains, in words: the statistics by which a report shows what was generated and tests what is reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.case import Case, in_parts
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import einsum
from tenferro_ref.ops import ENGINE, INDEXING, Op, TensorType
from tenferro_ref.program import GraphProgram, Instruction

_LENGTHS = ((2, "1-2"), (5, "3-5"), (9, "6-9"), (14, "10-14"), (50, "15-50"))
_REDUCTIONS = (ops.ReduceSum, ops.ReduceProd, ops.ReduceMax, ops.ReduceMin)


def describe(case: Case) -> dict[str, int]:
    """The features of a case, each with the count 1, so that adding up counts programs.

    Keys are "group: feature": "op: Add F32", "rank: 3", "extent: 0", "values: nan", ...
    """
    return dict.fromkeys((*of_program(case.program), *of_inputs([case])), 1)


def of_program(program: GraphProgram) -> Iterator[str]:
    """The features that every input set of a program has; some may come twice."""
    n = len(program.instructions)
    yield "instructions: " + next((label for most, label in _LENGTHS if n <= most), "51 or more")
    yield from _frame(program)
    yield from _tensors(program)
    yield from _graph(program)
    for i, ins in enumerate(program.instructions):
        yield from _instruction(program, i, ins)


def of_inputs(cases: Sequence[Case]) -> dict[str, int]:
    """The features of the values, each with how many of the cases have it."""
    held: dict[str, NDArray[np.bool_]] = {}
    arrays: dict[np.dtype[Any], list[tuple[int, NDArray[Any]]]] = {}
    for number, case in enumerate(cases):
        for array in case.inputs:
            if array.size and array.dtype.kind != "b":
                numbers = array.ravel("F").view(array.real.dtype)
                arrays.setdefault(numbers.dtype, []).append((number, numbers))
    for entries in arrays.values():
        for part in in_parts(entries, lambda entry: entry[1].size):
            owners = np.repeat([number for number, _ in part], [numbers.size for _, numbers in part])
            for name, which in _values(np.concatenate([numbers for _, numbers in part])):
                held.setdefault(name, np.zeros(len(cases), bool))[owners[which]] = True
    return {f"values: {name}": int(np.count_nonzero(which)) for name, which in held.items() if which.any()}


def _frame(program: GraphProgram) -> Iterator[str]:
    if program.symbols:
        yield f"symbols: {len(program.symbols)}"
    for flag in fields(ENGINE):
        if getattr(program.policy, flag.name) != getattr(ENGINE, flag.name):
            yield f"policy: {flag.name}={getattr(program.policy, flag.name)}"


def _tensors(program: GraphProgram) -> Iterator[str]:
    for type_ in set(program.slot_types.values()):
        yield f"rank: {type_.rank}"
        for extent in type_.shape:
            if extent in (0, 1):
                yield f"extent: {extent}"
            elif isinstance(extent, int) and 50 <= extent <= 70:
                yield "extent: 50-70"
        if prod(e for e in type_.shape if isinstance(e, int)) >= 16384:
            yield "elements: 16384 or more"


def _graph(program: GraphProgram) -> Iterator[str]:
    outputs, inputs = program.output_slots, set(program.input_slots)
    yield f"outputs: {len(outputs) if len(outputs) < 3 else '3 or more'}"
    if len(set(outputs)) < len(outputs):
        yield "outputs: repeated"
    if inputs & set(outputs):
        yield "outputs: an input"
    reads = [slot for ins in program.instructions for slot in set(ins.input_slots)]
    if len(set(reads)) < len(reads):
        yield "graph: value read twice"
    done = [(ins.op, ins.input_slots) for ins in program.instructions]
    if len(set(done)) < len(done):
        yield "graph: repeated instruction"
    live = set(outputs)
    for ins in reversed(program.instructions):
        if live.isdisjoint(ins.output_slots):
            yield "graph: dead code"
            break
        live.update(ins.input_slots)


def _instruction(program: GraphProgram, i: int, ins: Instruction) -> Iterator[str]:
    types, op = program.slot_types, ins.op
    dtype = types[(ins.input_slots or ins.output_slots)[-1 if isinstance(op, ops.Select) else 0]].dtype
    yield f"op: {op.name} {dtype}"
    ranks = {types[slot].rank for slot in ins.input_slots}
    if op.arity == 2 and 0 in ranks and len(ranks) > 1:
        yield "operands: rank 0 beside a tensor"
    if len(set(ins.input_slots)) < len(ins.input_slots):
        yield "operands: the same twice"
    if isinstance(op, ops.Constant):
        value = op.value
        special = op.dtype is not DType.Bool and (not np.isfinite(value) or (value == 0 and np.signbit(value.real)))
        yield f"constant: {'special' if special else 'plain'}"
    elif isinstance(op, ops.Convert):
        yield f"convert: {dtype} to {op.to}"
    elif isinstance(op, ops.Reshape | ops.BroadcastInDim) and not all(isinstance(e, int) for e in op.shape):
        yield f"shape: {op.name} reads extents" + (" of another operand" if len(ins.input_slots) > 1 else "")
    if isinstance(op, ops.BroadcastInDim) and list(op.dims) != sorted(op.dims):
        yield "broadcast: axes permuted"
    if isinstance(op, ops.Transpose):
        yield f"transpose: {'identity' if list(op.perm) == sorted(op.perm) else 'permuted'}"
    if isinstance(op, _REDUCTIONS):
        rank = types[ins.input_slots[0]].rank
        yield f"reduce: {'no axes' if not op.axes else 'all axes' if len(op.axes) == rank else 'some axes'}"
        if 0 in types[ins.input_slots[0]].shape:
            yield "reduce: with an empty axis kept"
    if isinstance(op, ops.DotGeneral):
        yield from _dot(program, ins, op)
    if isinstance(op, ops.Extension):
        yield f"extension: {op.op}"
        if op.op == "einsum":
            yield from _einsum(op)
    if type(op) in INDEXING:
        yield from _indexing([types[slot] for slot in ins.input_slots], op)
    if isinstance(op, ops.Multiply):
        broadcasts = [program.producers.get(slot) for slot in ins.input_slots]
        where = [j for j in broadcasts if j is not None and isinstance(program.instructions[j].op, ops.BroadcastInDim)]
        if where == [i - 2, i - 1]:
            yield "segment: broadcast triplet"
        elif i - 1 in where:
            yield "segment: broadcast pair"


def _dot(program: GraphProgram, ins: Instruction, op: ops.DotGeneral) -> Iterator[str]:
    types = [program.slot_types[slot] for slot in ins.input_slots]
    contracted, batch = op.lhs_contracting_dims, op.lhs_batch_dims
    yield f"dot: {min(len(contracted), 2)}{'+' if len(contracted) > 1 else ''} contracted, {min(len(batch), 2)}{'+' if len(batch) > 1 else ''} batch"
    for axes in (contracted, op.rhs_contracting_dims):
        if list(axes) != sorted(axes):
            yield "dot: contraction out of order"
    for axes in (batch, op.rhs_batch_dims):
        if list(axes) != sorted(axes):
            yield "dot: batch out of order"
    if any(types[0].shape[axis] == 0 for axis in contracted):
        yield "dot: empty contraction"
    extents = [e for t in types for e in t.shape]
    if batch and len(extents) > 4 and len(set(extents)) == 1 and extents[0] != 1:
        yield "dot: batch, all extents equal"
    for slot in ins.input_slots:
        producer = program.producers.get(slot)
        if producer is None:
            continue
        before = program.instructions[producer]
        if isinstance(before.op, ops.Transpose | ops.DotGeneral):
            yield f"dot: of {before.op.name}"
        elif isinstance(before.op, ops.Reshape):
            first = program.producers.get(before.input_slots[0])
            if first is not None and isinstance(program.instructions[first].op, ops.Transpose):
                yield "dot: of a reshaped Transpose"


def _einsum(op: ops.Extension) -> Iterator[str]:
    equation = einsum.parse(op)
    yield f"einsum: {len(equation.inputs)} operands"
    if any(len(set(labels)) < len(labels) for labels in equation.inputs):
        yield "einsum: diagonal taken"
    if len(set(equation.output)) < len(equation.output):
        yield "einsum: diagonal embedded"
    yield f"einsum: {'something' if equation.summed else 'nothing'} summed"


def _indexing(operands: list[TensorType], op: Op) -> Iterator[str]:
    if isinstance(
        op, ops.Gather | ops.GatherDynamicSliceSizes | ops.Scatter | ops.DynamicSlice | ops.DynamicUpdateSlice
    ):
        yield f"index: {operands[2 if isinstance(op, ops.DynamicUpdateSlice) else 1].dtype}"
    if isinstance(op, ops.Gather | ops.GatherDynamicSliceSizes | ops.Scatter):
        dropped = op.inserted_window_dims if isinstance(op, ops.Scatter) else op.collapsed_slice_dims
        mapped = op.scatter_dims_to_operand_dims if isinstance(op, ops.Scatter) else op.start_index_map
        at = op.index_vector_dim
        rank = operands[1].rank
        yield f"index: vectors {'left out' if at == rank else 'last' if at == rank - 1 else 'not last'}"
        yield f"index: {min(len(mapped), 2)}{'+' if len(mapped) > 1 else ''} axes mapped, {'some' if dropped else 'none'} dropped"
        if list(mapped) != sorted(mapped):
            yield "index: axes mapped out of order"
    if isinstance(op, ops.Slice) and max(op.strides, default=1) > 1:
        yield "slice: strided"
    if isinstance(op, ops.Pad):
        if min((*op.edge_padding_low, *op.edge_padding_high), default=0) < 0:
            yield "pad: negative edge"
        if any(op.interior_padding):
            yield "pad: interior"
    if isinstance(op, ops.Concatenate):
        yield f"concatenate: {min(len(operands), 3)}{'+' if len(operands) > 2 else ''} operands"


def _values(numbers: NDArray[Any]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The kinds of hostile values, and which of the numbers are such."""
    if numbers.dtype.kind == "i":
        info = np.iinfo(numbers.dtype)
        yield "extreme integer", (numbers == info.min) | (numbers == info.max)
        return
    bits = numbers.view(f"u{numbers.itemsize}")
    classes = np.searchsorted(_classes(numbers.dtype), bits & ~_sign(numbers.dtype), "right")
    for number, name in enumerate(_MAGNITUDES):
        if name:
            yield name, classes == number
    yield "-0", bits == _sign(numbers.dtype)


#: Classes of magnitudes, ascending; "" for what is of no interest.
_MAGNITUDES = ("", "subnormal", "smallest normal", "", "huge", "largest", "inf", "nan")


@cache
def _classes(real: np.dtype[Any]) -> NDArray[Any]:
    """The bits of the least magnitude of each class but the first; as integers they are in the order of the magnitudes."""
    limits = np.finfo(real)
    least = limits.smallest_normal
    ends = [
        limits.smallest_subnormal,
        least,
        np.nextafter(least, real.type(1)),
        np.nextafter(limits.max / 16, limits.max),
    ]
    bits = np.array([*ends, limits.max, np.inf], real).view(f"u{real.itemsize}")
    return np.append(bits, bits[-1] + 1)


def _sign(real: np.dtype[Any]) -> Any:
    return np.array(-0.0, real).view(f"u{real.itemsize}")[()]
