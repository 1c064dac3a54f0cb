"""The features of a case, in words: the statistics by which a report shows what was generated, and tests what is reached.

A feature is "group: what": "op: Add F32", "rank: 3", "extent: 0", "values: nan", ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle.case import Case, in_parts
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.extensions import einsum
from tenferro_ref.ops import DEFAULT_POLICY, INDEXING, REDUCTIONS, Op, TensorType
from tenferro_ref.program import GraphProgram, Instruction

_LENGTHS = ((2, "1-2"), (5, "3-5"), (9, "6-9"), (14, "10-14"), (50, "15-50"))


def describe(case: Case) -> dict[str, int]:
    """The features of a case, each with the count 1, so that adding up counts programs."""
    return dict.fromkeys((*of_origin(case), *of_program(case.program), *of_inputs([case])), 1)


def of_origin(case: Case) -> Iterator[str]:
    """By which transforms it was derived, and the operations of the module that it was read from."""
    if case.derivation is not None:
        yield f"derivative: {case.derivation}"
    if case.source is not None:
        yield from sorted({f"module: {name}" for name, _ in case.source.ops})


def _some(n: int, most: int = 2) -> str:
    """A number in words: "0", "1", "2+"."""
    return str(n) if n < most else f"{most}+"


# --- of a program -----------------------------------------------------------------------------------------------------


def of_program(program: GraphProgram) -> Iterator[str]:
    """The features that every input set of a program has; some may come twice."""
    n = len(program.instructions)
    yield "instructions: " + next((label for most, label in _LENGTHS if n <= most), "51 or more")
    if program.symbols:
        yield f"symbols: {len(program.symbols)}"
    for flag in fields(DEFAULT_POLICY):
        if getattr(program.policy, flag.name) != getattr(DEFAULT_POLICY, flag.name):
            yield f"policy: {flag.name}={getattr(program.policy, flag.name)}"
    yield from _tensors(program)
    yield from _graph(program)
    for i, ins in enumerate(program.instructions):
        yield from _instruction(program, ins)
        if isinstance(ins.op, ops.Multiply):
            yield from _segment(program, i, ins)


def _tensors(program: GraphProgram) -> Iterator[str]:
    for type_ in set(program.slot_types.values()):
        yield f"rank: {type_.rank}"
        extents = [e for e in type_.shape if isinstance(e, int)]
        yield from (f"extent: {e}" for e in extents if e in (0, 1))
        if any(50 <= e <= 70 for e in extents):
            yield "extent: 50-70"
        if prod(extents) >= 16384:
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
    applied = [(ins.op, ins.input_slots) for ins in program.instructions]
    if len(set(applied)) < len(applied):
        yield "graph: repeated instruction"
    live = set(outputs)
    for ins in reversed(program.instructions):
        if live.isdisjoint(ins.output_slots):
            yield "graph: dead code"
            break
        live.update(ins.input_slots)


def _segment(program: GraphProgram, i: int, ins: Instruction) -> Iterator[str]:
    """A Multiply right behind the broadcasts that feed it."""
    producers = [program.producers.get(slot) for slot in ins.input_slots]
    where = [j for j in producers if j is not None and isinstance(program.instructions[j].op, ops.BroadcastInDim)]
    if where == [i - 2, i - 1]:
        yield "segment: broadcast triplet"
    elif i - 1 in where:
        yield "segment: broadcast pair"


# --- of an instruction ------------------------------------------------------------------------------------------------


def _instruction(program: GraphProgram, ins: Instruction) -> Iterator[str]:
    op, operands = ins.op, [program.slot_types[slot] for slot in ins.input_slots]
    typed = operands or [program.slot_types[slot] for slot in ins.output_slots]
    dtype = typed[-1 if isinstance(op, ops.Select) else 0].dtype
    yield f"op: {op.name} {dtype}"
    ranks = {type_.rank for type_ in operands}
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
    elif isinstance(op, ops.Transpose):
        yield f"transpose: {'identity' if list(op.perm) == sorted(op.perm) else 'permuted'}"
    elif isinstance(op, ops.Reshape | ops.BroadcastInDim):
        if not all(isinstance(e, int) for e in op.shape):
            yield f"shape: {op.name} reads extents" + (" of another operand" if len(operands) > 1 else "")
        if isinstance(op, ops.BroadcastInDim) and list(op.dims) != sorted(op.dims):
            yield "broadcast: axes permuted"
    elif isinstance(op, REDUCTIONS):
        axes: tuple[int, ...] = getattr(op, "axes")  # noqa: B009 - the union of four classes
        yield f"reduce: {'no axes' if not axes else 'all axes' if len(axes) == operands[0].rank else 'some axes'}"
        if 0 in operands[0].shape:
            yield "reduce: with an empty axis kept"
    elif isinstance(op, ops.DotGeneral):
        yield from _dot(program, ins, op, operands)
    elif isinstance(op, ops.Extension):
        yield f"extension: {op.op}"
        if op.op == "einsum":
            yield from _einsum(op)
    elif type(op) in INDEXING:
        yield from _indexing(operands, op)


def _dot(program: GraphProgram, ins: Instruction, op: ops.DotGeneral, operands: list[TensorType]) -> Iterator[str]:
    yield f"dot: {_some(len(op.lhs_contracting_dims))} contracted, {_some(len(op.lhs_batch_dims))} batch"
    roles = (("contraction", op.lhs_contracting_dims), ("contraction", op.rhs_contracting_dims),
             ("batch", op.lhs_batch_dims), ("batch", op.rhs_batch_dims))  # fmt: skip
    yield from (f"dot: {role} out of order" for role, axes in roles if list(axes) != sorted(axes))
    if any(operands[0].shape[axis] == 0 for axis in op.lhs_contracting_dims):
        yield "dot: empty contraction"
    extents = [e for t in operands for e in t.shape]
    if op.lhs_batch_dims and len(extents) > 4 and len(set(extents)) == 1 and extents[0] != 1:
        yield "dot: batch, all extents equal"
    for slot in ins.input_slots:
        before = maker(program, slot)
        if before is not None and isinstance(before.op, ops.Transpose | ops.DotGeneral):
            yield f"dot: of {before.op.name}"
        elif before is not None and isinstance(before.op, ops.Reshape):
            first = maker(program, before.input_slots[0])
            if first is not None and isinstance(first.op, ops.Transpose):
                yield "dot: of a reshaped Transpose"


def varying(program: GraphProgram) -> set[int]:
    """The slots that do not depend on constants alone."""
    slots = {*program.input_slots}
    for ins in program.instructions:
        if not slots.isdisjoint(ins.input_slots):
            slots.update(ins.output_slots)
    return slots


def maker(program: GraphProgram, slot: int) -> Instruction | None:
    """The instruction that writes a slot; None for an input."""
    producer = program.producers.get(slot)
    return None if producer is None else program.instructions[producer]


def has_path(program: GraphProgram, path: Sequence[str]) -> bool:
    """Whether ops of these names follow one another, each reading a result of the one before."""
    ends = {slot for ins in program.instructions if ins.op.name == path[0] for slot in ins.output_slots}
    for name in path[1:]:
        reading = [i for i in program.instructions if i.op.name == name and not ends.isdisjoint(i.input_slots)]
        ends = {slot for ins in reading for slot in ins.output_slots}
    return bool(ends)


def _einsum(op: ops.Extension) -> Iterator[str]:
    equation = einsum.parse(op)
    yield f"einsum: {len(equation.inputs)} operands"
    if any(len(set(labels)) < len(labels) for labels in equation.inputs):
        yield "einsum: diagonal taken"
    if len(set(equation.output)) < len(equation.output):
        yield "einsum: diagonal embedded"
    yield f"einsum: {'something' if equation.summed else 'nothing'} summed"


def _indexing(operands: list[TensorType], op: Op) -> Iterator[str]:
    if isinstance(op, ops.DynamicSlice | ops.DynamicUpdateSlice):
        yield f"index: {operands[-1].dtype}"
    elif isinstance(op, ops.Gather | ops.GatherDynamicSliceSizes | ops.Scatter):
        dropped = op.inserted_window_dims if isinstance(op, ops.Scatter) else op.collapsed_slice_dims
        mapped = op.scatter_dims_to_operand_dims if isinstance(op, ops.Scatter) else op.start_index_map
        at, rank = op.index_vector_dim, operands[1].rank
        yield f"index: {operands[1].dtype}"
        yield f"index: vectors {'left out' if at == rank else 'last' if at == rank - 1 else 'not last'}"
        yield f"index: {_some(len(mapped))} axes mapped, {'some' if dropped else 'none'} dropped"
        if list(mapped) != sorted(mapped):
            yield "index: axes mapped out of order"
    elif isinstance(op, ops.Slice) and max(op.strides, default=1) > 1:
        yield "slice: strided"
    elif isinstance(op, ops.Pad):
        if min((*op.edge_padding_low, *op.edge_padding_high), default=0) < 0:
            yield "pad: negative edge"
        if any(op.interior_padding):
            yield "pad: interior"
    elif isinstance(op, ops.Concatenate):
        yield f"concatenate: {_some(len(operands), 3)} operands"


# --- of values --------------------------------------------------------------------------------------------------------


def of_inputs(cases: Sequence[Case]) -> dict[str, int]:
    """The features of the values, each with how many of the cases have it."""
    having: dict[str, NDArray[np.bool_]] = {}
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
                having.setdefault(name, np.zeros(len(cases), bool))[owners[which]] = True
    return {f"values: {name}": int(np.count_nonzero(which)) for name, which in having.items() if which.any()}


def _values(numbers: NDArray[Any]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The kinds of hostile values, and which of the numbers are such."""
    dtype = DType.of(numbers)
    if dtype.is_int:
        least, greatest = dtype.limits
        yield "extreme integer", (numbers == least) | (numbers == greatest)
        return
    bits, sign = numbers.view(f"u{numbers.itemsize}"), np.array(-0.0, numbers.dtype).view(f"u{numbers.itemsize}")[()]
    classes = np.searchsorted(_LEAST_BITS[numbers.dtype], bits & ~sign, "right")
    for number, name in enumerate(_MAGNITUDES):
        if name:
            yield name, classes == number
    yield "-0", bits == sign


#: Classes of magnitudes, ascending; "" for those that are no feature.
_MAGNITUDES = ("", "subnormal", "smallest normal", "", "huge", "largest", "inf", "nan")


def _least_bits(dtype: DType) -> NDArray[Any]:
    """The bits of the least magnitude of each class but the first; as integers they are in the order of the magnitudes."""
    limits = dtype.finfo
    tiny, huge, top = (float(v) for v in (limits.smallest_normal, limits.max / 16, limits.max))
    least = np.array([float(limits.smallest_subnormal), tiny, tiny, huge, top, np.inf]).astype(dtype.numpy)
    bits = least.view(f"u{dtype.itemsize}")
    return np.append(bits + np.array([0, 0, 1, 1, 0, 0], bits.dtype), bits[-1] + 1)  # the next ones of two of them


_LEAST_BITS = {d.numpy: _least_bits(d) for d in (DType.F32, DType.F64, DType.F16, DType.BF16)}
