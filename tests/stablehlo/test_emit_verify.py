"""Every emitted form parses and verifies with jaxlib's bindings, and their interpreter agrees with the native executor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oracle.case import Case
from oracle.executors.base import Executor
from oracle.executors.registry import Pool
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ENGINE, STABLEHLO, Policy
from tenferro_ref.program import LoweringView, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import same_bits
from tests.stablehlo.emit_cases import moves, ordinary, program_of, scatter_onto_rank_0, scatters

ir = pytest.importorskip("jaxlib.mlir.ir")
mlir = pytest.importorskip("jax.interpreters.mlir")


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Executor]:
    pool = Pool()
    yield pool.make("interpreter")
    pool.close()


@pytest.mark.parametrize("dtype", list(DType))
def test_every_form_verifies(dtype: DType) -> None:
    cases = [*ordinary(dtype), *moves(dtype), *scatters(dtype), scatter_onto_rank_0(dtype)]
    clamped = scatters(dtype) if dtype is not DType.Bool else []
    for some, policy in ((cases, STABLEHLO), (clamped, ENGINE)):
        text = lower_to_stablehlo(LoweringView.of(program_of(some, policy)[0]))
        with mlir.make_ir_context():
            ir.Module.parse(text)  # raises what the verifier says


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("policy", [ENGINE, STABLEHLO], ids=["engine", "stablehlo"])
def test_the_interpreter_agrees(interpreter: Executor, dtype: DType, policy: Policy) -> None:
    """Also where windows are partly outside, of which it skips only the outside elements."""
    cases = moves(dtype)
    if policy is STABLEHLO or dtype is not DType.Bool:
        cases += [*scatters(dtype), scatter_onto_rank_0(dtype)]
    program, arrays = program_of(cases, policy)
    native = GraphExecutor().eval_exec_ir(to_exec(program), arrays)
    interpreted = interpreter.run(Case.of(program, arrays)).outputs
    for (op, operands), want, got in zip(cases, native, interpreted, strict=True):
        assert same_bits(got, want), f"{op} of {operands} gave {got}, natively {want}"
