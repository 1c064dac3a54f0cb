"""Records of a campaign: plain data that a store keeps and a report reads, with their JSON form.

No arrays and no programs as objects: programs are text here, values are words. Reports depend on this module and on
`oracle.verdict` only. The JSON is strict: a float that JSON has no number for is one of the strings "inf", "-inf", "nan",
and what is read back must have the declared types.
"""

from __future__ import annotations

import hashlib
import json
import math
import types
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from oracle.verdict import Build, ExecutorInfo, Verdict
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_text, write_atomically

#: Version 1 wrote Infinity and NaN as bare words, which is no JSON; version 2 knows no `Finding.builds`, version 3 no
#: `Campaign.surveys`, version 4 no `Campaign.errors` and `Totals.due`; until version 5 there was `Finding.reproducer`, a
#: script, which is dropped. All are still read.
VERSION = 6
_READABLE = (1, 2, 3, 4, 5, VERSION)

#: Made once: a store writes a line for every answer.
_LINE = json.JSONEncoder(allow_nan=False)

T = TypeVar("T")


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
    #: Answers among `verdicts` to invalid programs, which give no elements to decide; "unsupported" is none.
    due: int = 0

    @property
    def answered(self) -> int:
        """Valid programs that the executor was compared on, or failed at."""
        return sum(self.verdicts.values()) - self.verdicts.get(Verdict.UNSUPPORTED.value, 0) - self.due


@dataclass(frozen=True, slots=True)
class Survey:
    """What a compiler left of a sample of its modules after optimisation.

    Attributes
    ----------
    modules
        How many were looked into; in the lane `fast` one has many programs.
    opcodes
        In how many of them there is one such instruction: "dot f64", "fusion f32 kLoop", "custom-call f32 TopK".
    """

    executor: str
    modules: int
    opcodes: dict[str, int]


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """The invalid programs that must raise one kind of error, and what executors did with them.

    Attributes
    ----------
    faults
        How many programs broke which rule, 0 for those that were not reached.
    verdicts
        By executor and verdict name.
    """

    kind: str
    programs: int
    faults: dict[str, int]
    verdicts: dict[str, dict[str, int]]


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
    builds
        What the other builds of a plugin say to the reduced program, oldest first; `oracle.verdict.first_bad` sums it up.
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
    builds: tuple[Build, ...] = ()

    @property
    def id(self) -> str:
        """Eight hex digits by which it is called on the command line, and its bundle's folder."""
        return hashlib.sha256(self.signature.encode("utf-8", "backslashreplace")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class SeededFault:
    """What became of one seeded fault.

    Attributes
    ----------
    place
        The part of the system that it breaks.
    killed, programs, by
        Whether something disagreed with it, after how many programs, and who; 0 programs where only laws were asked.
    equivalent
        It changes no meaning, and so cannot be killed.
    """

    name: str
    place: str
    killed: bool
    programs: int
    by: str = ""
    equivalent: bool = False


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
    vacuous
        In words, why the run proves less than was asked of it; empty if it does not, or if nobody asked.
    mutants
        Seeded faults that were hunted beside the campaign.
    surveys
        One for each executor that tells what it makes of a program.
    errors
        One for each kind of error that invalid programs of this campaign may raise, reached or not.
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
    vacuous: tuple[str, ...] = ()
    mutants: tuple[SeededFault, ...] = ()
    surveys: tuple[Survey, ...] = ()
    errors: tuple[ErrorKind, ...] = ()

    @property
    def only_errors(self) -> bool:
        """No program was valid."""
        return 0 < self.programs == sum(error.programs for error in self.errors)


def save(campaign: Campaign, path: str | Path) -> None:
    """Write the campaign as JSON.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    content = {"tenferro_campaign": VERSION, **encode(campaign)}
    write_atomically(path, json.dumps(content, indent=1, allow_nan=False))


def load(path: str | Path) -> Campaign:
    """Read a campaign.

    Raises
    ------
    FormatError
        Unreadable, not JSON, another version, or other fields than this version has.
    """
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(where=str(path), detail=f"not a campaign record: {error}") from None
    if not isinstance(content, dict) or content.pop("tenferro_campaign", None) not in _READABLE:
        raise FormatError(where=str(path), detail=f"not a campaign record of version {VERSION}")
    return decode(Campaign, content, str(path))


def load_mutants(path: str | Path) -> tuple[SeededFault, ...]:
    """What `mutants run --out` wrote: lines of `mutants list --json` for those that change no meaning, then those of the hunt.

    Raises
    ------
    FormatError
        Unreadable, or a line that is none of these.
    """
    found: dict[str, SeededFault] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            fault = _seeded_fault(line, f"{path}, line {number}")
            if fault is not None and (fault.killed or fault.name not in found):
                found[fault.name] = fault
    return tuple(found.values())


def _seeded_fault(line: str, where: str) -> SeededFault | None:
    """None for one that was listed, not hunted."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(where=where, detail=f"not JSON: {error}") from None
    if not isinstance(content, dict):
        raise FormatError(where=where, detail="not the record of a seeded fault")
    content["equivalent"] = bool(content.get("equivalent"))  # the list says why
    if "killed" not in content and not content["equivalent"]:
        return None
    known = {f.name: content[f.name] for f in fields(SeededFault) if f.name in content}
    return decode(SeededFault, {"killed": False, "programs": 0, **known}, where)


def to_json(record: object) -> str:
    """One record as one line of strict JSON."""
    return _LINE.encode(encode(record))


def from_json(kind: type[T], text: str, where: str = "record") -> T:
    """The record that `to_json` wrote.

    Raises
    ------
    FormatError
        Not JSON, or not the fields and types of `kind`; `where` and the JSON path say where.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(where=where, detail=f"not JSON: {error}") from None
    return decode(kind, content, where)


def encode(value: Any) -> Any:
    """A record as what JSON can hold."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {k: encode(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    kind: Any = type(value)
    return {name: encode(getattr(value, name)) for name in _names(kind)}


_PLAIN = frozenset((str, int, bool, type(None)))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def decode(kind: type[T], value: Any, where: str) -> T:
    """The record of type `kind` in `value`.

    Raises
    ------
    FormatError
        Unknown or missing keys, or a value of another type.
    """
    try:
        decoded: T = _decode(kind, value, "$")
    except _Wrong as error:
        raise FormatError(where=where, detail=str(error)) from None
    return decoded


class _Wrong(Exception):
    """A value that is not of the declared type."""


_NONFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _decode(kind: Any, value: Any, at: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin in (types.UnionType, Union):  # only `X | None` is declared
        (inner,) = (k for k in get_args(kind) if k is not type(None))
        return None if value is None else _decode(inner, value, at)
    if origin is tuple:
        return _tuple(get_args(kind), value, at)
    if origin is dict:
        entry = get_args(kind)[1]
        return {k: _decode(entry, v, f"{at}.{k}") for k, v in _expect(dict, value, at).items()}
    if is_dataclass(kind):
        return _record(kind, value, at)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _convert(kind, value, at)
    if kind is float:
        if isinstance(value, str) and value in _NONFINITE:
            return _NONFINITE[value]
        return float(_expect((int, float), value, at))
    return _expect(kind, value, at)


def _tuple(kinds: tuple[Any, ...], value: Any, at: str) -> tuple[Any, ...]:
    entries = _expect(list, value, at)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(entries)
    if len(kinds) != len(entries):
        raise _Wrong(f"{at}: {len(entries)} entries, not {len(kinds)}")
    return tuple(_decode(k, v, f"{at}[{i}]") for i, (k, v) in enumerate(zip(kinds, entries, strict=True)))


#: Fields of earlier versions that are dropped, whatever is in them.
_GONE: dict[Any, frozenset[str]] = {Finding: frozenset({"reproducer"})}


def _record(kind: Any, value: Any, at: str) -> Any:
    hints, gone = _hints(kind), _GONE.get(kind, frozenset())
    entries = {k: v for k, v in _expect(dict, value, at).items() if k not in gone}
    if entries.keys() - hints.keys():
        raise _Wrong(f"{at}: unknown keys {sorted(entries.keys() - hints.keys())}")
    return _convert(lambda v: kind(**v), {k: _decode(hints[k], v, f"{at}.{k}") for k, v in entries.items()}, at)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _convert(make: Callable[[Any], Any], value: Any, at: str) -> Any:
    try:
        return make(value)
    except (TypeError, ValueError) as error:
        raise _Wrong(f"{at}: {error}") from None


def _expect(kind: Any, value: Any, at: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _Wrong(f"{at}: {type(value).__name__} where {getattr(kind, '__name__', 'a number')} is expected")
    return value
