"""Running emitted text on the real plugins, by the PJRT client alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, load_plugin
from tenferro_ref.program import GraphProgram, LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array
from tests.plugins import CPU_PLUGINS, plugin_or_skip

RunXla = Callable[[GraphProgram, Sequence[Array]], list[Array]]


@pytest.fixture(scope="session", params=CPU_PLUGINS)
def xla_client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(load_plugin(plugin_or_skip(request.param))) as client:
        yield client


@pytest.fixture
def run_xla(xla_client: Client) -> RunXla:
    """`run_xla(program, inputs)`: lower, compile without fast min/max, run."""

    def run(program: GraphProgram, inputs: Sequence[Array]) -> list[Array]:
        text = lower_to_stablehlo(LoweringView.of(program, tuple(x.shape for x in inputs)))
        specs = [(DType.of(x), x.shape) for x in inputs]
        with xla_client.compile(text, {"xla_cpu_enable_fast_min_max": False}, parameters=specs) as executable:
            return executable.run(inputs)

    return run
