"""Verdicts, and the record of one executor's answer to one program.

These records are what campaigns store and reports read; no arrays are in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

#: Where a plugin's executable came from, by the phase in which it was got.
ORIGINS = {
    "compile": "compiled",
    "keep": "kept in memory",
    "load": "loaded from the disk",
    "heal": "damaged on the disk, and compiled again",
}


class Verdict(Enum):
    """The verdict on one executor's answer to one program; mildest first."""

    PASS = "pass"  # noqa: S105
    UNSUPPORTED = "unsupported"
    UNDECIDED = "undecided"
    ERROR = "error"
    TIMEOUT = "timeout"
    CRASH = "crash"
    MISMATCH = "mismatch"

    @property
    def is_disagreement(self) -> bool:
        """Whether the executor is wrong, or the reference: exit status 1."""
        return self in _DISAGREEMENTS


_DISAGREEMENTS = frozenset({Verdict.ERROR, Verdict.TIMEOUT, Verdict.CRASH, Verdict.MISMATCH})


#: With what the value class begins where an output is wrong as a whole.
MISFITS = ("dtype ", "shape ")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing one answer with its reference, over all output elements.

    Attributes
    ----------
    elements, decided
        Output elements, and how many of them have an enclosure that says more than "any value".
    tight
        Decided elements whose enclosure is narrower than a thousandth of their magnitude (`value.TIGHT`), or one value.
    outside
        Elements outside their enclosure (or, for a bit-for-bit comparison, with other bits).
    forgiven
        Elements inside the platform's arithmetic model but outside `ieee`.
    worst_ulp
        Largest distance from the native answer over finite elements, in ULPs of the output dtype; None if none is finite.
    worst_output, worst_index, observed, expected
        The first element outside, and both sides in words; None and "" if there is none.
    value_class
        "expected inf, got finite" and so on, for the first element outside: part of a signature.
    widths
        `(log2 of the enclosure's width in ULPs, ULP distance of the answer from the native one)` of a sample of the elements.
    """

    elements: int = 0
    decided: int = 0
    outside: int = 0
    forgiven: int = 0
    worst_ulp: float | None = None
    worst_output: int | None = None
    worst_index: tuple[int, ...] | None = None
    observed: str = ""
    expected: str = ""
    value_class: str = ""
    widths: tuple[tuple[float, float], ...] = ()
    tight: int = 0

    @property
    def reason(self) -> str:
        """What is wrong, in words; "" if nothing is."""
        if not self.outside:
            return ""
        if self.worst_output is None:
            return self.value_class
        if self.value_class.startswith(MISFITS):
            return f"output {self.worst_output}: {self.value_class}"
        return (
            f"output {self.worst_output}{list(self.worst_index or ())}: {self.value_class}: "
            f"{self.observed} is not in {self.expected} ({self.outside} of {self.elements} elements)"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """One executor's verdict on one program.

    Attributes
    ----------
    reason
        Why not PASS: the typed refusal, the error, the signal, or the first wrong element. "" for PASS.
    error
        `TenferroError.to_json()` of a refusal or failure, else None.
    seconds
        Wall time by phase ("lower", "compile", "execute", "compare"; instead of "compile", "keep", "load" or "heal" as `ORIGINS` says);
        phases that did not happen are absent.
    by_input
        Distances from the native answer by input value, where one op alone has a part in them (`oracle.by_input`).
    """

    executor: str
    verdict: Verdict
    comparison: Comparison = Comparison()
    reason: str = ""
    error: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    by_input: tuple[tuple[str, str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    """Where an executor comes from; what a report's environment section shows.

    Attributes
    ----------
    name
        As on the command line: `native`, `pjrt:xla-cpu-pjrt@parity`, ...
    available
        False for an executor that is not installed; `reason` says why.
    facts
        Name and value pairs in display order: file, sha256, PJRT API version, platform, XLA and StableHLO versions, lane
        options, ...
    build
        What its library reports of itself, as rules of known findings name it; "" for our own code.
    """

    name: str
    available: bool
    reason: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    build: str = ""


@dataclass(frozen=True, slots=True)
class Build:
    """The verdict on one build of a plugin for a program that another build gets wrong.

    Attributes
    ----------
    api
        Version of its C API, by which builds are ordered; "" if it was not run.
    verdict
        None if it was not run; `reason` says why.
    """

    name: str
    api: str = ""
    verdict: Verdict | None = None
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.verdict.value if self.verdict else f'({self.reason})'}"


def first_bad(builds: Sequence[Build]) -> str:
    """The first build that disagrees, in words with the one before it; "" if none does.

    Parameters
    ----------
    builds
        Oldest first; those without a verdict are left out.
    """
    judged = [build for build in builds if build.verdict]
    bad = [i for i, build in enumerate(judged) if build.verdict and build.verdict.is_disagreement]
    if not bad:
        return ""
    first = judged[bad[0]]
    alone = "the oldest asked" if len(judged) > 1 else "the only one asked"
    return f"{first.name} (PJRT API {first.api}), {f'not yet in {judged[bad[0] - 1].name}' if bad[0] else alone}"
