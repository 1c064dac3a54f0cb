"""Steps that change which instructions, inputs and outputs a case has: the big cuts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from fuzz.findings.reduce.draft import Draft, Input, concrete_types
from fuzz.findings.reduce.search import Evaluate, Search
from oracle.case import Case
from tenferro_ref import ops
from tenferro_ref.dims import evaluate
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import DEFAULT_POLICY, Op, TensorType
from tenferro_ref.program import Instruction
from tenferro_ref.tensor import same_bits, type_of


def concrete_shapes(search: Search) -> None:
    """Integers for symbolic extents: those of the inputs, then those that dim expressions evaluate to here."""
    draft = search.draft
    draft.inputs = {slot: Input(type_of(array), array) for slot, (_, array) in draft.inputs.items()}
    search.attempt(draft, "concrete input shapes")
    draft, types = search.draft, concrete_types(search.case)
    draft.instructions = [_without_providers(ins, types) for ins in draft.instructions]
    if search.attempt(draft, "concrete dim expressions"):
        return
    for i in range(len(search.case.program.instructions)):
        draft, types = search.draft, concrete_types(search.case)
        if i < len(draft.instructions):  # an accepted attempt may have dropped some
            draft.instructions[i] = _without_providers(draft.instructions[i], types)
            search.attempt(draft, "concrete dim expressions")


def _without_providers(ins: Instruction, types: dict[int, TensorType]) -> Instruction:
    """The instruction with integers for its dim expressions, and without the operands that only provided extents."""
    shapes = [types[s].static_shape for s in ins.input_slots]
    op = ins.op
    try:
        if isinstance(op, ops.Reshape | ops.BroadcastInDim):
            concrete: Op = replace(op, shape=tuple(evaluate(e, shapes) for e in op.shape))
            return replace(ins, op=concrete, input_slots=ins.input_slots[:1])
        if isinstance(op, ops.GatherDynamicSliceSizes):
            sizes = tuple(evaluate(e, shapes) for e in op.slice_sizes)
            concrete = ops.Gather(
                op.offset_dims, op.collapsed_slice_dims, op.start_index_map, op.index_vector_dim, sizes
            )
            return replace(ins, op=concrete, input_slots=ins.input_slots[:2])
    except TenferroError:
        pass
    return ins


def drop_instructions(search: Search) -> None:
    """Delta debugging: keep one stretch of instructions alone, or leave it out; halves first, single ones last."""
    chunk = len(search.case.program.instructions) // 2
    while chunk:
        start, count = 0, len(search.case.program.instructions)
        while start < count:
            stretch = range(start, min(start + chunk, count))
            if search.attempt(_kept(search, set(stretch)), "keep only some instructions"):
                start, count = 0, len(search.case.program.instructions)
                chunk = max(1, min(chunk, count // 2))
            elif search.attempt(_kept(search, set(range(count)) - set(stretch)), "cut instructions out"):
                count = len(search.case.program.instructions)
            else:
                start += chunk
        chunk //= 2


def _kept(search: Search, kept: set[int]) -> Draft:
    draft = search.draft
    draft.keep(kept, search.value)
    return draft


def cut_out(case: Case, slot: int, evaluate: Evaluate) -> Case | None:
    """The instruction that makes `slot` alone, with inputs for its operands; None if one of their values is not known."""
    producer = case.program.producers.get(slot)
    if producer is None or len(case.program.instructions) == 1:
        return None
    draft = Draft.of(case)
    try:
        draft.keep({producer}, evaluate(case).__getitem__)
    except KeyError:
        return None
    draft.outputs = [slot]
    draft.prune()
    return draft.build()


def drop_outputs(search: Search) -> None:
    """Keep one output if that is enough, else drop one after the other."""
    outputs = search.draft.outputs
    if len(outputs) < 2:
        return
    for slot in dict.fromkeys(outputs):
        if search.attempt(replace(search.draft, outputs=[slot]), "keep one output"):
            return
    for i in reversed(range(len(outputs))):
        outputs = search.draft.outputs
        if i < len(outputs):
            search.attempt(replace(search.draft, outputs=outputs[:i] + outputs[i + 1 :]), "drop an output")


def adopt_dead_code(search: Search) -> None:
    """If the failure needs dead code: make its result the only output, so that no code is dead any more."""
    for slot in () if search.prune else search.draft.unread():
        draft = replace(search.draft, outputs=[slot])
        draft.prune()
        if search.attempt(draft, "make a dead result the output"):
            search.prune = True
            return


def bypass(search: Search) -> None:
    """Read an operand of the same type in place of an instruction's result."""
    i = len(search.case.program.instructions) - 1
    while i >= 0:
        i = min(i, len(search.case.program.instructions) - 1)
        if not any(search.attempt(draft, "bypass an instruction") for draft in _bypasses(search, i)):
            i -= 1


def _bypasses(search: Search, i: int) -> Iterator[Draft]:
    if i < 0:
        return
    ins, types = search.case.program.instructions[i], concrete_types(search.case)
    for operand in dict.fromkeys(ins.input_slots):
        alike = [slot for slot in ins.output_slots if types[slot] == types[operand]]
        if alike:
            draft = search.draft
            for slot in alike:
                draft.rename(slot, operand)
            if len(alike) == len(ins.output_slots):
                del draft.instructions[i]
            yield draft


def merge_inputs(search: Search) -> None:
    """One input in place of two: those with the same bits first, then any of the same type; unused ones go."""
    for slot in search.case.program.input_slots:  # if dead code is kept: otherwise pruning has done it
        draft = search.draft
        if slot in draft.inputs and slot not in draft.read():
            del draft.inputs[slot]
            search.attempt(draft, "drop an unused input")
    for alike in (True, False):
        while any(search.attempt(draft, "merge two inputs") for draft in _merges(search, alike)):
            pass


def _merges(search: Search, alike: bool) -> Iterator[Draft]:
    inputs = list(search.draft.inputs.items())
    for k, (drop, dropped) in reversed(list(enumerate(inputs))):
        for keep, kept in inputs[:k]:
            if dropped.type == kept.type and same_bits(dropped.array, kept.array) == alike:
                draft = search.draft
                draft.rename(drop, keep)
                del draft.inputs[drop]
                yield draft


def drop_details(search: Search) -> None:
    """No name, and the engine's own policy, if they do not matter."""
    search.attempt(replace(search.draft, name=""), "drop the name")
    for flag in fields(DEFAULT_POLICY):
        policy = replace(search.draft.policy, **{flag.name: getattr(DEFAULT_POLICY, flag.name)})
        search.attempt(replace(search.draft, policy=policy), "drop a policy flag")
