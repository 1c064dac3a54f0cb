"""The interface of a pass, and how a pass rebuilds a program and looks up a slot's type.

What a pass must keep (SEMANTICS 4): observable values and error kinds, output slots, SSA form, and the dtype and extents
of every slot that it leaves. Metadata is therefore never edited: `rebuild` infers it again from the new instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tenferro_ref.errors import Internal
from tenferro_ref.ops import TensorType
from tenferro_ref.program import ExecProgram, Instruction, to_exec


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass made of a program.

    Attributes
    ----------
    changes
        One line per change, "slot 5: ...", in program order; empty if the pass found nothing to do.
    inexact
        Bits of the results may change: the order of summation of a contraction, or signs of zeros and NaN.
    """

    program: ExecProgram
    changes: tuple[str, ...] = ()
    inexact: bool = False


Pass: TypeAlias = Callable[[ExecProgram], PassResult]


def rebuild(program: ExecProgram, instructions: Iterable[Instruction], n_slots: int | None = None) -> ExecProgram:
    """`program` with other instructions: types and `last_use` are inferred.

    Raises
    ------
    InvalidCompiledGraph, ValidationError
        The instructions do not make a well-formed program.
    """
    graph = replace(
        program,
        instructions=tuple(ins.bare for ins in instructions),
        n_slots=program.n_slots if n_slots is None else n_slots,
        kind="graph",
    )
    return to_exec(graph)


def recorded_type(program: ExecProgram, slot: int) -> TensorType:
    """Recorded type of a slot.

    Raises
    ------
    Internal
        The program is malformed: the slot is outside the slot table, or nothing records its shape.
    """
    if not 0 <= slot < program.n_slots:
        raise Internal(detail=f"slot {slot} is outside the table of {program.n_slots} slots")
    if len(program.input_slots) != len(program.input_types):
        raise Internal(detail=f"{len(program.input_types)} input shapes for {len(program.input_slots)} input slots")
    try:
        return program.slot_types[slot]
    except KeyError:
        raise Internal(detail=f"missing shape for slot {slot}") from None
