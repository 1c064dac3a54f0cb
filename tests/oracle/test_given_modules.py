"""Modules that executors are given unchanged: every client runs the very module, and says in its words what it lacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import XLA, enclose
from oracle.judge import Reference, judge
from oracle.peers import Execution, Executor, NativeExecutor, Pool, attempt_source
from oracle.peers.errors import EngineFault
from oracle.peers.given import lacking
from oracle.verdict import Verdict
from tenferro_ref.errors import UnsupportedOp, WorkerDied
from tenferro_ref.stablehlo import Source
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

module_or_skip("jax")
module_or_skip("iree.compiler")

EXECUTORS = ("pjrt:xla081", "pjrt:lam115", "jax", "interpreter", "iree")

SEVERAL = """module @of_some_name {
  func.func private @double(%a: tensor<1x3xf32>) -> tensor<1x3xf32> {
    %0 = stablehlo.add %a, %a : tensor<1x3xf32>
    return %0 : tensor<1x3xf32>
  }
  func.func public @main(%a: tensor<1x3xf32>, %b: tensor<2xcomplex<f32>>, %c: tensor<2xi1>, %d: tensor<3xui8>, %e: tensor<2xbf16>)
      -> (tensor<1x3xf32>, tensor<2xcomplex<f32>>, tensor<2xi1>, tensor<3xui8>, tensor<2xbf16>, tensor<1xi1>) {
    %k = stablehlo.constant dense<[[0.5, 2.0, 4.0]]> : tensor<1x3xf32>
    %0 = func.call @double(%a) : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %1 = stablehlo.multiply %0, %k : tensor<1x3xf32>
    %2 = stablehlo.add %b, %b : tensor<2xcomplex<f32>>
    %3 = stablehlo.not %c : tensor<2xi1>
    %4 = stablehlo.add %d, %d : tensor<3xui8>
    %5 = stablehlo.add %e, %e : tensor<2xbf16>
    %6 = stablehlo.slice %3 [0:1] : (tensor<2xi1>) -> tensor<1xi1>
    return %1, %2, %3, %4, %5, %6 : tensor<1x3xf32>, tensor<2xcomplex<f32>>, tensor<2xi1>, tensor<3xui8>, tensor<2xbf16>, tensor<1xi1>
  }
}
"""


@pytest.fixture(scope="module")
def pool(pool: Pool) -> Pool:
    plugin_or_skip("xla081")
    plugin_or_skip("lam115")
    return pool


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest, pool: Pool) -> Executor:
    return pool.make(request.param)


def test_each_client_takes_and_gives_all_these_types(executor: Executor, pool: Pool) -> None:
    source = pool.reader.source(SEVERAL, "several")
    assert source.code == SEVERAL
    inputs = [
        np.array([[1, 2, 3]], np.float32), np.array([1 + 2j, -3j], np.complex64), np.array([True, False]),
        np.array([1, 255, 3], np.uint8), np.array([1.5, 2], source.arguments[4].dtype.numpy),
    ]  # fmt: skip
    result = attempt_source(executor, source, inputs)
    assert isinstance(result, Execution), result
    values = [a.astype(complex).tolist() for a in result.outputs]
    assert values == [[[1, 8, 24]], [2 + 4j, -6j], [0, 1], [2, 254, 6], [3, 4], [0]]
    assert [a.dtype for a in result.outputs] == [t.dtype.numpy for t in source.results]


TUPLE = """func.func @pair(%a: tensor<2xf32>) -> tuple<tensor<2xf32>, tensor<2xi32>> {
  %0 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xi32>
  %1 = stablehlo.tuple %a, %0 : tuple<tensor<2xf32>, tensor<2xi32>>
  return %1 : tuple<tensor<2xf32>, tensor<2xi32>>
}
"""


@pytest.mark.parametrize("name", ["pjrt:xla081", "pjrt:lam115", "interpreter"])
def test_a_tuple_from_a_function_of_another_name_is_several_results(name: str, pool: Pool) -> None:
    source = pool.reader.source(TUPLE, "pair")
    result = pool.make(name).run_source(source, [np.array([1.5, -2], np.float32)])
    assert [a.tolist() for a in result.outputs] == [[1.5, -2], [1, -2]]


def test_the_interpreter_hands_over_results_of_four_bits(pool: Pool) -> None:
    # a bitcast of such numbers to eight bits ended the interpreter's process
    text = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf4E2M1FN> {
      %0 = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xf4E2M1FN> return %0 : tensor<2xf4E2M1FN> }"""
    result = pool.make("interpreter").run_source(pool.reader.source(text, "four"), [np.array([1.5, -6], np.float32)])
    assert [a.astype(np.float32).tolist() for a in result.outputs] == [[1.5, -6]]


def module(body: str) -> str:
    return f"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{ {body} return %0 : tensor<2xf32> }}"


def test_what_a_client_lacks_is_unsupported_in_its_words(executor: Executor, pool: Pool) -> None:
    source = pool.reader.source(
        module("%0 = stablehlo.custom_call @nobody_has_it(%a) : (tensor<2xf32>) -> tensor<2xf32>"), "m"
    )
    result = attempt_source(executor, source, [np.ones(2, np.float32)])
    assert isinstance(result, UnsupportedOp)
    assert "custom" in str(result)


def test_a_module_that_does_not_link_is_a_fault_of_its_compiler(pool: Pool) -> None:
    """Finding 0211: IREE compiles the operations and does not find what they call."""
    softmax = """func.func @main(%x: tensor<1x3xf16>) -> tensor<1x3xf16> {
      %least = stablehlo.constant dense<0xFC00> : tensor<f16>
      %zero = stablehlo.constant dense<0.0> : tensor<f16>
      %0 = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<1x3xf16>, tensor<f16>) -> tensor<1xf16>
      %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<1xf16>) -> tensor<1x3xf16>
      %2 = stablehlo.subtract %x, %1 : tensor<1x3xf16>
      %3 = stablehlo.exponential %2 : tensor<1x3xf16>
      %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x3xf16>, tensor<f16>) -> tensor<1xf16>
      %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<1xf16>) -> tensor<1x3xf16>
      %6 = stablehlo.divide %3, %5 : tensor<1x3xf16>
      return %6 : tensor<1x3xf16>
    }"""
    result = attempt_source(pool.make("iree"), pool.reader.source(softmax, "m"), [np.array([[1, 2, 3]], np.float16)])
    assert isinstance(result, EngineFault)
    assert "undefined symbol" in str(result)


def test_a_portable_artifact_is_tried_where_the_text_is_not_known(pool: Pool) -> None:
    executor = pool.make("pjrt:xla081")
    source = pool.reader.source(module("%0 = stablehlo.add %a, %a : tensor<2xf32>"), "m")
    unknown = replace(source, code=source.code.replace("stablehlo.add", "stablehlo.not_yet"))  # type: ignore[union-attr]

    # as if this plugin's parser was older than the module
    class Older:
        def serialized(self, given: Source, form: str) -> bytes:
            assert given is unknown
            assert form == "portable=1.13.3"
            return pool.reader.serialized(source, form)

    older = replace(executor, reader=Older())  # type: ignore[type-var]
    assert older.run_source(unknown, [np.ones(2, np.float32)]).outputs[0].tolist() == [2, 2]
    with pytest.raises(UnsupportedOp, match=r"custom op 'stablehlo.not_yet' is unknown"):
        executor.run_source(unknown, [np.ones(2, np.float32)])


@pytest.mark.parametrize("form", ["bytecode", "portable"])
def test_bytes_are_run_as_they_are(form: str, pool: Pool) -> None:
    text = pool.reader.source(module("%0 = stablehlo.add %a, %a : tensor<2xf32>"), "m")
    source = pool.reader.source(pool.reader.serialized(text, form), "m")
    assert isinstance(source.code, bytes)
    for name in ("pjrt:xla081", "jax", "interpreter"):
        assert pool.make(name).run_source(source, [np.ones(2, np.float32)]).outputs[0].tolist() == [2, 2]


def test_arrays_of_the_module_are_constants_to_the_enclosure(pool: Pool) -> None:
    """XLA divides by constants through their reciprocals, which is no rounding of IEEE arithmetic."""
    text = module(
        "%k = stablehlo.constant dense<[3.0, 7.0]> : tensor<2xf32> %0 = stablehlo.divide %a, %k : tensor<2xf32>"
    )
    source = pool.reader.source(text, "m")
    loaded = pool.reader.load(source.code, "m")
    executor, found = pool.make("pjrt:lam115"), 0
    for value in (5.0, 11.0, 13.0, 17.0, 19.0):
        case = Case.of(loaded.program, loaded.inputs([np.full(2, value, np.float32)]), source=source)
        answer = judge(executor, Reference(case, NativeExecutor()))
        assert answer.verdict is Verdict.PASS, answer.reason
        found += answer.comparison.forgiven
    assert found


TOTAL = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}
"""


def test_total_order_is_kept_by_the_interpreter_too(executor: Executor, pool: Pool) -> None:
    a = np.array([-0.0, np.inf, np.nan, -1], np.float32)
    b = np.array([0.0, np.nan, np.inf, -2], np.float32)
    result = attempt_source(executor, pool.reader.source(TOTAL, "m"), [a, b])
    assert isinstance(result, Execution), result
    expected = [True, True, False, False]
    assert result.outputs[0].tolist() == expected


#: A number as JAX compares it when it sorts: zeros alike, and each NaN a constant. It asks the number, not what zeros became, whether it is NaN.
KEYS = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xi1> {{
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %nan = stablehlo.constant dense<{nan}> : tensor<4xf32>
  %0 = stablehlo.compare EQ, %a, %zero, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = stablehlo.select %0, %zero, %a : tensor<4xi1>, tensor<4xf32>
  %2 = stablehlo.compare {direction}, {asked}, {asked}, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = stablehlo.select %2, %nan, %1 : tensor<4xi1>, tensor<4xf32>
  %4 = stablehlo.compare LT, %3, %b, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %4 : tensor<4xi1>
}}"""


@pytest.mark.parametrize(
    ("nan", "asked", "direction", "decided"),
    [
        ("0x7FC00000", "%a", "NE", True),
        ("0x7FC00000", "%1", "NE", True),
        ("0xFFC00000", "%a", "NE", False),
        ("0x7FC00000", "%b", "NE", False),
        ("0x7FC00000", "%a", "EQ", False),
    ],
)
def test_a_nan_that_the_module_put_in_its_place_has_a_known_sign(
    nan: str, asked: str, direction: str, decided: bool, pool: Pool
) -> None:
    text = KEYS.format(nan=nan, asked=asked, direction=direction)
    loaded = pool.reader.load(pool.reader.source(text, "m").code, "m")
    a, b = np.array([np.nan, 1, 0, -0.0], np.float32), np.ones(4, np.float32)
    (less,) = enclose(loaded.program, loaded.inputs([a, b]), XLA)
    assert bool((less.lo == less.hi).all()) is decided


def test_equal_elements_change_places_no_oftener_than_the_comparison_asks(pool: Pool) -> None:
    """A comparison that holds of equal elements orders nothing; what comes of it is still a permutation."""
    text = """func.func @main(%a: tensor<5xi32>) -> tensor<5xi32> {
      %0 = "stablehlo.sort"(%a) ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>):
        %p = stablehlo.compare LE, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }) {dimension = 0 : i64, is_stable = false} : (tensor<5xi32>) -> tensor<5xi32>
      return %0 : tensor<5xi32>
    }"""
    loaded = pool.reader.load(pool.reader.source(text, "m").code, "m")
    (of,) = enclose(loaded.program, loaded.inputs([np.array([3, 1, 1, 2, 1], np.int32)]), XLA)
    assert of.lo.tolist() == of.hi.tolist() == [1, 1, 1, 2, 3]


INFEED = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  return %0#0 : tensor<2xf32>
}"""


def test_what_waits_for_a_host_is_refused_before_it_runs(executor: Executor, pool: Pool) -> None:
    with pytest.raises(UnsupportedOp, match="infeed: not supported here: it waits for a host"):
        executor.run_source(pool.reader.source(INFEED, "m"), [np.ones(2, np.float32)])


TWO_SCATTERED = """func.func @main(%x: tensor<2xi32>, %at: tensor<1x1xi32>, %u: tensor<1xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
  %0:2 = "stablehlo.scatter"(%x, %x, %at, %u, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    stablehlo.return %c, %d : tensor<i32>, tensor<i32>
  }) : (tensor<2xi32>, tensor<2xi32>, tensor<1x1xi32>, tensor<1xi32>, tensor<1xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  return %x, %0#1 : tensor<2xi32>, tensor<2xi32>
}"""


def test_a_scatter_onto_several_arrays_leaves_all_of_them_alone_in_the_interpreter(pool: Pool) -> None:
    """The interpreter writes into each operand; as it is written the first result would have the update."""
    source = pool.reader.source(TWO_SCATTERED, "a module")
    arguments = (np.array([5, 6], np.int32), np.array([[1]], np.int32), np.array([9], np.int32))
    done = attempt_source(pool.make("interpreter"), source, arguments)
    assert isinstance(done, Execution)
    assert [x.tolist() for x in done.outputs] == [[5, 6], [5, 9]]


def test_memory_of_a_donated_argument_may_be_reused(pool: Pool) -> None:
    text = (
        "func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {"
        " %0 = stablehlo.add %a, %a : tensor<4xf32> return %0 : tensor<4xf32> }"
    )
    source = pool.reader.source(text, "m")
    for name in ("pjrt:xla081", "pjrt:lam115", "jax"):
        for _ in range(2):
            result = pool.make(name).run_source(source, [np.arange(4, dtype=np.float32)])
            assert result.outputs[0].tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported op: %2 = stablehlo.real_dynamic_slice ",
        "Unsupported element type: ui6",
        "dynamic result types are not supported at the moment",
        "out of memory: ",
    ],
)
def test_a_process_that_ends_for_lack_of_an_operation_lacks_it_however_long_its_words(words: str) -> None:
    """The error shows the end of the last line alone; what says why is at its beginning."""
    error = WorkerDied(worker="interpreter", how="signal SIGABRT", stderr_tail=f"LLVM ERROR: {words}{'x' * 300}\n")
    assert isinstance(lacking(error), UnsupportedOp) is not words.startswith("out of memory")
