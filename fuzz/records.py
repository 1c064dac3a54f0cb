"""Records of a campaign: plain data that a store keeps and a report reads, with their JSON form.

No arrays and no programs as objects: programs are text here, values are words. Reports depend on this module and on
`oracle.verdict` only. The JSON is strict: a distance that JSON has no number for is one of the strings "inf", "-inf", "nan",
and what is read back must have the declared types.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from fuzz.explanation import Explanation
from oracle.verdict import Build, ExecutorInfo, Verdict
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_text

#: Version 1 wrote Infinity and NaN as bare words, which is no JSON; version 2 knows no `Finding.builds`, version 3 no
#: `Campaign.surveys`, version 4 no `Campaign.errors` and `Totals.due`; until version 5 there was `Finding.reproducer`,
#: a script, which is dropped; until version 6 a refused program counted as refused for all of its ops; version 7 does
#: not explain findings, version 8 knows no `Cell.ulps` and no segments, version 9 no `Finding.located`. All are still read.
VERSION = 10
_READABLE = range(1, VERSION + 1)

#: Made once: a store writes a line for every answer.
_LINE = json.JSONEncoder(allow_nan=False)

T = TypeVar("T")
#: A duration: neither negative nor infinite nor NaN.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]
#: A time: seconds since 1970, before the year 10000, so that it is a date.
Time = Annotated[float, msgspec.Meta(ge=0, lt=253_402_300_800)]


@dataclass(frozen=True, slots=True)
class Held:
    """Compared elements, and how many of them have a decided and a tight enclosure (`oracle.verdict.Comparison`)."""

    elements: int = 0
    decided: int = 0
    tight: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """Tally of one (op, dtype of its result, executor), over the programs that contain it.

    Attributes
    ----------
    verdicts
        Programs by verdict name, as far as the verdict is about this op: it passed with the whole program, triage located the
        disagreement in it, or the refusal names it.
    worst_ulp
        Over the programs of which it is the only instruction; None where nothing finite was compared.
    group
        The heading that the op stands under in a report's matrix ("elementwise", "reduction", ...).
    beside
        Programs that got another verdict than `pass` on account of another op, or of one that was not located.
    refusals
        Reasons of the refusals in `verdicts`, by how many programs had them.
    examples
        The number of a program that is counted in `verdicts`, by verdict name.
    ulps
        Elements by the value that the op was given and their distance from the native answer, over outputs that the op computes from
        inputs of the program alone; the words are bins (`oracle.by_input`).
    held
        Compared elements of the programs in `verdicts`.
    """

    op: str
    dtype: str
    executor: str
    verdicts: dict[str, int]
    worst_ulp: float | None = None
    group: str = ""
    beside: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    examples: dict[str, int] = field(default_factory=dict)
    ulps: dict[str, int] = field(default_factory=dict)
    held: Held = Held()


@dataclass(frozen=True, slots=True)
class Totals:
    """Tally of one executor over the whole campaign. Seconds are summed wall time by phase."""

    executor: str
    verdicts: dict[str, int]
    elements: int = 0
    decided: int = 0
    forgiven: int = 0
    worst_ulp: float | None = None
    seconds: dict[str, Seconds] = field(default_factory=dict)
    #: A sample of (log2 enclosure width in ULPs, ULP distance from the native answer) points.
    widths: tuple[tuple[float, float], ...] = ()
    #: Disagreeing programs that are in no finding, as when the budget ran out; None if that was not counted.
    unexplained: int | None = None
    #: Answers among `verdicts` to invalid programs, which give no elements to decide; "unsupported" is none.
    due: int = 0
    #: Elements whose enclosure is narrow (`oracle.verdict.Comparison.tight`).
    tight: int = 0
    #: Programs by how a plugin's executable was got, a key of `oracle.verdict.ORIGINS`.
    executables: dict[str, int] = field(default_factory=dict)

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
    """The invalid programs that must raise one kind of error, and how executors answered them.

    Attributes
    ----------
    faults
        How many programs broke which rule, 0 for those that no program broke.
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
        "rewrite: algsimp", "option: NAME", "native", "our pass: TransposeFolding", ... or "" if nothing was learned.
    known
        Name of the page in docs/findings/ that describes it, "" if it is new.
    programs
        How many generated programs showed this signature.
    builds
        What the other builds of a plugin answer to the reduced program, oldest first; `oracle.verdict.first_bad` sums it up.
    build
        What the executor's library reports of itself (`Executor.build`), which the rules of known findings name; "" in
        records from before it was asked.
    derivation
        Of which transforms the program was a derivative when it was found: "vjp", "vjp of jvp"; "" for none.
    primal_text
        The program that it is a derivative of, where the derivative itself is wrong and that program was reduced.
    first_program
        Number, from 0, of the first program of the campaign that showed it.
    located
        The (op, dtype, executor) of every cell whose disagreements led to it; empty in records from before it was kept.
    unconfirmed
        Why its bundle did not show it in a clean interpreter; "" if it did, or if that was not tried.
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
    reduce_seconds: Seconds
    program_text: str
    program_json: str
    stablehlo: str
    inputs: tuple[tuple[str, str], ...]
    values: tuple[ValueRow, ...]
    reason: str
    builds: tuple[Build, ...] = ()
    build: str = ""
    derivation: str = ""
    primal_text: str = ""
    explanation: Explanation = field(default_factory=Explanation)
    first_program: int | None = None
    located: tuple[tuple[str, str, str], ...] = ()
    unconfirmed: str = ""

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
        Why the run proves less than its options require; empty if it does not, or if they require nothing.
    mutants
        Seeded faults that were hunted beside the campaign.
    surveys
        One for each executor that tells what it makes of a program.
    errors
        One for each kind of error that invalid programs of this campaign may raise, reached or not.
    interrupted
        The campaign did not come to its end.
    again
        The command that makes one of its programs again, without the program's number.
    admitted
        For each op in `cells`, the dtypes that its result can have; empty in records of versions before 7.
    """

    seed: int
    started: str
    command: str
    programs: int
    seconds: dict[str, Seconds]
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
    admitted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    interrupted: bool = False
    again: str = ""

    @property
    def only_errors(self) -> bool:
        """No program was valid."""
        return 0 < self.programs == sum(error.programs for error in self.errors)


def dumps(campaign: Campaign) -> str:
    """The campaign as JSON."""
    return json.dumps({"tenferro_campaign": VERSION, **encode(campaign)}, indent=1, allow_nan=False)


def load(path: str | Path) -> Campaign:
    """Read a campaign.

    Raises
    ------
    FormatError
        Unreadable, not JSON, another version, or other fields than this version has.
    """
    content = _loads(read_text(path), str(path), strict=False)
    version = content.pop("tenferro_campaign", None) if isinstance(content, dict) else None
    if version not in _READABLE:
        raise FormatError(where=str(path), detail=f"not a campaign record of version {VERSION}")
    return decode(Campaign, content, str(path))


def load_mutants(path: str | Path) -> tuple[SeededFault, ...]:
    """What `mutants run --out` wrote: lines of `mutants list --json` for those that change no meaning, then those of the hunt.

    Raises
    ------
    FormatError
        Unreadable, or a line that is none of these.
    """
    faults: dict[str, SeededFault] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            fault = _seeded_fault(line, f"{path}, line {number}")
            if fault is not None and (fault.killed or fault.name not in faults):
                faults[fault.name] = fault
    return tuple(faults.values())


def _seeded_fault(line: str, where: str) -> SeededFault | None:
    """None for one that was listed, not hunted."""
    content = _loads(line, where)
    if not isinstance(content, dict):
        raise FormatError(where=where, detail="not the record of a seeded fault")
    content["equivalent"] = bool(content.get("equivalent"))  # the list says why
    if "killed" not in content and not content["equivalent"]:
        return None
    names = {f.name for f in fields(SeededFault)}
    kept = {key: value for key, value in content.items() if key in names}
    return decode(SeededFault, {"killed": False, "programs": 0, **kept}, where)


# --- JSON -------------------------------------------------------------------------------------------------------------


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
    return decode(kind, _loads(text, where), where)


def encode(record: object) -> Any:
    """A record as what JSON can hold."""
    return _at_extremes(msgspec.to_builtins(record), lambda value: value if math.isfinite(value) else str(value), float)


def decode(kind: type[T], content: Any, where: str) -> T:
    """The record of type `kind` in `content`, which `encode` made.

    Raises
    ------
    FormatError
        Unknown or missing keys, or a value of another type.
    """
    try:
        try:
            record = msgspec.convert(content, kind)
        except msgspec.ValidationError:
            # few records have such a word: looking for one in each costs more than all the rest
            content = _at_extremes(content, lambda word: _NONFINITE.get(word, word), str)
            record = msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise FormatError(where=where, detail=str(error)) from None
    for path in _unknown(content, msgspec.to_builtins(record), "$"):
        raise FormatError(where=where, detail=f"unknown key {path}")
    return record


_NONFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
#: Fields that findings of earlier versions have.
_DROPPED = frozenset({"reproducer"})
#: Fields whose floats may be what JSON has no numbers for; those are the strings "inf", "-inf" and "nan".
_EXTREMES = frozenset({"worst_ulp", "widths"})
#: What has values of its own; most values of a record are none, and cost no call.
_NESTED = frozenset({dict, list, tuple})


def _at_extremes(content: Any, change: Callable[[Any], Any], kind: type, inside: bool = False) -> Any:
    """Change the values of a type in all fields of `_EXTREMES`."""
    if isinstance(content, dict):
        return {k: _at_extremes(v, change, kind, inside or k in _EXTREMES) for k, v in content.items()}
    if isinstance(content, (list, tuple)):
        return [_at_extremes(v, change, kind, inside) for v in content]
    return change(content) if inside and isinstance(content, kind) else content


def _unknown(content: Any, known: Any, path: str) -> Iterator[str]:
    """Paths of the keys in `content` that the record made of it does not have, but for those of earlier versions."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key not in known and (key not in _DROPPED or "signature" not in known):
                yield f"{path}.{key}"
            elif type(value) in _NESTED and key in known:
                yield from _unknown(value, known[key], f"{path}.{key}")
    elif isinstance(content, (list, tuple)):
        for i, (value, other) in enumerate(zip(content, known, strict=True)):
            if type(value) in _NESTED:
                yield from _unknown(value, other, f"{path}[{i}]")


def _loads(text: str, where: str, *, strict: bool = True) -> Any:
    """JSON; unless `strict`, with the bare words NaN and Infinity of version 1."""
    try:
        return _STRICT.decode(text) if strict else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(where=where, detail=f"not JSON: {error}") from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
