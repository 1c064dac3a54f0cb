"""Modules of cases that are read again without their inputs."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.case import Case
from oracle.given_case import case_of
from oracle.judge import Reference, judge
from oracle.peers import Execution, NativeExecutor, Pool
from oracle.peers.reread import reread, rereadable
from oracle.staged import judge_stages
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.isolation.engines.reader import evaluate
from tenferro_ref.stablehlo.loader import load, signature
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

pytestmark = pytest.mark.once

OVERWRITING = """
func.func @main(%x: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<4xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>}) : (tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
LOOP = """
func.func @main(%n: tensor<i32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<2xf32>
    cond { %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %one : tensor<i32>
         %z = stablehlo.add %y, %y : tensor<2xf32>
         stablehlo.return %j, %z : tensor<i32>, tensor<2xf32> }
  return %r#1 : tensor<2xf32>
}"""
SOLVED = """
func.func @main(%a: tensor<2x3x3xcomplex<f32>>, %b: tensor<2x3x1xcomplex<f32>>) -> tensor<2x3x1xcomplex<f32>> {
  %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose ADJOINT>}> : (tensor<2x3x3xcomplex<f32>>, tensor<2x3x1xcomplex<f32>>) -> tensor<2x3x1xcomplex<f32>>
  return %r : tensor<2x3x1xcomplex<f32>>
}"""


def given(text: str, *arguments: np.ndarray) -> Case:
    return case_of(load(text, evaluate=evaluate, inputs=arguments), signature(text), arguments)


def overwriting() -> Case:
    indices, updates = np.array([[1], [3], [1]], np.int32), np.array([5, 7, 5], np.float32)
    return given(OVERWRITING, np.arange(4, dtype=np.float32), np.asfortranarray(indices), updates)


def test_a_module_is_read_without_its_inputs_and_gives_the_same() -> None:
    case = overwriting()
    (again,) = reread([case])
    assert not any(isinstance(ins.op, ops.Scatter) for ins in case.program.instructions)
    assert any(isinstance(ins.op, ops.Scatter) for ins in again.program.instructions)
    answer = judge(Pool().make("native:reread"), Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    (output,) = Pool().make("native:reread").run(case).outputs
    np.testing.assert_array_equal(output, [0, 5, 2, 7])


def test_what_depends_on_inputs_is_refused_and_the_reloaded_one_takes_the_program(pool: Pool) -> None:
    case = given(LOOP, np.array(0, np.int32), np.ones(2, np.float32))
    assert not rereadable(case)
    with pytest.raises(UnsupportedOp, match="how often it runs"):
        reread([case])
    assert judge(pool.make("native:reread"), Reference(case, NativeExecutor())).verdict is Verdict.UNSUPPORTED
    assert judge(pool.make("native-reloaded"), Reference(case, NativeExecutor())).verdict is Verdict.PASS


def test_of_a_case_without_a_module_the_program_is_run() -> None:
    case = overwriting().written
    assert not rereadable(case)
    executor = Pool().make("native:reread")
    assert executor.bit_exact(case)
    assert judge(executor, Reference(case, NativeExecutor())).verdict is Verdict.PASS


class Watching(NativeExecutor):
    """The native executor, which notes the cases that it is given, and may read `ADJOINT` as `TRANSPOSE`."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.wrong, self.seen = wrong, list[Case]()

    def run(self, case: Case) -> Execution:
        self.seen.append(case)
        a, b = case.inputs
        if self.wrong:
            return super().run(Case.of(case.program, [a.conj(), b]))
        return super().run(case)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_decomposition_between_arguments_and_results_is_judged_on_the_module_itself(wrong: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((2, 3, n)) + 1j * rng.standard_normal((2, 3, n)) for n in (3, 1))
    case = given(SOLVED, (a + 4 * np.eye(3)).astype(np.complex64, order="F"), b.astype(np.complex64, order="F"))
    executor = Watching(wrong)
    assert bool(judge_stages(executor, case).outside) is wrong
    assert all(seen.source is case.source for seen in executor.seen)
