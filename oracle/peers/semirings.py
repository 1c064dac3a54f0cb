"""The engine of the algebras as a way of running programs: which backends there are, and which programs are for it."""

from __future__ import annotations

from tenferro_ref import ops
from tenferro_ref.dtype import NUMERIC
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import Op
from tenferro_ref.program import GraphProgram
from tenferro_ref.runtime import ALGEBRAS, SemiringBackend
from tenferro_ref.runtime.semiring import SEMIRING, NumpyCore

#: With the fast path, and with the required one alone (SEMANTICS 6.1).
PATHS = ("fast", "required")
PRODUCTS: tuple[type[Op], ...] = (ops.Multiply, ops.ReduceSumSquares)
#: What puts the algebra's zero where the standard kernel puts 0.
FILLS: tuple[type[Op], ...] = (ops.EmbedDiag, ops.Tril, ops.Triu, ops.Pad)
#: Ops whose elements must be those of the algebra; the others that have rows move elements of any dtype.
COMPUTING: tuple[type[Op], ...] = (*PRODUCTS, *FILLS, ops.Add, ops.ReduceSum, ops.DotGeneral, ops.DotGeneralWithConj)


def backend_of(algebra: str, path: str) -> SemiringBackend:
    """NumPy's backend of an algebra; `path` is one of `PATHS`."""
    return SemiringBackend.of(algebra) if path == "fast" else SemiringBackend(NumpyCore(ALGEBRAS[algebra]))


def fits(program: GraphProgram, path: str) -> bool:
    """Whether the engine of the standard algebra gives the bits of the native executor for this program.

    Its ops have rows and its dtypes are elements. On the required path products are contractions of one pair, whose zeros have another sign
    and whose complex numbers are rounded otherwise: a program with an elementwise product is for the fast path alone.
    """
    if program.policy.dtypes != "engine" or not all(type(ins.op) in SEMIRING for ins in program.instructions):
        return False
    if path == "required" and any(isinstance(ins.op, PRODUCTS) for ins in program.instructions):
        return False
    try:
        types = program.slot_types
    except TenferroError:
        return False
    read = {types[s].dtype for ins in program.instructions if isinstance(ins.op, COMPUTING) for s in ins.input_slots}
    return read <= NUMERIC
