"""HLO opcodes after optimisation: asked for while the module is there, counted once, merged, read back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from fuzz.campaign.programs import cases_of
from fuzz.campaign.recorded import recorded, surveys
from fuzz.campaign.tally import Tally
from fuzz.campaign.work import begin, work
from fuzz.campaign.worksite import Worksite
from fuzz.generate import DEFAULT, Config
from fuzz.generate.anchors import anchors
from fuzz.generate.batches import generate
from fuzz.generate.describe import describe
from fuzz.generate.settings import config_of
from fuzz.records import Campaign, Survey
from fuzz.store import Plan, Store
from fuzz.store.merge import merge
from oracle.case import Case
from oracle.peers import NativeExecutor, PjrtExecutor, Pool, Selection
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import PjrtCall, UsageError, WorkerDied
from tenferro_ref.program import GraphBuilder
from tests.plugins import plugin_or_skip
from tools.opcodes import Rare, Seen, main, rarest, to_words

pytestmark = pytest.mark.once


#: Of a seed whose first two programs leave many opcodes between them.
PLAN = Plan(seed=1, programs=6, batch=2, max_findings=0)


@pytest.fixture(scope="module")
def parity(pool: Pool) -> PjrtExecutor:
    return pool.pjrt(plugin_or_skip("xla081"), "parity")


@pytest.fixture(scope="module")
def fast(pool: Pool) -> PjrtExecutor:
    return pool.pjrt(plugin_or_skip("xla081"), "fast")


def run(path: Path, plan: Plan, pool: Pool, *executors: PjrtExecutor) -> Campaign:
    with Store(path, create=True) as store:
        selection = Selection((NativeExecutor(), *executors), ())
        stream = begin(store, plan, selection)
        work(Worksite(store, stream, selection.executors, pool), alone=True)
        return recorded(store, [stream])


@pytest.mark.nightly
def test_a_campaign_counts_modules_while_they_are_there(
    pool: Pool, parity: PjrtExecutor, fast: PjrtExecutor, tmp_path: Path
) -> None:
    campaign = run(tmp_path / "one", PLAN, pool, parity, fast)
    alone, large = campaign.surveys
    batches = [cases_of(PLAN, number) for number in range(3)]
    tally = Tally()
    for cases in batches:
        tally.add_opcodes(parity.name, parity.opcodes(cases))
    assert (alone,) == surveys(tally, [parity.name])
    assert alone.modules == 3
    # large modules are asked for in the first of four batches
    assert large == Survey(fast.name, 1, dict.fromkeys(fast.opcodes(batches[0]), 1))
    assert len(large.opcodes) > 10


def test_of_eight_programs_the_first_module_is_asked_for(pool: Pool, parity: PjrtExecutor, tmp_path: Path) -> None:
    plan = replace(PLAN, programs=10, batch=10)
    (survey,) = run(tmp_path / "eight", plan, pool, parity).surveys
    cases, tally = cases_of(plan, 0), Tally()
    for number in (0, 8):
        tally.add_opcodes(parity.name, parity.opcodes(cases[number : number + 4]))
    assert (survey,) == surveys(tally, [parity.name])
    assert survey.modules == 2


def test_shards_merge_and_counts_add(pool: Pool, parity: PjrtExecutor, tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", PLAN, pool, parity)
    for shard in (0, 1):
        run(tmp_path / f"{shard}", replace(PLAN, shard=shard, shards=2), pool, parity)
    with Store(tmp_path / "0") as store:
        merge(store, tmp_path / "1")
        assert recorded(store, store.shards()).surveys == whole.surveys


def test_what_is_not_told_is_not_counted(parity: PjrtExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    b = GraphBuilder()
    program = b.build(b.apply(ops.DynamicTruncate(0), b.input("F64", (3,)), b.input("F64", ())))
    assert parity.opcodes([Case(program, (np.zeros(3), np.array(2.0)))]) == []  # nothing that StableHLO has
    cases = generate(PLAN.seed, 0, 1)
    assert parity.opcodes(cases)
    for error in (PjrtCall("PJRT_Executable_OptimizedProgram", "", "none"), WorkerDied("x", "aborted", "")):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(parity.worker, "request", fail)
        assert parity.opcodes(cases) == []
    tally = Tally()
    tally.add_opcodes("x", [])
    assert surveys(tally, ["x"]) == ()


#: What xla081 leaves after optimisation in the lane `parity`, whatever the element type.
USUAL = {
    "abs", "add", "and", "atan2", "bitcast", "broadcast", "clamp", "compare", "complex", "concatenate", "constant", "convert",
    "copy", "cosine", "divide", "dot", "dynamic-slice", "dynamic-update-slice", "exponential", "exponential-minus-one", "fft",
    "fusion", "gather", "imag", "iota", "log", "log-plus-one", "maximum", "minimum", "multiply", "negate", "or", "pad",
    "parameter", "power", "real", "reduce", "reduce-window", "reverse", "rsqrt", "scatter", "select", "sign", "sine", "slice",
    "sqrt", "subtract", "tanh", "transpose", "tuple",
}  # fmt: skip
#: What it leaves of decompositions only.
LOOPS = {"while", "get-tuple-element"}


def opcodes_of(executor: PjrtExecutor, cases: list[Case], together: int) -> set[str]:
    """What is left of all cases, `together` in a module for the time that it takes."""
    with mock.patch.object(PjrtExecutor, "programs_a_module", together):
        return {words for i in range(0, len(cases), together) for words in executor.opcodes(cases[i : i + together])}


@pytest.mark.nightly
def test_every_opcode_is_reached_within_128_programs(pool: Pool) -> None:
    executor = pool.pjrt(plugin_or_skip("xla081"), "parity")
    found = opcodes_of(executor, [case for batch in range(4) for case in generate(3, batch, 32)], 16)
    assert not USUAL - {words.split(" ")[0] for words in found}
    assert len(found) > 150  # with their element types


def test_loops_are_reached_within_64_programs_with_decompositions(pool: Pool) -> None:
    executor = pool.pjrt(plugin_or_skip("xla081"), "parity")
    found = opcodes_of(executor, generate(4, 0, 64, replace(DEFAULT, linalg=100)), 64)
    assert not LOOPS - {words.split(" ")[0] for words in found}


# --- what gives the rare ones ------------------------------------------------------------------------------------------


def test_a_class_is_named_for_the_rarest_opcode_that_comes_with_it() -> None:
    usual = [Seen(frozenset({"op: Add F32", "rank: 1"}), frozenset({"add f32", "copy f32"}))] * 96
    sums = [Seen(frozenset({"op: Add Bool", "rank: 1"}), frozenset({"or pred", "copy f32"}))] * 2
    loops = [
        Seen(frozenset({"extension: Cholesky", "op: Add F32", "rank: 1"}), frozenset({"while tuple", "add f32"}))
    ] * 2
    rare = rarest(usual + sums + loops, 3)
    assert rare == [Rare("extension: Cholesky", "while tuple", 2), Rare("op: Add Bool", "or pred", 2)]
    assert to_words(rare) == "rare=Add:Bool"
    assert rarest(usual + sums + loops, 1) == []
    assert to_words([]) == ""


def test_rare_pairs_are_more_frequent_and_the_rest_still_occurs() -> None:
    config = config_of(["rare=Reverse:I32,Scatter:I64"])
    assert config.rare == ((ops.Reverse, DType.I32), (ops.Scatter, DType.I64))
    plain, more = anchors(DEFAULT), anchors(config)
    assert Counter(plain) == Counter(set(more))
    assert len(more) == len(plain) + -(-len(plain) // 4)

    def count(config: Config) -> int:
        wanted = {"op: Reverse I32", "op: Scatter I64"}
        return sum(
            not wanted.isdisjoint(describe(case)) for batch in range(8) for case in generate(1, batch, 32, config)
        )

    assert count(config) > 2 * count(DEFAULT) > 0


@pytest.mark.parametrize("word", ["rare=", "rare=Reverse", "rare=Reverse:F17", "rare=Nobody:I32", "rare=Reverse:I32,"])
def test_rare_words_that_are_none(word: str) -> None:
    with pytest.raises(UsageError, match="pairs like Reverse:I32"):
        config_of([word])


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    plugin_or_skip("xla081")
    assert main(["--programs", "4", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert " opcodes with element types in 4 programs\n" in out
    assert out.splitlines()[-1] == "nothing is rare"  # in four programs
    assert main(["--executor", "native", "--programs", "4"]) == 2
    assert "native does not tell" in capsys.readouterr().err
