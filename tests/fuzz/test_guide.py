"""Guided campaigns: what has paid is drawn more often, and any order of work comes to the same programs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fuzz.campaign.guide import MIXES, ROUND, USUAL, is_open, mix_of, mixed
from fuzz.campaign.tally import Tally
from fuzz.generate import DEFAULT
from fuzz.generate.batches import decode_number, generate
from fuzz.generate.settings import config_of
from fuzz.store import Batch, Disagreement, Plan, Store
from oracle.verdict import Verdict
from tests.e2e.command import tenferro_ref
from tests.fuzz.stores import answer, begin

(CASE,) = generate(1, 0, 1)
PLAN = Plan(seed=3, programs=30 * ROUND, batch=1, generate=("guided=1",))


def _seal(store: Store, job: Batch, owner: str, mix: str) -> None:
    """Batches in the mix "sums" show a disagreement of a new kind."""
    shown = [Disagreement(0, CASE, answer("other", Verdict.MISMATCH), f"kin {job.number}", "Add", "F32", "native")]
    tally = Tally()
    for name in ("native", "other"):
        tally.add_answer(CASE, answer(name, Verdict.MISMATCH if mix == "sums" and name == "other" else Verdict.PASS))
    store.put_programs(job, [CASE])
    store.seal(job, owner, [CASE], tally, shown if mix == "sums" else [])


def _mixes(at_once: int) -> list[str]:
    """The mixes of a campaign whose workers hold so many batches, and seal the last one first."""
    with Store() as store:
        stream, mixes = begin(store, PLAN), dict[int, str]()
        held: list[Batch] = []
        while True:
            job = store.claim(stream.id, "w")
            while held and (job is None or len(held) == at_once or not is_open(store, stream, job.number)):
                done = held.pop()
                _seal(store, done, "w", mixes[done.number])
            if job is None:
                return [mixes[number] for number in sorted(mixes)]
            assert is_open(store, stream, job.number)
            mixes[job.number] = mix_of(store, stream, job.number)
            held.append(job)


def test_what_has_paid_is_drawn_more_often() -> None:
    mixes = _mixes(1)
    early, late = Counter(mixes[: 4 * ROUND]), Counter(mixes[10 * ROUND :])
    assert len(early) >= 8
    assert late["sums"] / (20 * ROUND) > 3 / len(MIXES)
    assert len(late) == len(MIXES)


def test_any_number_of_workers_draws_the_same() -> None:
    assert _mixes(1) == _mixes(3) == _mixes(11)


def test_a_batch_waits_for_all_but_the_round_before_its_own() -> None:
    with Store() as store:
        stream = begin(store, PLAN)
        jobs = [store.claim(stream.id, "w") for _ in range(2 * ROUND)]
        assert is_open(store, stream, 2 * ROUND - 1)
        assert not is_open(store, stream, 2 * ROUND)
        for job in jobs[:ROUND]:
            assert job is not None
            _seal(store, job, "w", USUAL)
        assert is_open(store, stream, 2 * ROUND)
        assert not is_open(store, stream, 3 * ROUND)


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_makes_programs_and_leaves_what_was_asked_for(mix: str) -> None:
    config = mixed(DEFAULT, mix)
    assert (config == DEFAULT) == (mix == USUAL)
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
