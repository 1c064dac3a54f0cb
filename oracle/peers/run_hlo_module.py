"""OpenXLA's command `run_hlo_module` as an executor: one process a module, on the case's own inputs."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from oracle.case import Case
from oracle.peers import given
from oracle.peers.base import Execution, Executor, validate
from oracle.peers.modules import module_text
from tenferro_ref.errors import TenferroError
from tenferro_ref.stablehlo import Source
from tenferro_ref.tensor import Array
from tenferro_ref.xla.run_hlo_module import DEFAULT_PLATFORM, PLATFORM_VARIABLE, run_hlo_module, tool_from_env


@dataclass(frozen=True)
class RunHloModuleExecutor(Executor):
    """The tool that TENFERRO_XLA_RUN_HLO_MODULE names; ended after `request_seconds`."""

    request_seconds: float = 60.0
    name: str = field(default="run-hlo-module", init=False)

    def open(self) -> None:
        tool_from_env()

    def facts(self) -> Iterator[tuple[str, str]]:
        tool = tool_from_env()
        yield from (("file", str(tool)), ("sha256", hashlib.sha256(tool.read_bytes()).hexdigest()))
        yield "platform", os.environ.get(PLATFORM_VARIABLE) or DEFAULT_PLATFORM

    def run(self, case: Case) -> Execution:
        validate(case)
        if case.source is not None:
            return self.run_source(case.source, case.arguments)
        return self._run(module_text(case), case.inputs)

    def run_source(self, source: Source, inputs: Sequence[Array]) -> Execution:
        given.refuse_host_calls(source)
        try:
            return self._run(source.code, inputs)
        except TenferroError as error:
            raise given.lacking(error) from None

    def _run(self, module: str | bytes, inputs: Sequence[Array]) -> Execution:
        start = time.perf_counter()
        done = run_hlo_module(module, inputs, timeout_seconds=self.request_seconds)
        return Execution(done.results or (), {"execute": time.perf_counter() - start})
