"""A campaign in a store as the records that reports read."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path

from fuzz.campaign.programs import faults_of
from fuzz.findings.listed import listed
from fuzz.generate.config import result_dtypes
from fuzz.generate.settings import config_of
from fuzz.records import Campaign, Cell, ErrorKind, Held, Survey, Totals
from fuzz.report import Report, Run
from fuzz.store import MEMORY, Counts, Plan, Store, Stream
from fuzz.store.counts import WIDTHS
from fuzz.store.sightings import of_no_finding
from oracle.peers import Peer
from oracle.verdict import ORIGINS, Verdict
from tenferro_ref import ops

_GROUPS = {
    op.__name__: group
    for group, members in (
        ("elementwise", ops.ELEMENTWISE),
        ("structural", (*ops.STRUCTURAL, ops.Constant)),
        ("reduction", ops.REDUCTIONS),
        ("indexing", ops.INDEXING),
        ("contraction", ops.CONTRACTIONS),
        ("extension", (ops.Extension,)),
    )
    for op in members
}
_PHASES = ("generate", "check", "reduce")


def reported(store: Store, streams: Sequence[Stream], bundles: Path | None = None) -> Report:
    """A campaign beside the others of its store: held against the one that was begun before it, if there is one."""
    campaigns: dict[str, list[Stream]] = {}
    for stream in store.streams():
        campaigns.setdefault(stream.campaign, []).append(stream)
    names = list(campaigns)
    at = names.index(streams[0].campaign)
    records = {name: recorded(store, campaigns[name]) for name in names}
    return Report(
        recorded(store, streams),
        records[names[at - 1]] if at else None,
        tuple(Run.of(records[name]) for name in names),
        bundles,
    )


def recorded(store: Store, streams: Sequence[Stream]) -> Campaign:
    """One campaign, all of the given shards of it together."""
    counts = Counts()
    for stream in streams:
        counts.update(store.counts(stream.id))
    phases, first = counts.part("phase"), streams[0]
    order = sorted(phases, key=lambda phase: _PHASES.index(phase) if phase in _PHASES else len(_PHASES))
    unexplained = of_no_finding(store, [s.id for s in streams])
    cells = _cells(counts)
    return Campaign(
        seed=first.plan.seed,
        started=first.started,
        command=first.plan.command,
        programs=sum(store.done(s.id)[0] for s in streams),
        seconds={
            **{phase: round(phases[phase], 3) for phase in order},
            "total": round(sum(s.elapsed for s in streams), 3),
        },
        executors=tuple({info.name: info for s in streams for info in s.executors}.values()),
        totals=tuple(_totals(counts, name, unexplained.get(name, 0)) for name in first.available),
        cells=cells,
        findings=tuple(row.record for row in listed(store, streams)),
        generator=counts.part("feature"),
        environment=first.environment,
        surveys=surveys(counts, first.available),
        errors=_errors(counts, first.plan),
        admitted=_admitted(cells),
        again=_again(first.plan, str(store.path)),
    )


def _totals(counts: Counts, name: str, unexplained: int) -> Totals:
    verdicts, numbers = counts.part("verdict", name), counts.part("number", name)
    return Totals(
        executor=name,
        verdicts={v.value: verdicts[v.value] for v in Verdict if verdicts.get(v.value)},
        elements=numbers.get("elements", 0),
        decided=numbers.get("decided", 0),
        forgiven=numbers.get("forgiven", 0),
        tight=numbers.get("tight", 0),
        worst_ulp=counts.peaks.get(("worst", name)),
        seconds={k: round(v, 3) for k, v in counts.part("seconds", name).items()},
        widths=tuple(counts.widths[name][:WIDTHS]),
        due=numbers.get("due", 0),
        unexplained=unexplained,
        executables={p: numbers[p] for p in ORIGINS if numbers.get(p)} if Peer.parse(name).family == "pjrt" else {},
    )


def _cells(counts: Counts) -> tuple[Cell, ...]:
    tallies: dict[tuple[str, str, str], dict[str, dict[str, int]]] = {}
    for key, count in sorted(counts.sums.items()):
        if key[0] in ("cell", "beside", "refusal", "ulps", "held"):
            kind, op, dtype, executor, word = key
            tallies.setdefault((op, dtype, executor), {}).setdefault(kind, {})[word] = count
    examples: dict[tuple[str, str, str], dict[str, int]] = {}
    for key, number in sorted(counts.peaks.items()):
        if key[0] == "example":
            _, op, dtype, executor, word = key
            examples.setdefault((op, dtype, executor), {})[word] = int(number)
    return tuple(
        Cell(
            *key,
            tally.get("cell", {}),
            counts.peaks.get(("cell_ulp", *key)),
            _GROUPS.get(key[0], ""),
            tally.get("beside", {}),
            tally.get("refusal", {}),
            examples.get(key, {}),
            tally.get("ulps", {}),
            Held(*(tally.get("held", {}).get(f.name, 0) for f in fields(Held))),
        )
        for key, tally in sorted(tallies.items())
    )


def _again(plan: Plan, store: str) -> str:
    """What makes one program of a campaign again, but for its number."""
    words = ["tenferro-ref", "fuzz", "program", "--seed", str(plan.seed)]
    words += ["--input-sets", str(plan.input_sets)] if plan.input_sets > 1 else []
    words += ["--store", store] if config_of(plan.generate).guided and store != MEMORY else []
    return shlex.join([*words, *(word for setting in plan.generate for word in ("--generate", setting))])


def _admitted(cells: Iterable[Cell]) -> dict[str, tuple[str, ...]]:
    present = {cell.op for cell in cells}
    return {op.__name__: tuple(d.name for d in result_dtypes(op)) for op in ops.OPS if op.__name__ in present}


def surveys(counts: Counts, executors: Sequence[str]) -> tuple[Survey, ...]:
    """One record for each executor that tells what it is left with after optimisation."""
    modules = {name: counts.part("number", name).get("surveyed", 0) for name in executors}
    return tuple(Survey(name, number, counts.part("opcode", name)) for name, number in modules.items() if number)


def _errors(counts: Counts, plan: Plan) -> tuple[ErrorKind, ...]:
    """One record for each kind of error that invalid programs may raise, reached or not."""
    faults = faults_of(plan)
    verdicts: dict[str, dict[str, dict[str, int]]] = {kind: {} for kind in faults}
    for key, count in sorted(counts.sums.items()):
        if key[0] == "due":
            _, kind, executor, verdict = key
            verdicts.setdefault(kind, {}).setdefault(executor, {})[verdict] = count
    reached = {kind: dict.fromkeys(names, 0) | counts.part("fault", kind) for kind, names in faults.items()}
    return tuple(ErrorKind(kind, sum(n.values()), n, verdicts[kind]) for kind, n in reached.items())
