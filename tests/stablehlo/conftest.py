"""Running emitted text on the real plugins, by the PJRT client alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from oracle.peers.lanes import lane_options
from tenferro_ref.pjrt import Client
from tenferro_ref.program import GraphProgram
from tenferro_ref.tensor import Array
from tenferro_ref.xla import XlaExecutor


class RunXla(Protocol):
    """Lower, compile as the lane has it, run."""

    def __call__(self, program: GraphProgram, inputs: Sequence[Array], lane: str = "parity") -> list[Array]: ...


@pytest.fixture
def run_xla(xla_client: Client) -> RunXla:
    def run(program: GraphProgram, inputs: Sequence[Array], lane: str = "parity") -> list[Array]:
        options = lane_options(lane, xla_client.platform_name, xla_client.knows)
        with XlaExecutor(xla_client, options) as executor:
            return executor.run_many_with_inputs(program, inputs)

    return run
