"""Who makes a difference: options, passes of ours, passes of XLA, builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from fuzz.generate import generate
from fuzz.mutants import find
from fuzz.strategies import Config
from oracle.attribution import attribute, builds, hlo_pass, hlo_passes
from oracle.case import Case
from oracle.executors import NativeExecutor, Pool
from oracle.judge import Reference, judge
from oracle.verdict import Verdict
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Divide, DotGeneral, Exp, Log, Log1p, Maximum, Transpose
from tenferro_ref.program import GraphBuilder
from tests.plugins import CPU_PLUGINS, plugin_or_skip


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    plugin_or_skip("xla081")
    pool = Pool()
    yield pool
    pool.close()


def log_of_exp() -> Case:
    b = GraphBuilder()
    return Case.of(b.build(b.apply(Log(), b.apply(Exp(), b.input("F64", ())))), [np.array(1024.0)])


def log1p() -> Case:
    b = GraphBuilder()
    return Case.of(b.build(b.apply(Log1p(), b.input("F64", ()))), [np.array(-0.36889648)])


def exp_of_nan() -> Case:
    b = GraphBuilder()
    x = b.input("F32", (3,))
    quotient = b.apply(Divide(), x, b.constant(np.nan, DType.F32))
    return Case.of(b.build(b.apply(Exp(), quotient)), [np.ones(3, np.float32)])


def maximum_of_nan() -> Case:
    b = GraphBuilder()
    x, y = b.input("F64", ()), b.input("F64", ())
    return Case.of(b.build(b.apply(Maximum(), x, y)), [np.array(1.0), np.array(np.nan)])


@pytest.mark.parametrize(
    ("make", "lane", "cause", "name"),
    [
        (log_of_exp, "parity", "rewrite: algsimp", "algsimp"),
        (exp_of_nan, "parity", "fusion and optimisation level", "fusion"),
        (maximum_of_nan, "defaults", "option: xla_cpu_enable_fast_min_max", ""),
        (log1p, "parity", "every lane", ""),
    ],
)
def test_xla(pool: Pool, make: Callable[[], Case], lane: str, cause: str, name: str) -> None:
    case, executor = make(), pool.pjrt(plugin_or_skip("xla081"), lane)
    assert attribute(executor, case, pool) == cause
    assert hlo_pass(executor, case) == name


def test_passes_are_those_that_changed_the_module(pool: Pool) -> None:
    plugin = plugin_or_skip("xla081")
    assert "algsimp" in hlo_passes(pool.pjrt(plugin, "parity"), log_of_exp())
    assert "algsimp" not in hlo_passes(pool.pjrt(plugin, "no-algsimp"), log_of_exp())


def test_builds_are_asked_oldest_first(pool: Pool) -> None:
    for name in CPU_PLUGINS:
        plugin_or_skip(name)
    asked = builds(pool.pjrt(plugin_or_skip("lam115"), "parity"), log1p(), pool)
    assert [entry for entry in asked if entry[0] in CPU_PLUGINS] == [
        ("xla081", Verdict.MISMATCH.value), ("fas106", Verdict.MISMATCH.value), ("lam115", Verdict.PASS.value)
    ]  # fmt: skip


def test_a_pass_of_ours() -> None:
    mutant, right, pool = find("folding-inverse-perm"), NativeExecutor(), Pool()
    with mutant.patch():
        guilty = next(
            case
            for batch in range(40)
            for case in generate(3, batch, config=Config(ops=(Transpose, DotGeneral)))
            if judge(right, Reference(case, right)).verdict is Verdict.MISMATCH
        )
        assert attribute(right, guilty, pool) == "our pass: TransposeFolding"
    assert judge(right, Reference(guilty, right)).verdict is Verdict.PASS
