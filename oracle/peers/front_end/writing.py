"""Writes a program anew, instruction by instruction, in the words that there are for it."""

from __future__ import annotations

from typing import Any

# rows of the tables
from oracle.peers.front_end import elementwise, extensions, indices, structural, sums  # noqa: F401
from oracle.peers.front_end.table import PHRASES, WORDS, Origin
from oracle.peers.front_end.windows import windowed
from tenferro_ref import ops
from tenferro_ref.extensions import einsum
from tenferro_ref.extensions.equations import lettered
from tenferro_ref.ops import ARITHMETIC, Op
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value


def as_values(program: GraphProgram) -> GraphProgram:
    """The program, built anew by the front end; outputs with symbolic extents go through a window of themselves."""
    b = GraphBuilder(program.name, program.policy, symbols=program.symbols)
    values = {slot: b.typed_input(type_) for slot, type_ in zip(program.input_slots, program.input_types, strict=True)}
    origins: dict[Value, Origin] = {}
    for ins in program.instructions:
        operands = tuple(values[slot] for slot in ins.input_slots)
        made = _written(program, b, ins, origins, operands)
        for index, (slot, value) in enumerate(zip(ins.output_slots, made, strict=True)):
            values[slot] = value
            origins[value] = Origin(ins.op, operands, index)
    return b.build(*(windowed(values[slot]) for slot in program.output_slots))


def _written(
    program: GraphProgram, b: GraphBuilder, ins: Instruction, origins: dict[Value, Origin], operands: tuple[Value, ...]
) -> tuple[Value, ...]:
    """The results of an instruction: a phrase if there is one, else words, else the op."""
    op, result = ins.op, program.slot_types[ins.output_slots[0]]
    written = PHRASES[type(op)](origins, op, result, *operands) if type(op) in PHRASES else None
    if written is None and type(op) in WORDS:
        written = WORDS[type(op)](op, result, *(_with_number(op, operands, origins) or [b]))
    if written is None:
        return b.apply_many(op, *operands)
    return written if isinstance(written, tuple) else (written,)


def _with_number(op: Op, operands: tuple[Value, ...], origins: dict[Value, Origin]) -> list[Any]:
    """The operands; a constant of rank 0 beside another value as the number that a person would write."""
    constants = [origins[v].op if v in origins else None for v in operands]
    constants = [c if isinstance(c, ops.Constant) else None for c in constants]
    if isinstance(op, ARITHMETIC) and len({v.dtype for v in operands}) == 1 and constants.count(None) == 1:
        left, right = constants
        constant = left or right
        # a payload of a NaN is in no number
        if isinstance(constant, ops.Constant) and _said(constant):
            return [operands[0], constant.value.item()] if left is None else [constant.value, operands[1]]
    return list(operands)


def _said(constant: ops.Constant) -> bool:
    return ops.Constant.of(constant.value.item(), constant.dtype) == constant


def spelled_otherwise(program: GraphProgram, own: GraphProgram) -> bool:
    """Whether an einsum of `own` has another equation than that of `program`, so that it may round elsewhere."""
    return _equations(program) != _equations(own)


def _equations(program: GraphProgram) -> list[str]:
    """Of each einsum, up to the names of labels."""
    found = []
    for ins in program.instructions:
        if isinstance(ins.op, ops.Extension) and ins.op.family == einsum.FAMILY:
            equation = einsum.parse(ins.op)
            found.append(lettered(([list(map(ord, t)) for t in equation.inputs], list(map(ord, equation.output)))))
    return found
