"""XLA through a PJRT plugin in a worker process.

The harness lowers (refusals come before any process is asked), the worker compiles and runs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from oracle.case import Case
from oracle.executors.base import Execution
from oracle.executors.lanes import Options, lane_options
from oracle.isolation import Worker, wire
from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import TensorType
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo


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
        start = time.perf_counter()
        view = LoweringView.of(case.program, case.shapes)
        module = lower_to_stablehlo(view)
        results = [view.static_type(slot) for slot in view.output_slots]
        lowered = time.perf_counter()
        answer = self.worker.request(
            {
                "code": module,
                "options": self.options,
                "parameters": [_pack_type(t) for t in view.input_specs],
                "results": [_pack_type(t) for t in results],
                "input_sets": [[wire.pack(a) for a in case.inputs]],
            }
        )
        (packed,) = answer["output_sets"]
        outputs = tuple(wire.unpack(a) for a in packed)
        return Execution(outputs, {"lower": lowered - start, **answer["seconds"]})

    def bit_exact(self, case: Case) -> bool:
        return False

    def close(self) -> None:
        self.worker.close()


def _pack_type(type_: TensorType) -> list[object]:
    return [type_.dtype.name, list(type_.shape)]
