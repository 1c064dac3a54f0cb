"""Refusals of matrices that are not due.

An op of the linalg family raises for a matrix that it cannot work on: singular, not positive definite, not finite. Whether a matrix near
to one is refused is a matter of rounding. One that is far from it has to be worked on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from oracle import configurations
from oracle.case import Case, live
from oracle.peers import Execution, NativeExecutor, attempt
from oracle.staged import decomposing, refuses
from tenferro_ref.extensions import linalg
from tenferro_ref.ops import Extension
from tenferro_ref.tensor import Array

#: Ops that read the lower triangle and the diagonal alone.
_ONE_SIDED = ("Cholesky", "Eigh", "EighVals")
#: Ops that divide by all pivots.
_DIVIDING = ("Solve", "FullPivLuSolve")
#: A matrix counts as near to a singular one from this ratio of its largest singular value to its least, or eigenvalue for Cholesky.
_FAR = 1e3


def unfounded(case: Case) -> str:
    """Why the matrix that the native executor refuses first has to be worked on; "" if it may be refused.

    Each op is run on what the native executor itself gives for its operands.
    """
    program = live(case.program)
    for ins in decomposing(program):
        op = ins.op
        results, operands = (
            attempt(NativeExecutor(), Case(replace(program, output_slots=slots), case.inputs))
            for slots in (ins.output_slots, ins.input_slots)
        )
        if isinstance(results, Execution):
            continue
        if not refuses(results) or not isinstance(operands, Execution) or not isinstance(op, Extension):
            return ""
        due = op.family != linalg.FAMILY or not _workable(op, operands.outputs)
        return "" if due else f"{op.op} has to work on this matrix: it is finite, and far from a singular one"
    return ""


def _workable(op: Extension, operands: Sequence[Array]) -> bool:
    """Whether the op has to work on every matrix of the batch."""
    return all(_is_far(op, [x[(..., *index)] for x in operands]) for index in np.ndindex(operands[0].shape[2:]))


def _is_far(op: Extension, operands: Sequence[Array]) -> bool:
    """Whether the operands, one matrix each, are finite, of usual size, and far from what the op refuses."""
    limits = np.finfo(operands[0].real.dtype)
    a, *others = [x.astype(np.complex128) for x in operands]
    if op.op in _ONE_SIDED:
        a = np.tril(a) + np.tril(a, -1).conj().T
    sizes = np.abs(np.concatenate([x.ravel() for x in (a, *others)]))
    if (
        (sizes > float(limits.max) ** 0.25) | ((sizes > 0) & (sizes < float(limits.tiny) ** 0.25)) | np.isnan(sizes)
    ).any():
        return False
    if op.op == "LuSolvePrepared":
        packed, pivots, *_ = others
        return bool(packed.diagonal().all() and ((pivots.real >= 1) & (pivots.real <= len(a))).all())
    if op.op == "TriangularSolve":
        return configurations.flags(op)["unit_diagonal"] is True or bool(a.diagonal().all())
    if op.op == "Cholesky":
        values = np.linalg.eigvalsh(a)
        return values.size == 0 or bool(values[0] * _FAR > values[-1] > 0)
    return op.op not in _DIVIDING or a.size == 0 or bool(np.linalg.cond(a) < _FAR)
