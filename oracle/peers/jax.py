"""JAX: the program as calls of `jax.lax` (`oracle.peers.engines.lax`), not through our emitter.

A module that a case came with runs unchanged on jaxlib's own client, one more build of XLA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oracle.case import Case
from oracle.peers import given
from oracle.peers.base import Execution, WorkerExecutor, validate
from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import wire
from tenferro_ref.program import dumps
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array


@dataclass
class JaxExecutor(WorkerExecutor):
    """JAX on its own CPU client: the program as one compiled function, or (`jax-eager`) op by op."""

    @property
    def jit(self) -> bool:
        """Whether a program is one compiled function."""
        return self.peer.variant != "eager"

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from WorkerExecutor.facts(self)
        yield "calls", "jax.jit" if self.jit else "eager"

    def run_source(self, source: Source, inputs: Sequence[Array]) -> Execution:
        if not self.jit:
            return WorkerExecutor.run_source(self, source, inputs)
        try:
            request = given.message(source, self.options, [inputs])
            (outputs,), seconds = self.worker.request(request, wire.output_sets)
        except TenferroError as error:
            raise given.lacking(error) from None
        return Execution(tuple(outputs), seconds)

    def run(self, case: Case) -> Execution:
        validate(case)
        if case.source is not None and self.jit:
            return self.run_source(case.source, case.arguments)
        message = {
            "program": dumps(case.program),
            "jit": self.jit,
            "options": self.options,
            "input_sets": [[wire.pack(a) for a in case.inputs]],
        }
        (outputs,), seconds = self.worker.request(message, wire.output_sets)
        return Execution(tuple(outputs), seconds)
