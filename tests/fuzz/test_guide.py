"""Guided campaigns: what has paid is drawn more often, each batch has one compiler, and any order of work comes to the same programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.campaign.audit import audit
from fuzz.campaign.guide import MIXES, ROUND, USUAL, Draw, draw_of, is_open, mixed
from fuzz.campaign.tally import Tally
from fuzz.generate import CAMPAIGN
from fuzz.generate.batches import decode_number, generate
from fuzz.generate.settings import config_of
from fuzz.store import Batch, Disagreement, Plan, Store, Stream
from oracle.verdict import ExecutorInfo, Verdict
from tests.e2e.command import tenferro_ref
from tests.fuzz.stores import answer

(CASE,) = generate(1, 0, 1)
PLAN = Plan(seed=3, programs=30 * ROUND, batch=1, generate=("guided=1",))
CHEAP, DEAR, OTHER = "pjrt:a@fast", "pjrt:a@parity", "pjrt:b@parity"
ALL = ("native", CHEAP, "interpreter", DEAR, OTHER)
#: What shows a disagreement of a kind of its own in each batch.
Pays = Callable[[Draw], str]


def _begin(store: Store) -> Stream:
    return store.begin(PLAN, [ExecutorInfo(name, True) for name in ALL], (), "2026-11-23T00:00:00+00:00")


def _seal(store: Store, job: Batch, draw: Draw, pays: Pays) -> None:
    name = pays(draw)
    tally, wrong = Tally(), answer(name, Verdict.MISMATCH)
    shown = [Disagreement(0, CASE, wrong, f"kin {job.number}", f"Add({job.number})", "F32", "native")] if name else []
    for executor in draw.executors:
        tally.add_answer(CASE, wrong if executor == name else answer(executor))
    store.put_programs(job, [CASE])
    store.seal(job, "w", [CASE], tally, shown)


def _draws(at_once: int, pays: Pays) -> list[Draw]:
    """The draws of a campaign whose workers hold so many batches, and seal the last one first."""
    with Store() as store:
        stream, drawn = _begin(store), dict[int, Draw]()
        held: list[Batch] = []
        while True:
            job = store.claim(stream.id, "w")
            while held and (job is None or len(held) == at_once or not is_open(store, stream, job.number)):
                done = held.pop()
                _seal(store, done, drawn[done.number], pays)
            if job is None:
                assert audit(store) == []
                return [drawn[number] for number in sorted(drawn)]
            assert is_open(store, stream, job.number)
            drawn[job.number] = draw_of(store, stream, job.number)
            held.append(job)


def _sums(draw: Draw) -> str:
    return "native" if draw.mix == "sums" else ""


def _nothing(draw: Draw) -> str:
    return ""


def _dear(draw: Draw) -> str:
    return DEAR if DEAR in draw.executors else ""


def _compilers(draws: list[Draw]) -> Counter[str]:
    assert all(tuple(n for n in d.executors if "pjrt" not in n) == ("native", "interpreter") for d in draws)
    assert {len(d.executors) for d in draws} == {3}
    return Counter(name for d in draws for name in d.executors if "pjrt" in name)


def test_each_batch_has_one_compiler_the_cheapest_most_often() -> None:
    counts = _compilers(_draws(1, _nothing))
    assert counts[CHEAP] > 1.5 * max(counts[DEAR], counts[OTHER])
    assert min(counts.values()) > 20


def test_a_compiler_that_has_paid_is_drawn_more_often() -> None:
    counts = _compilers(_draws(1, _dear)[10 * ROUND :])
    assert counts[DEAR] > 1.5 * max(counts[CHEAP], counts[OTHER])
    assert len(counts) == 3


def test_answers_of_an_executor_that_was_not_asked_are_found() -> None:
    with Store() as store:
        stream = _begin(store)
        job = store.claim(stream.id, "w")
        assert job
        draw = draw_of(store, stream, 0)
        _seal(store, job, replace(draw, executors=ALL), _nothing)
        problems = audit(store)
    assert len(problems) == 2
    assert all("1 verdicts on 0 programs" in problem for problem in problems)


def test_what_has_paid_is_drawn_more_often() -> None:
    mixes = [draw.mix for draw in _draws(1, _sums)]
    early, late = Counter(mixes[: 4 * ROUND]), Counter(mixes[10 * ROUND :])
    assert len(early) >= 8
    assert late["sums"] / (20 * ROUND) > 3 / len(MIXES)
    assert len(late) == len(MIXES)


def test_any_number_of_workers_draws_the_same() -> None:
    assert _draws(1, _sums) == _draws(3, _sums) == _draws(11, _sums)


def test_a_batch_waits_for_all_but_the_round_before_its_own() -> None:
    with Store() as store:
        stream = _begin(store)
        jobs = [store.claim(stream.id, "w") for _ in range(2 * ROUND)]
        assert is_open(store, stream, 2 * ROUND - 1)
        assert not is_open(store, stream, 2 * ROUND)
        for job in jobs[:ROUND]:
            assert job is not None
            _seal(store, job, draw_of(store, stream, job.number), _nothing)
        assert is_open(store, stream, 2 * ROUND)
        assert not is_open(store, stream, 3 * ROUND)


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_makes_programs_and_leaves_what_was_asked_for(mix: str) -> None:
    config = mixed(CAMPAIGN, mix)
    assert (config == CAMPAIGN) == (mix == USUAL)
    assert len({decode_number(2, 0, number, config).fingerprint for number in range(8)}) > 4
    asked = config_of(["instructions=3", "dtypes=F64", "linalg=0"])
    assert mixed(asked, mix).max_instructions == 3
    assert {t.dtype.name for t in decode_number(2, 0, 0, mixed(asked, mix)).program.input_types} <= {
        "F64",
        "Bool",
        "I32",
    }


@pytest.mark.once
@pytest.mark.nightly
def test_a_guided_campaign_is_the_same_with_two_workers_and_audits_itself(tmp_path: Path) -> None:
    arguments = ["--seed", 4, "--programs", 17 * 32, "--executors", "native", "--generate", "guided=1"]
    arguments += ["--generate", "instructions=1-3", "--generate", "elements=16", "--generate", "linalg=0"]
    for workers in (1, 2):
        assert tenferro_ref("fuzz", "run", tmp_path / f"{workers}.sqlite", *arguments, "--workers", workers).status == 0
        assert "sound" in tenferro_ref("fuzz", "status", tmp_path / f"{workers}.sqlite", "--check").out
    digests = []
    for workers in (1, 2):
        with Store(tmp_path / f"{workers}.sqlite") as store:
            digests.append(store.database.rows(tuple[int, str], "SELECT number, digest FROM batch ORDER BY number", ()))
    assert digests[0] == digests[1]
