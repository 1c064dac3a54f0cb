"""JAX: the program as calls of `jax.lax` (`oracle.peers.engines.lax`), not through our emitter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from oracle.case import Case
from oracle.peers.base import Execution, WorkerExecutor, validate
from tenferro_ref.isolation import wire
from tenferro_ref.program import dumps


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

    def run(self, case: Case) -> Execution:
        validate(case)
        message = {
            "program": dumps(case.program),
            "jit": self.jit,
            "options": self.options,
            "input_sets": [[wire.pack(a) for a in case.inputs]],
        }
        (outputs,), seconds = self.worker.request(message, wire.output_sets)
        return Execution(tuple(outputs), seconds)
