"""JAX, the StableHLO interpreter and IREE as executors: they run, refuse, go missing and die as they should."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import MODELS
from oracle.judge import Reference, judge
from oracle.peers import OTHERS, NativeExecutor, Pool
from oracle.peers.engines.lax import JAX
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.cli import main
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import MissingDependency, ShapeMismatch, UnsupportedOp
from tenferro_ref.extensions.linalg import cholesky
from tenferro_ref.ops import OPS, STABLEHLO, Policy
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.program import GraphBuilder, dumps
from tenferro_ref.tensor import same_bits
from tests.build import hostile
from tests.libraries import executor_or_skip

pytestmark = pytest.mark.once

#: One of them compiles for a quarter of a second a module.
QUICK = tuple(name for name in OTHERS if name != "iree")


def mixed() -> Case:
    """Contraction, function, transposed and rank-0 outputs, a Bool between, and an output that is an input."""
    b = GraphBuilder()
    x, y = b.input("F64", (2, 3)), b.input("F64", (3, 4))
    product = b.apply(ops.Exp(), x @ y)
    chosen = b.apply(ops.Select(), x < 0.5, x, x * 2.0)
    program = b.build(product.T, product.sum(), chosen, x)
    rng = np.random.default_rng(0)
    return Case.of(program, [rng.standard_normal((2, 3)), rng.standard_normal((3, 4))])


def integer_quotient(policy: Policy) -> Case:
    b = GraphBuilder(policy=policy)
    x, y = b.input("I32", (3,)), b.input("I32", (3,))
    return Case.of(b.build(x / y), [np.array([7, -7, -(2**31)], np.int32), np.array([2, 2, -1], np.int32)])


@pytest.mark.parametrize("name", OTHERS)
def test_every_one_passes(pool: Pool, name: str) -> None:
    executor = executor_or_skip(pool, name)
    answer = judge(executor, Reference(mixed(), NativeExecutor()))
    assert answer.verdict is Verdict.PASS, answer.reason
    assert answer.executor == name
    assert answer.comparison.decided == answer.comparison.elements == 8 + 1 + 6 + 6
    assert answer.seconds["execute"] > 0
    assert executor.info().available
    assert executor.info().facts


@pytest.mark.parametrize("name", OTHERS)
def test_every_dtype_shape_and_bit_travels(pool: Pool, name: str) -> None:
    """Complex numbers go as two halves and Bool as I32 where the engine takes real numbers only."""
    executor = executor_or_skip(pool, name)
    b, arrays, outputs = GraphBuilder(), [], []
    for dtype in ENGINE_DTYPES:
        values = hostile(dtype, 60, np.random.default_rng(0))
        for array in (values, values[: len(values) // 2 * 2].reshape(2, -1, order="F"), values[-1], values[:0]):
            arrays.append(np.asfortranarray(array).reshape(array.shape, order="F"))
            outputs.append(b.apply(ops.Transpose(tuple(range(array.ndim))[::-1]), b.input(dtype, array.shape)))
    execution = executor.run(Case.of(b.build(*outputs), arrays))
    assert len(execution.outputs) == len(arrays)
    for array, got in zip(arrays, execution.outputs, strict=True):
        assert same_bits(got, array.T), (array.dtype, array.shape)


@pytest.mark.parametrize(("name", "kept"), [("interpreter", True), ("jax", False), ("jax-eager", False)])
def test_subnormals_are_why_the_models_differ(pool: Pool, name: str, kept: bool) -> None:
    executor = executor_or_skip(pool, name)
    b = GraphBuilder()
    case = Case.of(b.build(b.input("F64", (1,)) * 0.5), [np.array([3e-308])])
    (output,) = executor.run(case).outputs
    assert bool(output[0]) is kept
    assert judge(executor, Reference(case, NativeExecutor())).verdict is Verdict.PASS
    assert MODELS[executor.model].flush is not kept


def test_a_scatter_leaves_its_operand_alone(pool: Pool) -> None:
    """The interpreter (jaxlib 0.10.2) adds the updates into the operand itself, and so gets a copy of it."""
    b = GraphBuilder()
    x, updates = b.input("F64", (4,)), b.input("F64", (2,))
    doubled = x + x
    scattered = b.apply(ops.Scatter((), (0,), (0,), 1), doubled, b.input("I64", (2,)), updates)
    case = Case.of(b.build(scattered, doubled), [np.arange(4.0), np.array([10.0, 20.0]), np.array([1, 3])])
    outputs = executor_or_skip(pool, "interpreter").run(case).outputs
    assert [a.tolist() for a in outputs] == [[0, 12, 4, 26], [0, 2, 4, 6]]


class TestRefusals:
    @pytest.mark.parametrize("name", ["jax", "interpreter"])
    @pytest.mark.parametrize("dtype", [DType.F64, DType.BF16])
    def test_a_float_index_that_may_be_no_integer(self, pool: Pool, name: str, dtype: DType) -> None:
        b = GraphBuilder(policy=STABLEHLO)
        program = b.build(b.apply(ops.DynamicSlice((2,)), b.input("F64", (4,)), b.input(dtype, (1,))))
        case = Case.of(program, [np.arange(4.0), np.array([0.5], dtype.numpy)])
        with pytest.raises(UnsupportedOp, match="float index"):
            executor_or_skip(pool, name).run(case)

    @pytest.mark.parametrize("name", QUICK)
    def test_an_error_that_depends_on_values_cannot_be_said(self, pool: Pool, name: str) -> None:
        executor = executor_or_skip(pool, name)
        assert judge(executor, Reference(integer_quotient(Policy()), NativeExecutor())).verdict is Verdict.UNSUPPORTED
        case = integer_quotient(STABLEHLO)
        assert judge(executor, Reference(case, NativeExecutor())).verdict is Verdict.PASS
        assert executor.run(case).outputs[0].tolist() == [3, -3, -(2**31)]

    def test_the_interpreter_is_not_asked_what_it_aborts_on(self, pool: Pool) -> None:
        executor = executor_or_skip(pool, "interpreter")
        b = GraphBuilder()
        x, y = b.input("F64", (2, 0)), b.input("F64", (0, 3))
        case = Case.of(b.build(b.apply(ops.DotGeneral((1,), (0,), (), ()), x, y)), [np.zeros((2, 0)), np.zeros((0, 3))])
        with pytest.raises(UnsupportedOp, match="DotGeneral"):
            executor.run(case)

    def test_iree_has_no_double_precision_sine(self, pool: Pool) -> None:
        executor = executor_or_skip(pool, "iree")
        b = GraphBuilder()
        x, y = b.input("F64", (2,)), b.input("F32", (2,))
        program = b.build(b.apply(ops.Sin(), y), b.apply(ops.Sin(), x))
        with pytest.raises(UnsupportedOp, match="Sin"):
            executor.run(Case.of(program, [np.ones(2), np.ones(2, np.float32)]))

    def test_iree_has_no_double_precision_function_of_complex_numbers_and_no_decomposition(self, pool: Pool) -> None:
        executor = executor_or_skip(pool, "iree")
        for name, apply in (("Exp", lambda x: x.builder.apply(ops.Exp(), x)), ("Cholesky", cholesky)):
            b = GraphBuilder()
            x = b.input("C64", (1, 1))
            with pytest.raises(UnsupportedOp, match=name):
                executor.run(Case.of(b.build(apply(x)), [np.ones((1, 1), complex)]))

    @pytest.mark.parametrize("name", ["jax", "jax-eager"])
    def test_a_rule_that_breaks_at_concrete_shapes_is_the_native_error(self, pool: Pool, name: str) -> None:
        executor = executor_or_skip(pool, name)
        b = GraphBuilder()
        x, y = b.input("F64", ("m",)), b.input("F64", ("n",))
        case = Case.of(b.build(b.apply(ops.Add(), x, y)), [np.ones(2), np.ones(3)])
        with pytest.raises(ShapeMismatch):
            executor.run(case)
        assert judge(executor, Reference(case, NativeExecutor())).verdict is Verdict.PASS


def test_an_abort_is_a_crash_and_the_next_program_runs(pool: Pool) -> None:
    """Integer division by zero ends the interpreter's process."""
    executor = executor_or_skip(pool, "interpreter")
    b = GraphBuilder(policy=STABLEHLO)
    x = b.input("I64", (1,))
    by_zero = Case.of(b.build(b.apply(ops.Divide(), x, x)), [np.zeros(1, np.int64)])
    answer = judge(executor, Reference(by_zero, NativeExecutor()))
    assert answer.verdict is Verdict.CRASH, answer.reason
    assert "signal SIG" in answer.reason
    assert judge(executor, Reference(mixed(), NativeExecutor())).verdict is Verdict.PASS


class TestMissing:
    @pytest.mark.parametrize(
        ("name", "module", "extra"),
        [
            ("interpreter", "jaxlib", "jax"),
            ("jax", "jax", "jax"),
            ("jax-eager", "jax", "jax"),
            ("iree", "iree", "iree"),
        ],
    )
    def test_a_library_that_is_not_installed_names_its_extra(self, name: str, module: str, extra: str) -> None:
        pool = Pool(preload=f"tests.libraries:hide:{module}")
        try:
            with pytest.raises(MissingDependency, match=rf"^{module} is not installed: .*tenferro-ref\[{extra}\]"):
                pool.select([name])
        finally:
            pool.close()

    def test_all_lists_what_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("oracle.peers.registry.discover", lambda: ())
        pool = Pool(preload="tests.libraries:hide:jax")
        try:
            selection = pool.select(["all"], others=("jax",))
        finally:
            pool.close()
        assert [(i.name, i.available) for i in selection.missing] == [("jax", False), ("pjrt", False)]
        assert all(e.name.startswith("native") for e in selection.executors)

    def test_all_lists_plugins_for_other_platforms(self, monkeypatch: pytest.MonkeyPatch) -> None:
        there = PluginRef("mine", "/nowhere/mine.so", "directory", platform="npu")
        monkeypatch.setattr("oracle.peers.registry.discover", lambda: [there])
        pool = Pool()
        try:
            selection = pool.select(["all", "native"])
        finally:
            pool.close()
        reasons = {i.name: i.reason for i in selection.missing}
        assert reasons["pjrt:mine"] == "platform npu: name it to have it take part"
        assert "xla-cpu-pjrt" in reasons["pjrt"]  # there is none for the CPU

    def test_all_takes_what_it_is_told_to(self, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
        executor_or_skip(pool, "interpreter")
        monkeypatch.setattr("oracle.peers.registry.discover", lambda: ())
        assert "interpreter" not in [e.name for e in pool.select(["all"]).executors]
        assert "interpreter" in [e.name for e in pool.select(["all"], others=("interpreter",)).executors]


@pytest.mark.nightly
def test_check_lists_every_one_of_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("oracle.peers.registry.discover", lambda: ())
    file = tmp_path / "p.json"
    file.write_text(dumps(mixed().program))
    assert main(["check", str(file), "--executors", "all,external:no-such-engine", "--json"]) == 3
    assert "no-such-engine" in capsys.readouterr().err
    assert main(["check", str(file), "--seed", "1", "--json"]) == 0
    rows = {row["executor"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {"native", "pjrt", *OTHERS} <= set(rows)
    for name in OTHERS:
        assert rows[name]["verdict"] == ("pass" if rows[name]["reason"] == "" else "missing"), rows[name]
        assert rows[name]["seconds"] > 0 or "tenferro-ref[" in rows[name]["reason"]
    assert "xla-cpu-pjrt" in rows["pjrt"]["reason"]


def test_jit_and_eager_share_a_process(pool: Pool) -> None:
    jit, eager = executor_or_skip(pool, "jax"), executor_or_skip(pool, "jax-eager")
    assert jit.worker is eager.worker  # type: ignore[attr-defined]


def test_every_op_has_a_row_of_jax_or_a_reason() -> None:
    assert JAX.holes(OPS) == []
    assert [op for op in OPS if op not in JAX] == [ops.DynamicTruncate]
