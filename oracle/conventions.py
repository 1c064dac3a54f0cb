"""Where a derivative is a matter of convention: what is not determined by the program, and what the contract says otherwise than JAX.

Singular vectors of complex numbers may be turned by any phase, and so may their tangents; factors of LuFactor have no tangent here,
since ops that read them take the matrix as well; Cholesky and eigh read the lower triangle alone, in their tangents, too; and the
phase of a determinant has a tangent. Tangents of singular vectors and eigenvectors are regularised by as much as the op says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from oracle import configurations
from tenferro_ref import ops
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import linalg
from tenferro_ref.program import GraphBuilder, GraphProgram, Instruction, Value

#: Ops that read the lower triangle of a Hermitian matrix.
_LOWER = ("Cholesky", "Eigh", "EighVals")
_REWRITTEN = (*_LOWER, "SignDetFromLuFactor")
#: Ops that read what LuFactor gives, and the matrix, which has the tangent.
_PREPARED = ("LuSolvePrepared", "SignDetFromLuFactor", "LogAbsDetFromLuFactor")


def check_determined(program: GraphProgram) -> None:
    """Refuse a program whose derivative depends on how factors are chosen.

    Raises
    ------
    UnsupportedOp
        It reads packed factors by themselves, or the phases of vectors.
    """
    for ins in program.instructions:
        name = _name(ins)
        if name == "LuFactor" and not _read_by(program, ins.output_slots[0], lambda i: _name(i) in _PREPARED):
            raise UnsupportedOp(
                op=name, reason="its factors have no tangent; ops that read them have that of the matrix"
            )
        if name == "Svd" or (name == "Eigh" and _gauged(ins.op)):
            vectors = [s for s in ins.output_slots if program.slot_types[s].dtype.is_complex]
            forgets = partial(_forgets_phases, vectors)
            if not all(_read_by(program, slot, forgets) for slot in vectors):
                raise UnsupportedOp(op=name, reason="tangents of vectors have any phase, as the vectors")


def check_unregularised(program: GraphProgram) -> None:
    """Refuse a program whose derivative is, on purpose, not that of its function.

    Raises
    ------
    UnsupportedOp
        A decomposition keeps the tangents of its vectors small by a `derivative_eps` of its own.
    """
    for ins in program.instructions:
        op = ins.op
        if isinstance(op, ops.Extension) and configurations.derivative_eps(op) != configurations.DERIVATIVE_EPS:
            raise UnsupportedOp(
                op=op.op, reason="its derivative_eps makes another derivative than that of the function"
            )


def _forgets_phases(vectors: Sequence[int], reader: Instruction) -> bool:
    """Whether it gives the same for any phases of singular vectors: a modulus, or U V^H."""
    if type(reader.op) is ops.DotGeneral and [*reader.input_slots] == [*vectors]:
        return (reader.op.lhs_contracting_dims, reader.op.rhs_contracting_dims) == ((1,), (0,))
    return isinstance(reader.op, ops.Abs)


def for_jax(program: GraphProgram) -> GraphProgram:
    """The program with that written down of which JAX has other tangents: Hermitian matrices, and the phase of a determinant."""
    if not any(_name(ins) in _REWRITTEN for ins in program.instructions):
        return program
    builder = GraphBuilder(program.name, program.policy, symbols=program.symbols)
    values = {s: builder.typed_input(t) for s, t in zip(program.input_slots, program.input_types, strict=True)}
    for ins in program.instructions:
        operands = [values[slot] for slot in ins.input_slots]
        if _name(ins) in _LOWER:
            operands = [_hermitian(operands[0])]
        if _name(ins) == "SignDetFromLuFactor" and operands[0].dtype.is_complex:
            results: Sequence[Value] = [_phase(*operands[1:])]
        else:
            results = builder.apply_many(ins.op, *operands)
        values.update(zip(ins.output_slots, results, strict=True))
    return builder.build(*(values[slot] for slot in program.output_slots))


def _hermitian(a: Value) -> Value:
    apply = a.builder.apply
    strict = apply(ops.Tril(-1), a)
    above = strict.transpose(1, 0, *range(2, a.ndim))
    diagonal = apply(ops.Triu(0), apply(ops.Tril(0), a))
    if a.dtype.is_complex:
        above, diagonal = apply(ops.Conj(), above), diagonal.astype(a.dtype.real).astype(a.dtype)
    return strict + above + diagonal


def _gauged(op: ops.Op) -> bool:
    return isinstance(op, ops.Extension) and configurations.flags(op)["gauge"] != "Raw"


def _phase(packed: Value, parity: Value) -> Value:
    """The phase of a determinant: JAX's sign of a complex number has no tangent."""
    diagonal = packed.builder.apply(ops.ExtractDiag(0, 1), packed)
    return (diagonal / abs(diagonal).astype(diagonal.dtype)).prod([0]) * parity


def _name(ins: Instruction) -> str:
    """The op's name if it is of the linalg family, else nothing."""
    return ins.op.op if isinstance(ins.op, ops.Extension) and ins.op.family == linalg.FAMILY else ""


def _read_by(program: GraphProgram, slot: int, admitted: Callable[[Instruction], bool]) -> bool:
    """Whether only such instructions read a slot, and it is no output."""
    readers = [ins for ins in program.instructions if slot in ins.input_slots]
    return slot not in program.output_slots and all(map(admitted, readers))
