"""Records of a campaign: plain data that a store keeps and a report reads, with their JSON form.

No arrays and no programs as objects: programs are text here, values are words. Reports depend on this module and on
`oracle.verdict` only.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oracle.verdict import ExecutorInfo
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_text, write_atomically

VERSION = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """Tally of one (op, dtype, executor): over the programs that contain the op at that dtype, by verdict name.

    `worst_ulp` is over the programs whose *output* that op instance is, None where nothing finite was compared. `group` is
    the heading that the op stands under in a report's matrix ("elementwise", "reduction", ...).
    """

    op: str
    dtype: str
    executor: str
    verdicts: dict[str, int]
    worst_ulp: float | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Totals:
    """Tally of one executor over the whole campaign. Seconds are summed wall time by phase."""

    executor: str
    verdicts: dict[str, int]
    elements: int = 0
    decided: int = 0
    forgiven: int = 0
    worst_ulp: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    #: A sample of (log2 enclosure width in ULPs, ULP distance from the native answer) points.
    widths: tuple[tuple[float, float], ...] = ()
    #: Disagreeing programs that are in no finding, as when the budget ran out; None if nobody counted.
    unexplained: int | None = None


@dataclass(frozen=True, slots=True)
class ValueRow:
    """One element of a reduced finding, in words."""

    name: str
    index: str
    expected: str
    observed: str
    outside: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """A disagreement, reduced and de-duplicated.

    Attributes
    ----------
    signature
        The key: "ops | dtype | value class | executor | attribution".
    verdict
        Verdict name: mismatch, error, timeout, crash.
    attribution
        "rewrite: algsimp", "fast min/max", "native", "our pass: TransposeFolding", ... or "" if nothing was learned.
    known
        Name of the page in docs/findings/ that describes it, "" if it is new.
    programs
        How many generated programs showed this signature.
    reproducer
        A complete Python script.
    """

    signature: str
    title: str
    verdict: str
    executor: str
    also: tuple[str, ...]
    op: str
    dtype: str
    value_class: str
    attribution: str
    known: str
    programs: int
    instructions: int
    original_instructions: int
    reduce_seconds: float
    program_text: str
    program_json: str
    stablehlo: str
    inputs: tuple[tuple[str, str], ...]
    values: tuple[ValueRow, ...]
    reason: str
    reproducer: str


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything that a report shows.

    Attributes
    ----------
    started
        ISO 8601, UTC.
    seconds
        Wall time of phases of the campaign: "total", "generate", ...
    generator
        Counts that describe what was generated: op x dtype is in `cells`; here "instructions: 1-4": n and so on.
    environment
        Name and value pairs: Python, NumPy, machine, versions.
    """

    seed: int
    started: str
    command: str
    programs: int
    seconds: dict[str, float]
    executors: tuple[ExecutorInfo, ...]
    totals: tuple[Totals, ...]
    cells: tuple[Cell, ...]
    findings: tuple[Finding, ...]
    generator: dict[str, int]
    environment: tuple[tuple[str, str], ...]


def save(campaign: Campaign, path: str | Path) -> None:
    """Write the campaign as JSON.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    content = {"tenferro_campaign": VERSION, **dataclasses.asdict(campaign)}
    write_atomically(path, json.dumps(content, indent=1))


def load(path: str | Path) -> Campaign:
    """Read a campaign.

    Raises
    ------
    FormatError
        Unreadable, not JSON, another version, or other fields than this version has.
    """
    try:
        content = json.loads(read_text(path))
        if not isinstance(content, dict) or content.pop("tenferro_campaign", None) != VERSION:
            raise FormatError(where=str(path), detail=f"not a campaign record of version {VERSION}")
        return _campaign(content)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FormatError(where=str(path), detail=f"not a campaign record: {error}") from None


def _campaign(content: dict[str, Any]) -> Campaign:
    nested: dict[str, type] = {"executors": ExecutorInfo, "totals": Totals, "cells": Cell, "findings": Finding}
    for key, kind in nested.items():
        content[key] = tuple(_record(kind, entry) for entry in content[key])
    return Campaign(**{k: _tuples(v) for k, v in content.items()})


def _record(kind: type, entry: dict[str, Any]) -> Any:
    values = {k: _tuples(v) for k, v in entry.items()}
    if kind is Finding:
        values["values"] = tuple(ValueRow(**row) for row in entry["values"])
    return kind(**values)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value
