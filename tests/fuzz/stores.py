"""Stores filled without executors: batches from claim to seal, and findings that are settled."""

from __future__ import annotations

from fuzz.campaign import programs
from fuzz.campaign.tally import Tally
from fuzz.records import Finding
from fuzz.store import Batch, Disagreement, Plan, Store, Stream
from oracle.case import Case
from oracle.verdict import Answer, Comparison, ExecutorInfo, Verdict
from tests.reports import sample

PLAN = Plan(seed=7, programs=10, batch=4, max_findings=5, generate=("derivatives=0", "modules=0"))
INFOS = (ExecutorInfo("native", True), ExecutorInfo("other", True), ExecutorInfo("gone", False, "not here"))


def begin(store: Store, plan: Plan = PLAN) -> Stream:
    return store.begin(plan, INFOS, (("Python", "3"),), "2026-11-21T00:00:00+00:00")


def cases_of(plan: Plan, job: Batch) -> list[Case]:
    return programs.cases_of(plan, job.number)[: job.programs]


def answer(executor: str, verdict: Verdict = Verdict.PASS) -> Answer:
    comparison = Comparison(elements=4, decided=3, worst_ulp=float("inf"), widths=((1.0, float("inf")),))
    return Answer(executor, verdict, comparison, seconds={"execute": 0.5})


def run_batch(store: Store, stream: Stream, bad: tuple[int, ...] = (), owner: str = "w") -> Batch | None:
    """One batch from claim to seal; `other` disagrees on the programs numbered `bad`."""
    job = store.claim(stream.id, owner)
    if job is None:
        return None
    cases = store.programs(job) or cases_of(stream.plan, job)
    if not store.programs(job):
        store.put_programs(job, cases)
    tally, disagreements = Tally(), []
    for number, case in list(enumerate(cases))[job.counted :]:
        tally.add_cases([case])
        for name in stream.available:
            verdict = Verdict.MISMATCH if name == "other" and number in bad else Verdict.PASS
            tally.add_answer(case, answer(name, verdict))
            if verdict is Verdict.MISMATCH:
                disagreements.append(Disagreement(number, case, answer(name, verdict), "kin", "Add", "F32", "native"))
    store.seal(job, owner, cases, tally, disagreements)
    return job


def run_all(store: Store, stream: Stream, bad: tuple[int, ...] = ()) -> None:
    while run_batch(store, stream, bad):
        pass


def settle(store: Store, stream: Stream, **changes: object) -> Finding:
    group = store.claim_group(stream.id, "w", PLAN.max_findings)
    assert group is not None
    finding = sample.finding(known="", **changes)
    store.settle(group, finding, group.smallest.case, None)
    return finding
