"""Indexing, padding, diagonals and reductions at their edges: the native executor and XLA give the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from oracle.peers.lanes import Options, lane_options
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import PjrtCall
from tenferro_ref.ops import ENGINE, STABLEHLO, Policy
from tenferro_ref.pjrt import Client
from tenferro_ref.program import LoweringView, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import EMIT, Body, lower_into
from tenferro_ref.tensor import Array, same_bits
from tests.plugins import CPU_PLUGINS
from tests.stablehlo.emit_cases import (
    Case,
    empty_reductions,
    moves,
    ordinary,
    program_of,
    scatter_onto_rank_0,
    scatters,
)

Groups = Sequence[tuple[Sequence[Case], Policy]]


def groups(dtype: DType) -> Groups:
    """Cases for one module."""
    clamped = [] if dtype is DType.Bool else scatters(dtype)
    return (moves(dtype), ENGINE), (clamped, ENGINE), ([*scatters(dtype), *empty_reductions(dtype)], STABLEHLO)


def xla(client: Client, given: Groups, options: Options) -> Iterator[Array]:
    """Results of all cases, from one module."""
    body, results, inputs = Body(), [], []
    for cases, policy in given:
        program, arrays = program_of(cases, policy)
        results += lower_into(body, LoweringView.of(program))
        inputs += arrays
    specs = [(DType.of(x), x.shape) for x in inputs]
    with client.compile(body.module(results), options, parameters=specs) as executable:
        return iter(executable.run(inputs))


def assert_same(given: Groups, results: Iterator[Array]) -> None:
    for cases, policy in given:
        program, arrays = program_of(cases, policy)
        native = GraphExecutor().eval_exec_ir(to_exec(program), arrays)
        for (op, operands), want, got in zip(cases, native, results, strict=False):
            assert same_bits(got, want), f"{op} of {operands} under {policy} gave {got}, natively {want}"


@pytest.mark.parametrize("dtype", list(DType))
def test_edges_of_indexing(xla_client: Client, dtype: DType) -> None:
    given = groups(dtype)
    if dtype is not DType.F64:  # a third each, another one for each plugin
        plugin = CPU_PLUGINS.index(xla_client.plugin.ref.name)
        first = (list(DType).index(dtype) + plugin) % 3
        given = [(cases[first::3], policy) for cases, policy in given]
    assert_same(given, xla(xla_client, given, lane_options("fast", xla_client.platform_name, xla_client.knows)))


def test_a_third_of_them_as_xla_compiles_by_default(xla_client: Client) -> None:
    given = [(cases[::3], policy) for cases, policy in groups(DType.F32)]
    assert_same(given, xla(xla_client, given, {}))


@pytest.mark.xfail(raises=PjrtCall, reason="XLA's scatter_simplifier makes an invalid module of it")
def test_scatter_onto_rank_0(xla_client: Client) -> None:
    given = [([scatter_onto_rank_0(DType.F64)], ENGINE)]
    assert_same(given, xla(xla_client, given, {}))


def test_the_cases_have_every_emitted_op() -> None:
    cases = [*ordinary(DType.F64), *moves(DType.F64), *scatters(DType.F64)]
    assert {type(op) for op, _ in cases} | {ops.Extension} == set(EMIT)
