"""Runtimes of extension families (SEMANTICS 6): how one is registered and how the executor calls it.

Metadata rules of families are in `tenferro_ref.ops.FAMILIES`. The engine's own families (`tenferro_ref.extensions`) are
registered from the start, others by whoever brings them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenferro_ref import ops
from tenferro_ref.errors import Internal, InvalidArgument, UnsupportedOp
from tenferro_ref.extensions import einsum, einsum_runtime, fft, fft_runtime, linalg, linalg_runtime
from tenferro_ref.tensor import Array


class ExtensionRuntime(Protocol):
    """Executes the ops of one family."""

    def execute(self, op: ops.Extension, inputs: Sequence[Array]) -> Sequence[Array]:
        """One array an output, of the types that the family's metadata rule gives; `inputs` must not be written to."""
        ...


#: Runtimes by family id, which executors use unless they are given their own.
RUNTIMES: dict[str, ExtensionRuntime] = {
    linalg.FAMILY: linalg_runtime,
    fft.FAMILY: fft_runtime,
    einsum.FAMILY: einsum_runtime,
}


def register_runtime(family: str, runtime: ExtensionRuntime) -> None:
    """Make `runtime` the family's; idempotent, the first registration stays."""
    RUNTIMES.setdefault(family, runtime)


def run_extension(
    runtimes: Mapping[str, ExtensionRuntime], op: ops.Extension, inputs: Sequence[Array], outputs: int
) -> Sequence[Array]:
    """Results of an extension op; there is no fallback.

    Raises
    ------
    UnsupportedOp
        No runtime is registered for the family.
    InvalidArgument
        The runtime gave another number of results than `outputs`.
    Internal
        The runtime failed with an error of its own; typed errors pass as they are.
    """
    runtime = runtimes.get(op.family)
    if runtime is None:
        raise UnsupportedOp(op=op.name, reason=f"extension family {op.family!r} has no registered runtime")
    try:
        results = runtime.execute(op, inputs)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RuntimeError) as error:
        raise Internal(detail=f"extension {op.family!r} failed in {op.op}: {error}") from error
    if len(results) != outputs:
        raise InvalidArgument(
            op=op.name, argument="outputs", detail=f"{op.family!r} {op.op} gave {len(results)} results for {outputs}"
        )
    return results


__all__ = ["RUNTIMES", "ExtensionRuntime", "register_runtime", "run_extension"]
