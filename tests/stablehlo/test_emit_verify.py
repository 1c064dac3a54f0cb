"""Every emitted form parses and verifies with jaxlib's bindings, and their interpreter agrees with the native kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tenferro_ref.dtype import FLOAT, INT, DType
from tenferro_ref.ops import ENGINE, STABLEHLO, Policy
from tenferro_ref.program import GraphProgram, LoweringView, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array, same_bits
from tests.stablehlo.emit_cases import Case, moves, ordinary, program_of, scatter_onto_rank_0, scatters

ir = pytest.importorskip("jaxlib.mlir.ir")
dialect = pytest.importorskip("jaxlib.mlir.dialects.stablehlo")
jax_mlir = pytest.importorskip("jax.interpreters.mlir")


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with jax_mlir.make_ir_context():
        yield


def verified(program: GraphProgram) -> Any:
    """Its module; a parser that verifies."""
    return ir.Module.parse(lower_to_stablehlo(LoweringView.of(program)))


@pytest.mark.parametrize("dtype", list(DType))
def test_every_form_verifies(dtype: DType) -> None:
    verified(program_of([*ordinary(dtype), *moves(dtype), *scatters(dtype)], STABLEHLO)[0])
    verified(program_of(moves(dtype), ENGINE)[0])
    if dtype is not DType.Bool:
        verified(program_of([*scatters(dtype), scatter_onto_rank_0(dtype)], ENGINE)[0])


def interpreted(program: GraphProgram, arrays: Sequence[Array]) -> list[Array]:
    """Results by the interpreter, which takes no Bool and no complex."""

    def c_ordered(x: Array) -> Array:  # in the platform's dtype: the bindings refuse one marked little-endian
        result: Array = np.empty(x.shape, x.dtype.name)
        result[...] = x
        return result

    attributes = [ir.DenseElementsAttr.get(c_ordered(x)) for x in arrays]
    types = [program.slot_types[slot] for slot in program.output_slots]
    results = dialect.eval_module(verified(program), attributes)
    # a splat comes back with zero strides
    return [np.array(r).reshape(t.shape).astype(t.dtype.numpy) for r, t in zip(results, types, strict=True)]


@pytest.mark.parametrize("dtype", sorted(FLOAT | INT, key=str))
@pytest.mark.parametrize("policy", [ENGINE, STABLEHLO], ids=["engine", "stablehlo"])
def test_the_interpreter_agrees(dtype: DType, policy: Policy) -> None:
    """Also where windows are partly outside, of which it skips only the outside elements."""
    cases: list[Case] = [*moves(dtype), *scatters(dtype), scatter_onto_rank_0(dtype)]
    cases = [(op, operands) for op, operands in cases if all(x.dtype != np.bool_ for x in operands)]
    program, arrays = program_of(cases, policy)
    native = GraphExecutor().eval_exec_ir(to_exec(program), arrays)
    for (op, operands), want, got in zip(cases, native, interpreted(program, arrays), strict=True):
        assert same_bits(got, want), f"{op} of {operands} under {policy} gave {got}, natively {want}"
