"""Who makes a difference: options, passes of ours, passes of XLA, builds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuzz.findings.explain import explained
from fuzz.findings.suspect import inspect
from fuzz.findings.triage import to_finding
from oracle.attribution import UNCLEAR, attribute, builds, hlo_pass, hlo_passes
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, PjrtExecutor, Pool, configured
from oracle.peers.jax import JaxExecutor
from oracle.verdict import Answer, Build, Verdict, first_bad
from tenferro_ref import ops
from tenferro_ref.compiler import PASSES, PassResult
from tenferro_ref.dtype import DType
from tenferro_ref.errors import ShapeMismatch
from tenferro_ref.program import ExecProgram, GraphBuilder
from tests.libraries import executor_or_skip
from tests.plugins import CPU_PLUGINS, plugin_or_skip

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def pool(pool: Pool) -> Pool:
    plugin_or_skip("xla081")
    return pool


def log_of_exp() -> Case:
    b = GraphBuilder()
    return Case.of(b.build(b.apply(ops.Log(), b.apply(ops.Exp(), b.input("F64", ())))), [np.array(1024.0)])


def log1p() -> Case:
    b = GraphBuilder()
    return Case.of(b.build(b.apply(ops.Log1p(), b.input("F64", ()))), [np.array(-0.36889648)])


def power_of_a_constant() -> Case:
    b = GraphBuilder()
    power = b.apply(ops.Pow(), b.constant(2.0**-10, DType.F32), b.input("F32", (2,)))
    return Case.of(b.build(power), [np.full(2, 12.001375, np.float32)])


def root_of_the_smallest_normal() -> Case:
    b = GraphBuilder()
    return Case.of(b.build(b.apply(ops.Sqrt(), b.input("C64", ()))), [np.array(2.0**-1022 + 1.2526e-295j)])


def maximum_of_nan() -> Case:
    b = GraphBuilder()
    x, y = b.input("F64", ()), b.input("F64", ())
    return Case.of(b.build(b.apply(ops.Maximum(), x, y)), [np.array(1.0), np.array(np.nan)])


@pytest.mark.parametrize(
    ("make", "lane", "cause", "name"),
    [
        (log_of_exp, "parity", "rewrite: algsimp", "algsimp"),
        (power_of_a_constant, "parity", "fusion and optimisation level", "fusion"),
        (maximum_of_nan, "defaults", "option: xla_cpu_enable_fast_min_max", ""),
        (log1p, "parity", "every lane", ""),
        (root_of_the_smallest_normal, "fast", "only at xla_backend_optimization_level=0", "fusion"),
        (root_of_the_smallest_normal, "level0", "only at xla_backend_optimization_level=0", ""),
    ],
)
def test_xla(pool: Pool, make: Callable[[], Case], lane: str, cause: str, name: str) -> None:
    case, executor = make(), pool.pjrt(plugin_or_skip("xla081"), lane)
    assert attribute(executor, case, pool) == cause
    assert hlo_pass(executor, case) == name


@pytest.mark.parametrize(
    ("verdicts", "cause"),
    [
        ("mismatch mismatch mismatch", "every lane"),
        ("mismatch unsupported undecided", "every lane"),
        ("timeout mismatch mismatch", UNCLEAR),
        ("unsupported unsupported unsupported", UNCLEAR),
        ("unsupported pass mismatch", "xla_backend_optimization_level"),
        ("timeout crash pass", "fusion and optimisation level"),
    ],
)
def test_a_lane_that_does_not_run_a_program_says_nothing(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, verdicts: str, cause: str
) -> None:
    told = dict(zip(("no-algsimp", "level0", "fast"), map(Verdict, verdicts.split()), strict=True))
    monkeypatch.setattr("oracle.attribution.judge", lambda executor, _: Answer(executor.name, told[executor.lane]))
    assert attribute(pool.pjrt(plugin_or_skip("xla081"), "parity"), log1p(), pool) == cause


@pytest.mark.once  # Python 3.12 gets a jaxlib that has this rewrite no more
@pytest.mark.parametrize(("name", "cause"), [("jax", "rewrite: algsimp"), ("jax-eager", "")])
def test_jax_is_asked_without_the_simplifier_too(pool: Pool, name: str, cause: str) -> None:
    """Else one rewrite would be two findings. Op by op there is nothing to rewrite."""
    executor = executor_or_skip(pool, name)
    answer = judge(executor, Reference(log_of_exp(), NativeExecutor()))
    assert answer.verdict.is_disagreement == bool(cause), answer.reason
    assert attribute(executor, log_of_exp(), pool) == (cause or f"only {name}")
    assert isinstance(executor, JaxExecutor)
    assert hlo_pass(executor, log_of_exp()) == cause.removeprefix("rewrite: ")


def test_passes_are_those_that_changed_the_module(pool: Pool) -> None:
    plugin = plugin_or_skip("xla081")
    assert "algsimp" in hlo_passes(pool.pjrt(plugin, "parity"), log_of_exp())
    assert "algsimp" not in hlo_passes(pool.pjrt(plugin, "no-algsimp"), log_of_exp())


def test_builds_are_asked_oldest_first(pool: Pool) -> None:
    for name in CPU_PLUGINS:
        plugin_or_skip(name)
    asked = builds(pool.pjrt(plugin_or_skip("lam115"), "parity"), log1p(), pool)
    assert [(build.name, build.verdict) for build in asked if build.name in CPU_PLUGINS] == [
        ("xla081", Verdict.MISMATCH), ("fas106", Verdict.MISMATCH), ("lam115", Verdict.PASS)
    ]  # fmt: skip
    assert first_bad(asked).startswith("xla081 (PJRT API 0.81), the oldest")


def test_builds_that_are_not_asked_are_said(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_library: Path
) -> None:
    known = plugin_or_skip("xla081")
    gone = replace(known, name="gone", path=str(tmp_path / "no.so"))
    monkeypatch.setattr("oracle.attribution.discover", lambda: [known, gone])
    monkeypatch.setattr(
        "oracle.attribution.missing", lambda platform: [replace(known, name="other", package="a-package")]
    )
    asked = builds(pool.pjrt(known, "parity"), log1p(), pool)
    assert [(build.name, build.verdict) for build in asked] == [
        ("xla081", Verdict.MISMATCH),
        ("gone", None),
        ("other", None),
    ]
    assert "no.so" in asked[1].reason
    assert str(asked[2]) == "other (absent: pip install a-package)"
    late = builds(pool.pjrt(known, "parity"), log1p(), pool, seconds=0)
    assert [str(build) for build in late[:2]] == ["xla081 (not asked: out of time)", "gone (not asked: out of time)"]
    assert first_bad(late) == ""
    # a plugin of nobody knows what platform is compared with itself alone
    monkeypatch.undo()
    stray = pool.make(f"pjrt:{fake_library}")
    assert isinstance(stray, PjrtExecutor)
    (alone,) = builds(stray, log1p(), pool)
    assert first_bad([alone]) == f"{alone.name} (PJRT API {alone.api}), the only one asked"


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ("pass mismatch mismatch", "b1 (PJRT API 0.1), not yet in b0"),
        ("mismatch pass crash", "b0 (PJRT API 0.0), the oldest asked"),
        ("unsupported pass crash", "b2 (PJRT API 0.2), not yet in b1"),
        ("pass undecided", ""),
        ("", ""),
    ],
)
def test_the_first_bad_build(verdicts: str, words: str) -> None:
    asked = [Build(f"b{i}", f"0.{i}", Verdict(v)) for i, v in enumerate(verdicts.split())]
    assert first_bad([*asked, Build("b9", reason="absent")]) == words


def _negated_beside_dead_code() -> Case:
    b = GraphBuilder()
    x = b.input("F64", ())
    b.apply(ops.Exp(), x)
    return Case.of(b.build(-x), [np.array(2.0)])


@pytest.mark.parametrize(
    ("passes", "cause"),
    [
        (("DotDecomposer", "DeadCodeElimination", "TransposeFolding", "DotDecomposer"), "our pass: DotDecomposer"),
        (("DeadCodeElimination", "DotDecomposer", "DotDecomposer"), "our pass: DotDecomposer"),
        ((), "our pass: TransposeFolding"),
    ],
)
def test_a_pass_of_a_drawn_configuration(
    monkeypatch: pytest.MonkeyPatch, passes: tuple[str, ...], cause: str, pool: Pool
) -> None:
    """In whatever order and however often passes run. The sound one that leads up to it is not blamed."""

    def absolute(program: ExecProgram) -> PassResult:
        bad = (replace(ins, op=ops.Abs()) if isinstance(ins.op, ops.Negate) else ins for ins in program.instructions)
        return PassResult(replace(program, instructions=tuple(bad)))

    def absolute_without_dead_code(program: ExecProgram) -> PassResult:
        return absolute(program) if len(program.instructions) == 1 else PassResult(program)

    case, executor = _negated_beside_dead_code(), configured(passes=passes, segmented=False)
    if passes:  # the default pipeline decomposes first, and is right
        monkeypatch.setitem(PASSES, "DotDecomposer", absolute_without_dead_code)
    else:  # right itself, and compared with a default pipeline that is not
        monkeypatch.setitem(PASSES, "TransposeFolding", absolute)
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict is Verdict.MISMATCH
    assert attribute(executor, case, pool) == cause


@pytest.mark.parametrize("error", [ShapeMismatch(op="Add", lhs=(1,), rhs=(2,)), IndexError("tuple index out of range")])
def test_a_pass_that_fails_is_blamed_and_shown(monkeypatch: pytest.MonkeyPatch, error: Exception, pool: Pool) -> None:
    """With the default pipeline or another one; it ends neither attribution nor explanation."""

    def failing(program: ExecProgram) -> PassResult:
        raise error

    monkeypatch.setitem(PASSES, "TransposeFolding", failing)
    case = _negated_beside_dead_code()
    for executor in (NativeExecutor(), configured(passes=("DotDimensionSorter", "TransposeFolding"), segmented=False)):
        answer = judge(executor, Reference(case, NativeExecutor()))
        assert answer.verdict is Verdict.ERROR
        assert str(error) in answer.reason
        assert attribute(executor, case, pool) == "our pass: TransposeFolding"
        finding, small = to_finding(inspect(executor, case, answer, pool), pool, (), programs=1, also=())
        last = explained(finding, executor, small).explanation.snapshots[-1]
        assert last.name == "TransposeFolding fails"
        assert str(error) in last.changes[0]
    sound = configured(passes=("DotDimensionSorter",), segmented=False)  # what it is compared with fails
    assert not sound.bit_exact(case)
