"""XLA through a PJRT plugin in a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.case import Case, by_program
from oracle.peers.lanes import lane_options, programs_a_module
from oracle.peers.modules import ModuleExecutor, write
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import Worker
from tenferro_ref.pjrt import PluginRef


@dataclass(init=False)
class PjrtExecutor(ModuleExecutor):
    """One plugin in one lane; lanes of a plugin may share a worker.

    Attributes
    ----------
    lane
        Name in `LANES`.
    """

    plugin: PluginRef
    lane: str

    def __init__(self, name: str, plugin: PluginRef, lane: str, worker: Worker, model: str = "xla") -> None:
        ModuleExecutor.__init__(
            self,
            name,
            worker,
            model,
            programs_a_module=programs_a_module(lane),
            options=lane_options(lane, plugin),
        )
        self.plugin = plugin
        self.lane = lane

    def opcodes(self, cases: Sequence[Case]) -> list[str]:
        """What the plugin leaves of the first module of cases after optimisation, each once: "dot f64", "fusion f32 kLoop".

        Empty for a module that cannot be lowered or compiled, or a plugin that does not tell. No new compile right after a
        run of the same cases.
        """
        firsts = [cases[group[0]] for group in by_program(cases)]
        module = write(self.check, self.plain, firsts[: self.programs_a_module])
        if not module.types:
            return []
        try:
            return list(self.worker.request({**module.message(self.options, []), "opcodes": True})["opcodes"])
        except TenferroError:
            return []

    def info(self) -> ExecutorInfo:
        facts = [("plugin", self.plugin.source), ("file", self.plugin.path)]
        try:
            facts.append(("sha256", self.plugin.sha256()))
            facts += self.worker.facts.items()
        except TenferroError as error:
            return ExecutorInfo(self.name, available=False, reason=str(error), facts=tuple(facts))
        options = ", ".join(f"{k}={v}" for k, v in self.options.items())
        facts.append(("lane", f"{self.lane} ({options or 'no overrides'})"))
        return ExecutorInfo(self.name, available=True, facts=tuple(facts))
