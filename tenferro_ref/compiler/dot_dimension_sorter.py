"""DotDimensionSorter: contraction pairs in the order of one side's axes (SEMANTICS 4.1).

`{3,2} x {2,1}` becomes `{2,3} x {1,2}`: the pairs travel together, so the sum runs over the same products in another
order. Batch lists stay, for they give the order of the result's axes.
"""

from __future__ import annotations

from dataclasses import replace

from tenferro_ref import ops
from tenferro_ref.compiler.rewrite import PassResult, rebuild
from tenferro_ref.program import ExecProgram, Instruction


def consecutive_but_unsorted(axes: tuple[int, ...]) -> bool:
    """The axes have no gaps and are not ascending."""
    return bool(axes) and max(axes) - min(axes) == len(axes) - 1 and list(axes) != sorted(axes)


def sort_pairs(op: ops.DotGeneral) -> ops.DotGeneral:
    """`op` with both contracting lists ordered by the lhs list, else by the rhs list, if that one is out of order."""
    lhs, rhs = op.lhs_contracting_dims, op.rhs_contracting_dims
    driver = next((axes for axes in (lhs, rhs) if consecutive_but_unsorted(axes)), None)
    if driver is None:
        return op
    order = sorted(range(len(driver)), key=driver.__getitem__)
    return replace(
        op, lhs_contracting_dims=tuple(lhs[i] for i in order), rhs_contracting_dims=tuple(rhs[i] for i in order)
    )


def dot_dimension_sorter(program: ExecProgram) -> PassResult:
    """Sort the contraction pairs of every DotGeneral."""
    instructions: list[Instruction] = []
    changes: list[str] = []
    for ins in program.instructions:
        op = ins.op
        if isinstance(op, ops.DotGeneral) and (new := sort_pairs(op)) is not op:
            changes.append(f"slot {ins.output_slots[0]}: contraction {_pairs(op)} becomes {_pairs(new)}")
            op = new
        instructions.append(Instruction(op, ins.input_slots, ins.output_slots))
    return PassResult(rebuild(program, instructions), tuple(changes), True) if changes else PassResult(program)


def _pairs(op: ops.DotGeneral) -> str:
    return f"{list(op.lhs_contracting_dims)} x {list(op.rhs_contracting_dims)}"
