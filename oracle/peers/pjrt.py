"""XLA through a PJRT plugin in a worker process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from oracle.case import Case, by_program
from oracle.enclosure.model import CUDA
from oracle.equivalent import equivalents
from oracle.peers import given
from oracle.peers.base import Execution
from oracle.peers.lanes import DEFAULT_LANE, LANES, Option, Options, lane_options
from oracle.peers.modules import ModuleExecutor, write
from oracle.peers.peer import Peer
from tenferro_ref.errors import TenferroError, UnsupportedOp
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.stablehlo import OwnKernels, Source
from tenferro_ref.tensor import Array


@dataclass
class PjrtExecutor(ModuleExecutor):
    """One plugin in one lane; lanes of a plugin may share a worker.

    The variant "reloaded" runs what the plugin loads from its own serialised executable; "kernels" calls our kernels for ops that
    StableHLO has no form for; "rewritten" compiles an equal program (`oracle.equivalent`), whose results are held to the enclosures of
    the original one.

    Attributes
    ----------
    replaced
        Numbers of instructions that are calls of our kernels.
    """

    plugin: PluginRef = field(kw_only=True)
    reader: Reader = field(kw_only=True)
    replaced: frozenset[int] = field(default=frozenset(), kw_only=True)

    @property
    def own(self) -> OwnKernels:
        return OwnKernels(self.replaced, missing=self.peer.variant == "kernels")

    @property
    def lane(self) -> str:
        """Name in `LANES`."""
        return self.peer.lane or DEFAULT_LANE

    @property
    def model(self) -> str:
        """As `Executor`; `cuda` of a client that calls itself so."""
        return CUDA.name if self.worker.facts["platform"] == CUDA.name else self.peer.model

    @property
    def portable_name(self) -> str:
        return str(Peer("pjrt", self.peer.variant, self.plugin.package or self.plugin.path, self.lane))

    @property
    def wishes(self) -> wire.Message:
        return {"reloaded": self.peer.variant == "reloaded", "kernels": bool(self.own)}

    @property
    def options(self) -> Options:
        return {**self.plugin.compile_options, **self._lane_options, **self.overrides}

    @cached_property
    def _lane_options(self) -> Options:
        def knows(option: str, value: Option) -> bool:
            return bool(self.worker.request({"knows": [option, value]}, lambda answer: answer["knows"]))

        return lane_options(self.lane, self.worker.facts["platform"], knows)

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return ModuleExecutor.run_many(self, equivalents(cases) if self.peer.variant == "rewritten" else cases)

    def request_source(
        self, source: Source, input_sets: Sequence[Sequence[Array]]
    ) -> tuple[list[list[Array]], dict[str, float]]:
        """As `ModuleExecutor`; where the plugin does not know the module's text, a portable artifact of its own version is tried."""
        try:
            return ModuleExecutor.request_source(self, source, input_sets)
        except UnsupportedOp as unknown:
            version = self.worker.facts.get("stablehlo_current_version", "")
            try:
                portable = replace(source, code=self.reader.serialized(source, f"portable={version}"))
                return ModuleExecutor.request_source(self, portable, input_sets)
            except TenferroError:  # neither form: the error about the module as given is the one to report
                raise unknown from None

    @property
    def build(self) -> str:
        return build_of(self.worker.facts)

    def requirements(self) -> tuple[str, ...]:
        return tuple(filter(None, [self.plugin.requirement]))

    def opcodes(self, cases: Sequence[Case]) -> list[str]:
        """What the plugin leaves of the first module of cases after optimisation, each once: "dot f64", "fusion f32 kLoop".

        Empty for a module that cannot be lowered or compiled, or a plugin that does not tell. No new compile right after a
        run of the same cases.
        """
        firsts = [cases[group[0]] for group in by_program(cases)]
        source = firsts[0].source if firsts else None
        try:
            if source is not None:
                message = given.message(source, self.options, [])
            else:
                module = write(self.check, self.plain, firsts[: self.programs_a_module], self.own)
                if not module.types:
                    return []
                message = module.message(self.options, [])
            request = {**message, **self.wishes, "opcodes": True}
            return list(self.worker.request(request, lambda answer: answer["opcodes"]))
        except TenferroError:
            return []

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from (("plugin", self.plugin.source), ("file", self.plugin.path))
        yield "sha256", self.plugin.sha256()
        yield from ModuleExecutor.facts(self)
        options = ", ".join(f"{k}={v}" for k, v in self.options.items())
        yield "lane", f"{self.lane} ({options or 'no overrides'})"
        if left_out := [o for o in LANES[self.lane] if o not in self._lane_options]:
            yield "options left out", f"{', '.join(left_out)} (tried once: the plugin does not take them)"


def build_of(facts: Mapping[str, str]) -> str:
    """What the rules of known findings call a plugin, from what it says of itself."""
    return f"{facts.get('platform', '?')}, PJRT {facts['PJRT API']}, StableHLO {facts.get('stablehlo_current_version', '?')}"
