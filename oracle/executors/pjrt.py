"""XLA through a PJRT plugin in a worker process.

The harness lowers (refusals come before any process is asked), the worker compiles and runs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from oracle.case import Case
from oracle.executors.base import Execution
from oracle.executors.lanes import Options, lane_options, programs_a_module
from oracle.isolation import Worker, wire
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import TensorType
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import Body, lower_into


@dataclass
class PjrtExecutor:
    """One plugin in one lane; lanes of a plugin may share a worker.

    Attributes
    ----------
    lane
        Name in `LANES`.
    """

    name: str
    plugin: PluginRef
    lane: str
    worker: Worker
    model: str = "xla"
    options: Options = field(init=False)

    def __post_init__(self) -> None:
        self.options = lane_options(self.lane, self.plugin)

    def open(self) -> None:
        self.worker.facts  # noqa: B018 - starts the worker

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

    def run(self, case: Case) -> Execution:
        (result,) = self.run_many([case])
        if isinstance(result, TenferroError):
            raise result
        return result

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        """Run cases, as many in a module as pays in this lane.

        A case that cannot be lowered is left out. If the module fails or ends the worker, it is split until the guilty
        cases are alone.
        """
        results: dict[int, Execution | TenferroError] = {}
        views: dict[int, LoweringView] = {}
        for i, case in enumerate(cases):
            try:
                views[i] = LoweringView.of(case.program, case.shapes)
                lower_into(Body(), views[i])
            except TenferroError as error:
                results[i] = error
                views.pop(i, None)
        items, size = list(views.items()), programs_a_module(self.lane)
        for start in range(0, len(items), size):
            self._run_module(cases, dict(items[start : start + size]), results)
        return [results[i] for i in range(len(cases))]

    def _run_module(
        self, cases: Sequence[Case], views: dict[int, LoweringView], results: dict[int, Execution | TenferroError]
    ) -> None:
        if not views:
            return
        start = time.perf_counter()
        body, outputs = Body(), []
        for view in views.values():
            outputs += lower_into(body, view)
        specs = [spec for view in views.values() for spec in view.input_specs]
        types = [view.static_type(slot) for view in views.values() for slot in view.output_slots]
        message = {
            "code": body.module(outputs),
            "options": self.options,
            "parameters": [_pack_type(t) for t in specs],
            "results": [_pack_type(t) for t in types],
            "input_sets": [[wire.pack(a) for i in views for a in cases[i].inputs]],
        }
        lowered = time.perf_counter()
        try:
            answer = self.worker.request(message)
        except TenferroError as error:
            if len(views) == 1:
                results[next(iter(views))] = error
                return
            items = list(views.items())
            for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                self._run_module(cases, dict(half), results)
            return
        seconds = {k: v / len(views) for k, v in {"lower": lowered - start, **answer["seconds"]}.items()}
        arrays = iter(answer["output_sets"][0])
        for i, view in views.items():
            outputs_of = tuple(wire.unpack(next(arrays)) for _ in view.output_slots)
            results[i] = Execution(outputs_of, seconds, shared=len(views) > 1)

    def bit_exact(self, case: Case) -> bool:
        return False

    def close(self) -> None:
        self.worker.close()


def _pack_type(type_: TensorType) -> list[object]:
    return [type_.dtype.name, list(type_.shape)]
