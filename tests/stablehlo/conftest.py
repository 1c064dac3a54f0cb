"""Running emitted text on the real plugins, by the PJRT client alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from oracle.peers.lanes import lane_options
from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client
from tenferro_ref.program import GraphProgram, LoweringView
from tenferro_ref.stablehlo import Body, lower_into
from tenferro_ref.tensor import Array
from tenferro_ref.xla import XlaExecutor
from tests.known import Example
from tests.op_examples import program_of


class RunXla(Protocol):
    """Lower, compile as the lane has it, run."""

    def __call__(self, program: GraphProgram, inputs: Sequence[Array], lane: str = "parity") -> list[Array]: ...


class RunExamples(Protocol):
    """Results of examples, from one module; without a lane as the plugin compiles by default."""

    def __call__(self, examples: Sequence[Example], lane: str = "parity") -> list[Array]: ...


@pytest.fixture
def run_xla(xla_client: Client) -> RunXla:
    def run(program: GraphProgram, inputs: Sequence[Array], lane: str = "parity") -> list[Array]:
        options = lane_options(lane, xla_client.platform_name, xla_client.knows)
        with XlaExecutor(xla_client, options) as executor:
            return executor.run_many_with_inputs(program, inputs)

    return run


@pytest.fixture
def run_examples(xla_client: Client) -> RunExamples:
    def run(examples: Sequence[Example], lane: str = "parity") -> list[Array]:
        body, results, inputs = Body(), [], []
        for example in examples:
            program, arrays = program_of([example])
            results += lower_into(body, LoweringView.of(program))
            inputs += arrays
        options = lane_options(lane, xla_client.platform_name, xla_client.knows) if lane else {}
        specs = [(DType.of(x), x.shape) for x in inputs]
        with xla_client.compile(body.module(results), options, parameters=specs) as executable:
            return list(executable.run(inputs))

    return run
