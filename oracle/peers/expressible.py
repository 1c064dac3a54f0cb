"""Which programs StableHLO has a form for, told without the emitter: an emitter that refuses one of them has a defect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenferro_ref import ops
from tenferro_ref.errors import Internal, LoweringError, defects_in
from tenferro_ref.extensions import lapack, linalg
from tenferro_ref.ops import INTEGER_FAULTS, Op
from tenferro_ref.program import Program

#: Which operand of an op holds indices.
INDICES: dict[type[Op], int] = {
    ops.Gather: 1, ops.GatherDynamicSliceSizes: 1, ops.Scatter: 1, ops.DynamicSlice: 1, ops.DynamicUpdateSlice: 2,
}  # fmt: skip
#: The decompositions that StableHLO has; einsum and transforms it has all.
_DECOMPOSITIONS = {linalg.FAMILY: ("Cholesky", "TriangularSolve"), lapack.FAMILY: ("potrf", "trsm")}


def is_expressible(program: Program) -> bool:
    """Whether StableHLO has a form for every instruction (SEMANTICS 7).

    It has none for an extent that depends on data, for an error that depends on values, as the engine's policy demands of integers and
    of float indices, and for most decompositions.
    """
    types, faults = program.slot_types, program.policy.integer_faults == "error"
    for ins in program.instructions:
        op, operands = ins.op, [types[slot].dtype for slot in ins.input_slots]
        if (
            isinstance(op, ops.DynamicTruncate)
            or (isinstance(op, ops.Extension) and op.op not in _DECOMPOSITIONS.get(op.family, (op.op,)))
            or (faults and type(op) in INTEGER_FAULTS and operands[0].is_int)
            or (type(op) in INDICES and not operands[INDICES[type(op)]].is_int)
        ):
            return False
    return True


@contextmanager
def emitting(program: Program) -> Iterator[None]:
    """Around a call of the emitter: what goes wrong is its defect, and so is a refusal of a program that StableHLO has a form for.

    Raises
    ------
    Internal
        The emitter has a defect.
    LoweringError
        StableHLO has no form for part of the program.
    """
    with defects_in("the emitter of StableHLO"):
        try:
            yield
        except LoweringError as error:
            if not is_expressible(program):
                raise
            raise Internal(detail=f"the emitter refuses what StableHLO has a form for: {error}") from None
