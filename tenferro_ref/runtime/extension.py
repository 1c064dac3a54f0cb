"""How the executor runs an extension op: by the runtime of its family's record (SEMANTICS 6); there is no fallback."""

from __future__ import annotations

from collections.abc import Sequence

from tenferro_ref import ops
from tenferro_ref.errors import Internal, InvalidArgument, UnsupportedOp
from tenferro_ref.extensions import family_of
from tenferro_ref.tensor import Array


def run_extension(op: ops.Extension, inputs: Sequence[Array], outputs: int) -> Sequence[Array]:
    """Results of an extension op.

    Raises
    ------
    UnsupportedOp
        The family has no runtime.
    InvalidArgument
        The runtime gave another number of results than `outputs`.
    Internal
        The runtime failed with an error of its own; typed errors pass as they are.
    """
    execute = family_of(op).execute
    if execute is None:
        raise UnsupportedOp(op=op.name, reason=f"extension family {op.family!r} has no registered runtime")
    try:
        results = execute(op, inputs)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RuntimeError) as error:
        raise Internal(detail=f"extension {op.family!r} failed in {op.op}: {error}") from error
    if len(results) != outputs:
        raise InvalidArgument(
            op=op.name, argument="outputs", detail=f"{op.family!r} {op.op} gave {len(results)} results for {outputs}"
        )
    return results
