"""Verdicts as rows: what `check --json` prints, what its table shows, and what `tenferro_ref.check` gives back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from fuzz.checking.judged import Judged
from fuzz.records import encode
from oracle.peers import DEFAULT_LANE, Peer
from oracle.verdict import ORIGINS, Verdict

Row = dict[str, Any]
_STYLE = {"pass": "green", "mismatch": "bold red", "crash": "bold red", "timeout": "bold red", "error": "bold red"}
_HEADERS = ("program", "executor", "verdict", "worst ULP", "decided", "tight", "beyond IEEE", "ms", "reason")


def row(program: str, judged: Judged, seed: int | None = None) -> Row:
    """The verdict on one executor's answer to `program`.

    Parameters
    ----------
    seed
        What the inputs were drawn from; None where they were given.
    """
    answer, comparison = judged.answer, judged.answer.comparison
    proved = judged.evidence in ("proved", "bits")
    shares = [
        n / comparison.elements if comparison.elements and proved else None
        for n in (comparison.decided, comparison.tight)
    ]
    # a distance is known of finite elements alone: where another one is wrong, 0 would speak of the rest
    ulp = None if answer.verdict.is_disagreement and not comparison.worst_ulp else comparison.worst_ulp
    if judged.evidence == "bits" and answer.verdict is Verdict.PASS:
        ulp = 0
    found: Row = {
        "program": program,
        "seed": seed,
        "executor": answer.executor,
        "verdict": answer.verdict.value,
        "evidence": judged.evidence,
        "worst_ulp": ulp,
        "decided": shares[0],
        "tight": shares[1],
        "beyond_ieee": judged.beyond,
        "seconds": round(sum(answer.seconds.values()), 6),
        "reason": "; ".join(filter(None, (answer.reason, judged.written))),
        "comparison": {k: v for k, v in dataclasses.asdict(comparison).items() if k != "widths"},
        "phases": answer.seconds,
        "error": answer.error,
    }
    origin = next((ORIGINS[phase] for phase in answer.seconds if phase in ORIGINS), "")
    if origin and Peer.parse(answer.executor).family == "pjrt":
        found["executable"] = origin
    if judged.written:
        found["written"] = judged.written
    if judged.known:
        found["known"] = judged.known
    if judged.builds:
        lane = Peer.parse(answer.executor).lane or DEFAULT_LANE
        found |= {"first_bad": f"lane {lane}: {judged.first_bad}", "builds": encode(judged.builds)}
    return found


def missing_row(program: str, name: str, reason: str, seed: int | None = None) -> Row:
    """An executor that is not installed."""
    return {
        "program": program, "seed": seed, "executor": name, "verdict": "missing", "evidence": "none", "worst_ulp": None,
        "decided": None, "tight": None, "beyond_ieee": {}, "seconds": 0.0, "reason": reason,
    }  # fmt: skip


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str | Text]]]:
    """Headers and cells; the column "beyond IEEE" only where it says something."""
    cells = [_cells(row) for row in rows]
    shown = [i for i, name in enumerate(_HEADERS) if name != "beyond IEEE" or any(line[i] for line in cells)]
    return [_HEADERS[i] for i in shown], [[line[i] for i in shown] for line in cells]


def notes(rows: Sequence[Row]) -> list[str]:
    """What the table does not show, each line once: known findings, first bad builds, guilty instructions."""
    known = (f"{r['executor']}: known finding, docs/findings/{r['known']}.md" for r in rows if "known" in r)
    rest = (str(r[what]) for what in ("first_bad", "bisected") for r in rows if what in r)
    return list(dict.fromkeys([*known, *rest]))


def _cells(row: Row) -> list[str | Text]:
    verdict, ulp = row["verdict"], row["worst_ulp"]
    decided, tight = ("" if row[share] is None else f"{row[share]:.0%}" for share in ("decided", "tight"))
    return [
        " ".join(row["program"].split()),
        " ".join(row["executor"].split()),
        Text(verdict, _STYLE.get(verdict, "yellow")),
        "" if ulp is None else f"{ulp:.3g}",
        "interpreter" if row["evidence"] == "interpreter" else decided,
        tight,
        ", ".join(f"{name} {count}" for name, count in row["beyond_ieee"].items()),
        f"{row['seconds'] * 1e3:.1f}",
        " ".join(row["reason"].split()),
    ]
