"""Running emitted text on the real plugins, by the PJRT client alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pytest

from oracle.peers.lanes import lane_options
from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, load_plugin
from tenferro_ref.program import GraphProgram, LoweringView
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array
from tests.plugins import CPU_PLUGINS, plugin_or_skip


class RunXla(Protocol):
    """Lower, compile as the lane has it, run."""

    def __call__(self, program: GraphProgram, inputs: Sequence[Array], lane: str = "parity") -> list[Array]: ...


@pytest.fixture(scope="session", params=CPU_PLUGINS)
def xla_client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(load_plugin(plugin_or_skip(request.param))) as client:
        yield client


@pytest.fixture
def run_xla(xla_client: Client) -> RunXla:
    def run(program: GraphProgram, inputs: Sequence[Array], lane: str = "parity") -> list[Array]:
        text = lower_to_stablehlo(LoweringView.of(program, tuple(x.shape for x in inputs)))
        specs = [(DType.of(x), x.shape) for x in inputs]
        with xla_client.compile(
            text, lane_options(lane, xla_client.platform_name, xla_client.knows), parameters=specs
        ) as executable:
            return executable.run(inputs)

    return run
