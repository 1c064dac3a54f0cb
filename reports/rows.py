"""Rows of the report's smaller tables: where executors come from, error parity, seeded faults, opcodes after optimisation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from fuzz.records import ErrorKind, SeededFault, Survey
from fuzz.summary import disagreements, is_ours, without_lane
from oracle.verdict import ExecutorInfo, Verdict

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """The native executors, the lanes of a plugin, or one other executor.

    Attributes
    ----------
    facts
        What all members have in common.
    members
        Each with what is its own; empty for a family of one, whose facts are all in `facts`.
    """

    name: str
    facts: Facts
    members: tuple[tuple[str, Facts], ...]


def families(infos: Sequence[ExecutorInfo]) -> tuple[Family, ...]:
    """The executors that are available, by family, in order of appearance."""
    groups: dict[str, list[ExecutorInfo]] = {}
    for info in infos:
        if info.available:
            groups.setdefault("native" if is_ours(info.name) else without_lane(info.name), []).append(info)
    return tuple(_family(name, group) for name, group in groups.items())


def _family(name: str, group: Sequence[ExecutorInfo]) -> Family:
    if len(group) == 1:
        return Family(group[0].name, group[0].facts, ())
    common = tuple(fact for fact in group[0].facts if all(fact in info.facts for info in group))
    members = tuple((info.name, tuple(fact for fact in info.facts if fact not in common)) for info in group)
    return Family(name, common, members)


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One kind: how many of the ways to break a rule were reached, and the names of the others.

    `right` and `wrong` count answers; `who` names the executors that gave wrong ones.
    """

    kind: str
    programs: int
    reached: int
    ways: int
    never: tuple[str, ...]
    right: int
    wrong: int
    who: str


def error_rows(errors: Iterable[ErrorKind]) -> tuple[ErrorRow, ...]:
    """One row a kind, by name."""
    return tuple(map(_error_row, sorted(errors, key=lambda error: error.kind)))


def _error_row(error: ErrorKind) -> ErrorRow:
    never = tuple(sorted(name for name, count in error.faults.items() if not count))
    wrong = {name: disagreements(verdicts) for name, verdicts in error.verdicts.items()}
    return ErrorRow(
        kind=error.kind,
        programs=error.programs,
        reached=len(error.faults) - len(never),
        ways=len(error.faults),
        never=never,
        right=sum(verdicts.get(Verdict.PASS.value, 0) for verdicts in error.verdicts.values()),
        wrong=sum(wrong.values()),
        who=", ".join(f"{name} {count:,}" for name, count in wrong.items() if count),
    )


@dataclass(frozen=True, slots=True)
class MutantRow:
    """One place; `median` and `most` are the programs that killing took, None where programs killed nothing.

    `oracles` is who killed how many, the most successful first.
    """

    name: str
    killed: int
    survived: int
    equivalent: int
    median: int | None
    most: int | None
    oracles: tuple[tuple[str, int], ...]

    @property
    def killers(self) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in self.oracles)


def mutant_rows(mutants: Iterable[SeededFault]) -> tuple[MutantRow, ...]:
    """One row a place, by name, and all of them together at the end."""
    faults = tuple(mutants)
    places = sorted({fault.place for fault in faults})
    rows = [_mutant_row(place, [f for f in faults if f.place == place]) for place in places]
    return (*rows, _mutant_row("all", faults))


def _mutant_row(name: str, faults: Iterable[SeededFault]) -> MutantRow:
    faults = list(faults)
    killed = [f for f in faults if f.killed]
    needed = [f.programs for f in killed if f.programs]
    equivalent = sum(f.equivalent and not f.killed for f in faults)
    return MutantRow(
        name=name,
        killed=len(killed),
        survived=len(faults) - len(killed) - equivalent,
        equivalent=equivalent,
        median=round(median(needed)) if needed else None,
        most=max(needed, default=None),
        oracles=tuple(Counter(f.by or "unknown" for f in killed).most_common()),
    )


@dataclass(frozen=True, slots=True)
class PairTable:
    """How many programs have an op that reads another's result: a row an op, a column a reader."""

    ops: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]

    @property
    def reached(self) -> int:
        return sum(n > 0 for row in self.rows for n in row)


def pair_table(generator: dict[str, int]) -> PairTable:
    """The counts "pair: A > B" over all ops that occur in one."""
    pairs = {}
    for key, count in generator.items():
        first, sign, reader = key.removeprefix("pair: ").partition(" > ")
        if key.startswith("pair: ") and sign and count > 0:
            pairs[first, reader] = count
    ops = tuple(sorted({op for pair in pairs for op in pair}))[:100]
    return PairTable(ops, tuple(tuple(pairs.get((a, b), 0) for b in ops) for a in ops))


#: Element types in HLO's words, in the order of columns; others follow by name.
_ELEMENTS = ("pred", "s32", "s64", "f32", "f64", "c64", "c128", "tuple")


@dataclass(frozen=True, slots=True)
class SurveyRow:
    """One executor: modules looked into, opcodes, opcodes with an element type, and how many of these only once."""

    executor: str
    modules: int
    opcodes: int
    typed: int
    once: int


@dataclass(frozen=True, slots=True)
class OpcodeRow:
    """One opcode: modules by element type (0 for none), and the executors that never left it."""

    opcode: str
    modules: tuple[int, ...]
    never: str


@dataclass(frozen=True, slots=True)
class OpcodeTable:
    """The whole survey."""

    executors: tuple[SurveyRow, ...]
    elements: tuple[str, ...]
    rows: tuple[OpcodeRow, ...]


def opcode_table(surveys: Sequence[Survey]) -> OpcodeTable:
    """One row an executor, and one an opcode, with its kind where it has one: "fusion kLoop", "custom-call TopK"."""
    counts: Counter[tuple[str, str]] = Counter()
    on: dict[str, set[str]] = {}
    executors = []
    for survey in surveys:
        opcodes = set()
        for words, modules in survey.opcodes.items():
            opcode, element = _split(words)
            opcodes.add(opcode)
            counts[opcode, element] += modules
            on.setdefault(opcode, set()).add(survey.executor)
        once = sum(n == 1 for n in survey.opcodes.values())
        executors.append(SurveyRow(survey.executor, survey.modules, len(opcodes), len(survey.opcodes), once))
    found = {element for _, element in counts}
    elements = (*(e for e in _ELEMENTS if e in found), *sorted(found - {*_ELEMENTS}))
    rows = tuple(
        OpcodeRow(
            opcode,
            tuple(counts[opcode, element] for element in elements),
            ", ".join(s.executor for s in surveys if s.executor not in on[opcode]),
        )
        for opcode in sorted(on)
    )
    return OpcodeTable(tuple(executors), elements, rows)


def _split(words: str) -> tuple[str, str]:
    """`("fusion kLoop", "f32")` of "fusion f32 kLoop"."""
    opcode, _, rest = words.partition(" ")
    element, _, detail = rest.partition(" ")
    return f"{opcode} {detail}".strip(), element
