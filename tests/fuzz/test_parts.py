"""Parts of a campaign: cut out, worked on, taken back, they give what the campaign gives in one piece."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fuzz.campaign.audit import audit
from fuzz.campaign.recorded import recorded
from fuzz.campaign.work import begin, work
from fuzz.campaign.worksite import Worksite
from fuzz.findings.listed import listed
from fuzz.generate.batches import generate
from fuzz.store import Batch, Plan, Store, Stream
from fuzz.store.parts import absorb, cut_batches, cut_group
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool, Selection
from tenferro_ref.errors import Internal
from tests.fuzz.test_campaign import Odd
from tests.fuzz.test_campaign import selection as odd_selection
from tools.torture import _differences

pytestmark = pytest.mark.once


ME = "somebody"
NATIVE = ("native-unsegmented", "native-nopasses")


@pytest.fixture(scope="module")
def selection() -> Selection:
    return Pool().select(NATIVE)


def claimed(store: Store, stream: Stream, count: int) -> list[Batch]:
    jobs = [store.claim(stream.id, ME) for _ in range(count)]
    return [job for job in jobs if job is not None]


def do(part: bytes, path: Path, selection: Selection) -> Path:
    """Work on a part to its end, as a machine elsewhere does."""
    path.write_bytes(part)
    with Store(path) as store, closing(Pool()) as pool:
        work(Worksite(store, store.stream(1), selection.executors, pool), alone=False)
    return path


def test_in_parts_and_out_of_order_it_is_the_same_campaign(tmp_path: Path, selection: Selection, pool: Pool) -> None:
    plan = Plan(5, programs=70, batch=16)
    with Store() as store, Store() as whole:
        stream = begin(store, plan, selection)
        parts = [cut_batches(store, stream, claimed(store, stream, n)) for n in (1, 3, 9)]
        assert store.claim(stream.id, ME) is None
        for i in (2, 0, 1):
            absorb(store, stream, do(parts[i], tmp_path / f"{i}.sqlite", selection), ME)
            assert audit(store, regenerate=10) == []
        one = begin(whole, plan, selection)
        work(Worksite(whole, one, selection.executors, pool), alone=False)
        assert _differences(recorded(store, [stream]), recorded(whole, [one])) == []
        assert store.done(stream.id) == (70, 0)


def test_a_shard_is_cut_into_its_own_batches(tmp_path: Path, selection: Selection) -> None:
    with Store() as store:
        stream = begin(store, Plan(5, programs=50, batch=8, shard=1, shards=3), selection)
        jobs = claimed(store, stream, 9)
        assert [(job.number, job.programs) for job in jobs] == [(1, 8), (4, 8)]
        absorb(store, stream, do(cut_batches(store, stream, jobs), tmp_path / "part.sqlite", selection), ME)
        assert store.done(stream.id) == (16, 0)
        assert audit(store, regenerate=10) == []


def test_nothing_is_counted_twice(tmp_path: Path, selection: Selection) -> None:
    with Store() as store:
        stream = begin(store, Plan(5, programs=8, batch=8), selection)
        part = cut_batches(store, stream, claimed(store, stream, 1))
        path = do(part, tmp_path / "part.sqlite", selection)
        with pytest.raises(Internal, match="not held by another"):
            absorb(store, stream, path, "another")
        assert store.done(stream.id) == (0, 0)
        absorb(store, stream, path, ME)
        before = recorded(store, [stream])
        with pytest.raises(Internal, match="not held"):
            absorb(store, stream, path, ME)
        assert recorded(store, [stream]) == before


def test_what_is_known_of_a_batch_goes_along(tmp_path: Path, selection: Selection) -> None:
    """Answers that a dead worker left are not asked for again, and strikes count."""
    with Store() as store:
        stream = begin(store, Plan(5, programs=4, batch=4), selection)
        (job,) = claimed(store, stream, 1)
        cases = generate(5, 0, 4)
        store.put_programs(job, cases)
        executor = selection.executors[0]
        store.put_answers(job, [(n, judge(executor, Reference(c, NativeExecutor()))) for n, c in enumerate(cases[:3])])
        store.strike(job, 3, executor.name)
        part = tmp_path / "part.sqlite"
        part.write_bytes(cut_batches(store, stream, [job]))
        with Store(part) as cut:
            again = cut.claim(1, "there")
            assert again is not None
            assert again.claims == 1
            assert {number for number, _ in cut.answers(again)} == {0, 1, 2}
            assert [c.fingerprint for c in cut.programs(again)] == [c.fingerprint for c in cases]
            assert cut.strike(again, 3, executor.name) == 2


def test_a_kind_of_disagreement_is_reduced_elsewhere(tmp_path: Path) -> None:
    chosen = odd_selection(Odd())
    plan = Plan(5, programs=8, batch=4, reduce_seconds=1.0, max_findings=1)
    with Store() as store:
        stream = begin(store, plan, chosen)
        for number in range(2):
            part = cut_batches(store, stream, claimed(store, stream, 1))
            absorb(store, stream, do(part, tmp_path / f"{number}.sqlite", chosen), ME)
        assert store.group_counts(stream.id)[0] == 0
        group = store.claim_group(stream.id, ME, plan.max_findings)
        assert group is not None
        path = do(cut_group(store, stream, group), tmp_path / "kin.sqlite", chosen)
        # a batch that ends meanwhile and shows the same kind takes nothing away from who reduces it
        assert store.claim_group(stream.id, ME, plan.max_findings) is None
        with pytest.raises(Internal, match="is not held by stranger"):
            absorb(store, stream, path, "stranger")
        assert listed(store, [stream]) == []
        absorb(store, stream, path, ME)
        counted = store.counts(stream.id)
        with pytest.raises(Internal, match="is not held by"):
            absorb(store, stream, path, ME)
        assert store.counts(stream.id) == counted, "nothing is counted twice"
        assert audit(store, regenerate=10) == []
        (row,) = listed(store, [stream])
        assert (row.record.executor, row.programs) == ("odd", group.programs)
        assert row.record.instructions == Odd.limit + 1
        assert store.group_counts(stream.id)[0] == 1


def test_a_reduction_that_never_ends_is_not_begun_for_ever(tmp_path: Path) -> None:
    chosen = odd_selection(Odd())
    with Store() as store:
        stream = begin(store, Plan(5, programs=4, batch=4, max_findings=9), chosen)
        part = cut_batches(store, stream, claimed(store, stream, 1))
        absorb(store, stream, do(part, tmp_path / "part.sqlite", chosen), ME)
        (kinds,) = store.database.row(tuple[Any, ...], "SELECT count(*) FROM kin")
        for attempt in range(3 * kinds):
            group = store.claim_group(stream.id, ME, 9)
            assert group is not None, attempt
            path = tmp_path / f"kin{attempt}.sqlite"
            path.write_bytes(cut_group(store, stream, group))
            with Store(path) as elsewhere:  # claims it, and dies
                assert elsewhere.claim_group(1, "there", 1) is not None
            absorb(store, stream, path, ME)
        assert store.claim_group(stream.id, ME, 9) is None
