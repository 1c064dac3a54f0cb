"""DeadCodeElimination: instructions whose results reach no output go (SEMANTICS 4.4).

An instruction stays if any of its outputs is live. Slots keep their numbers and the slot table its size.
"""

from __future__ import annotations

from tenferro_ref.compiler.rewrite import PassResult, rebuild
from tenferro_ref.program import ExecProgram


def dead_code_elimination(program: ExecProgram) -> PassResult:
    """Remove the instructions that no program output depends on."""
    live = set(program.output_slots)
    for ins in reversed(program.instructions):
        if live.intersection(ins.output_slots):
            live.update(ins.input_slots)
    dead = [ins for ins in program.instructions if not live.intersection(ins.output_slots)]
    if not dead:
        return PassResult(program)
    kept = [ins for ins in program.instructions if live.intersection(ins.output_slots)]
    changes = tuple(f"slot {ins.output_slots[0]}: {ins.op.name} removed, nothing reads it" for ins in dead)
    return PassResult(rebuild(program, kept), changes)
