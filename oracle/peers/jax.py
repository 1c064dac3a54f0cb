"""JAX: the program as calls of `jax.lax` (`oracle.peers.engines.lax`), not through our emitter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oracle.case import Case
from oracle.peers.base import Execution, attempt, validate
from oracle.peers.lanes import Options
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import Worker, wire
from tenferro_ref.program import dumps


@dataclass
class JaxExecutor:
    """JAX on its own CPU client.

    Attributes
    ----------
    jit
        One compiled function, else one call an op.
    options
        XLA's debug options for that function.
    """

    name: str
    worker: Worker
    jit: bool
    model: str = "xla"
    options: Options = field(default_factory=dict)

    def open(self) -> None:
        self.worker.facts  # noqa: B018 - starts the worker

    def info(self) -> ExecutorInfo:
        try:
            facts = (*self.worker.facts.items(), ("calls", "jax.jit" if self.jit else "eager"))
        except TenferroError as error:
            return ExecutorInfo(self.name, available=False, reason=str(error))
        return ExecutorInfo(self.name, available=True, facts=facts)

    def run(self, case: Case) -> Execution:
        validate(case)
        message = {
            "program": dumps(case.program),
            "jit": self.jit,
            "options": self.options,
            "input_sets": [[wire.pack(a) for a in case.inputs]],
        }
        answer = self.worker.request(message)
        return Execution(tuple(wire.unpack(a) for a in answer["output_sets"][0]), answer["seconds"])

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return [attempt(self, case) for case in cases]

    def bit_exact(self, case: Case) -> bool:
        return False

    def close(self) -> None:
        self.worker.close()
