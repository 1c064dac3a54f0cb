"""Indexing, padding, diagonals and reductions at their edges: the native executor and XLA give the same bits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import PjrtCall
from tenferro_ref.ops import REDUCTIONS, STABLEHLO
from tenferro_ref.pjrt import Client
from tenferro_ref.stablehlo import EMIT
from tenferro_ref.tensor import Array, same_bits
from tests.build import apply
from tests.known import Example
from tests.op_examples import PAIRS, admitted, beyond_files, examples, moves, scatter_onto_rank_0, scatters
from tests.plugins import CPU_PLUGINS, on_one_build
from tests.stablehlo.conftest import RunExamples

pytestmark = pytest.mark.once


def edges(dtype: DType) -> list[Example]:
    """Examples that are exact whatever the order of additions."""
    empty = [e for op in REDUCTIONS if dtype in admitted(op) for e in examples(op, dtype) if e.operands[0].size == 0]
    clamped = [] if dtype is DType.Bool else scatters(dtype)
    return [*moves(dtype), *beyond_files(dtype), *clamped, *scatters(dtype, STABLEHLO), *empty]


def assert_same(asked: Sequence[Example], results: Sequence[Array]) -> None:
    for example, got in zip(asked, results, strict=True):
        want = apply(example.op, *example.operands, policy=example.policy)
        assert same_bits(got, want), f"{example} gave {got}, natively {want}"


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
def test_edges_of_indexing(run_examples: RunExamples, xla_client: Client, dtype: DType) -> None:
    asked = edges(dtype)
    if dtype is not DType.F64:  # a third each, another one for each plugin
        plugin = CPU_PLUGINS.index(xla_client.plugin.ref.name)
        asked = asked[(list(ENGINE_DTYPES).index(dtype) + plugin) % 3 :: 3]
    assert_same(asked, run_examples(asked, "fast"))


@on_one_build
def test_a_third_of_them_as_xla_compiles_by_default(run_examples: RunExamples) -> None:
    asked = edges(DType.F32)[::3]
    assert_same(asked, run_examples(asked, ""))


@pytest.mark.xfail(raises=PjrtCall, reason="XLA's scatter_simplifier makes an invalid module of it")
def test_scatter_onto_rank_0(run_examples: RunExamples) -> None:
    asked = [scatter_onto_rank_0(DType.F64)]
    assert_same(asked, run_examples(asked, ""))


def test_the_examples_have_every_emitted_op() -> None:
    assert ({op for op, _ in PAIRS} - {ops.DynamicTruncate}) | {ops.Extension} == set(EMIT) - set(ops.REFERENCE)
