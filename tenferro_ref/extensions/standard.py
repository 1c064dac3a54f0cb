"""Extension ops that standard ops can say: the program in which they are said so (SEMANTICS 6).

A lowering to StableHLO, or whatever else knows the standard ops alone, takes the program through `standard_view` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tenferro_ref.extensions import einsum
from tenferro_ref.ops import Extension, Op
from tenferro_ref.program import GraphBuilder, LoweringView, Value

#: By family: `lower(op, *operands) -> results` appends standard ops to the operands' builder. All extents are integers.
STANDARD: dict[str, Callable[..., Sequence[Value]]] = {einsum.FAMILY: einsum.lower}


def _has_lowering(op: Op) -> bool:
    return isinstance(op, Extension) and op.family in STANDARD


def standard_view(view: LoweringView) -> LoweringView:
    """A view, at the same input shapes, of the program with extension ops replaced by standard ops where that can be done.

    It can where the family has a lowering and all extents of the operands are exact; other extension ops stay as they are.

    Raises
    ------
    ValidationError
        An op's rule is broken at these input shapes.
    """
    program = view.program
    if not any(_has_lowering(ins.op) for ins in program.instructions):
        return view
    builder = GraphBuilder(program.name, program.policy)
    values = {
        slot: builder.input(spec.dtype, [e for e in spec.shape if isinstance(e, int)])
        for slot, spec in zip(view.input_slots, view.input_specs, strict=True)
    }
    for ins in program.instructions:
        op, operands = ins.op, [values[slot] for slot in ins.input_slots]
        if isinstance(op, Extension) and _has_lowering(op) and all(v.type.is_static for v in operands):
            results = STANDARD[op.family](op, *operands)
        else:
            results = builder.apply_many(op, *operands)
        values.update(zip(ins.output_slots, results, strict=True))
    return LoweringView.of(builder.build(*(values[slot] for slot in program.output_slots)))
