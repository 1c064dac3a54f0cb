"""Counts of a campaign: what a batch adds to them, and the records that a report shows, made from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fuzz.generate.describe import of_inputs, of_program
from fuzz.records import Cell, ErrorKind, Survey, Totals
from oracle.case import Case, by_program
from oracle.verdict import Answer, Verdict
from tenferro_ref.ops import ELEMENTWISE, INDEXING, REDUCTIONS, STRUCTURAL, Constant, DotGeneral, Extension
from tenferro_ref.program import GraphProgram

#: Points of the accuracy plot kept an executor.
WIDTHS = 4000

_GROUPS = {
    op.__name__: group
    for group, ops in (
        ("elementwise", ELEMENTWISE),
        ("structural", (*STRUCTURAL, Constant)),
        ("reduction", REDUCTIONS),
        ("indexing", INDEXING),
        ("contraction", (DotGeneral,)),
        ("extension", (Extension,)),
    )
    for op in ops
}

Key = tuple[str, ...]
#: A program, its features, and its ops with the dtypes of their results.
_Known: TypeAlias = tuple[GraphProgram, set[Key], set[tuple[str, str]]]


@dataclass
class Tally:
    """Sums and maxima by key, and points.

    Attributes
    ----------
    sums
        `("verdict", executor, verdict)`, `("number", executor, what)`, `("seconds", executor, phase)`,
        `("cell", op, dtype, executor, verdict)`, `("feature", what)`, `("phase", what)`, `("opcode", executor, opcode)`,
        `("fault", kind of error, what)`, `("due", kind of error, executor, verdict)`.
    peaks
        `("worst", executor)`, `("cell_ulp", op, dtype, executor)`.
    widths
        Points of the accuracy plot by executor.
    """

    sums: Counter[Key] = field(default_factory=Counter)
    peaks: dict[Key, float] = field(default_factory=dict)
    widths: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    _last: _Known | None = field(default=None, init=False, repr=False, compare=False)

    def add_cases(self, cases: Sequence[Case]) -> None:
        """Count the programs of a batch and their inputs."""
        for group in by_program(cases):
            first = cases[group[0]]
            if first.refusal:
                self.sums["fault", first.refusal.kind, first.refusal.fault] += len(group)
            else:
                self.sums.update(dict.fromkeys(self._known(first.program)[1], len(group)))
        values = of_inputs([case for case in cases if not case.refusal])
        self.sums.update({("feature", name): count for name, count in values.items()})

    def _known(self, program: GraphProgram) -> _Known:
        """What is the same for all input sets of a program, which come in a row."""
        if self._last is None or self._last[0] is not program:
            types = program.slot_types
            cells = {(i.op.name, types[i.output_slots[0]].dtype.name) for i in program.instructions}
            self._last = program, {("feature", name) for name in of_program(program)}, cells
        return self._last

    def add_answer(self, case: Case, answer: Answer) -> None:
        name, comparison, verdict = answer.executor, answer.comparison, answer.verdict
        self.sums["verdict", name, verdict.value] += 1
        for what in ("elements", "decided", "forgiven"):
            self.sums["number", name, what] += getattr(comparison, what)
        for phase, seconds in answer.seconds.items():
            self.add_seconds(("seconds", name, phase), seconds)
        if case.refusal is not None:
            self.sums["due", case.refusal.kind, name, verdict.value] += 1
            self.sums["number", name, "due"] += verdict is not Verdict.UNSUPPORTED
            return
        self.widths[name] += comparison.widths
        ulp = comparison.worst_ulp
        if ulp is not None:
            self.raise_peak(("worst", name), ulp)
        if verdict.is_disagreement:
            return  # the op to blame is known only after triage
        types = case.program.slot_types
        instructions = case.program.instructions
        for op, dtype in self._known(case.program)[2]:
            self.sums["cell", op, dtype, name, verdict.value] += 1
        if instructions and ulp is not None:
            last = instructions[-1]
            self.raise_peak(("cell_ulp", last.op.name, types[last.output_slots[0]].dtype.name, name), ulp)

    def add_opcodes(self, executor: str, opcodes: Sequence[str]) -> None:
        """Count what is left of one module after optimisation; nothing if nobody can tell."""
        if opcodes:
            self.sums["number", executor, "surveyed"] += 1
            self.sums.update(("opcode", executor, opcode) for opcode in opcodes)

    def blame(self, op: str, dtype: str, executor: str, verdict: Verdict) -> None:
        """Count a disagreement where triage located it."""
        self.sums["cell", op.partition("(")[0] or "(none)", dtype, executor, verdict.value] += 1

    def add_seconds(self, key: Key, seconds: float) -> None:
        self.sums[key] += seconds  # type: ignore[assignment]  # Counter adds floats as well

    def raise_peak(self, key: Key, value: float) -> None:
        self.peaks[key] = max(self.peaks.get(key, 0.0), value)

    def update(self, other: Tally) -> None:
        self.sums.update(other.sums)
        for key, value in other.peaks.items():
            self.raise_peak(key, value)
        for name, points in other.widths.items():
            self.widths[name] += points

    # --- records -----------------------------------------------------------------------------------------------------

    def totals(self, executors: Iterable[str], unexplained: Counter[str]) -> tuple[Totals, ...]:
        return tuple(self._totals(name, unexplained[name]) for name in executors)

    def _totals(self, name: str, unexplained: int) -> Totals:
        verdicts = self.part("verdict", name)
        numbers = self.part("number", name)
        return Totals(
            executor=name,
            verdicts={v.value: verdicts[v.value] for v in Verdict if verdicts.get(v.value)},
            elements=numbers.get("elements", 0),
            decided=numbers.get("decided", 0),
            forgiven=numbers.get("forgiven", 0),
            worst_ulp=self.peaks.get(("worst", name)),
            seconds={k: round(v, 3) for k, v in self.part("seconds", name).items()},
            widths=tuple(self.widths[name][:WIDTHS]),
            due=numbers.get("due", 0),
            unexplained=unexplained,
        )

    def cells(self) -> tuple[Cell, ...]:
        cells: dict[tuple[str, str, str], dict[str, int]] = {}
        for key, count in sorted(self.sums.items()):
            if key[0] == "cell":
                _, op, dtype, executor, verdict = key
                cells.setdefault((op, dtype, executor), {})[verdict] = count
        return tuple(
            Cell(*key, verdicts, self.peaks.get(("cell_ulp", *key)), _GROUPS.get(key[0], ""))
            for key, verdicts in cells.items()
        )

    def errors(self, faults: Mapping[str, Iterable[str]]) -> tuple[ErrorKind, ...]:
        """One record for each kind of error; `faults` are the ways to raise it."""
        verdicts: dict[str, dict[str, dict[str, int]]] = {kind: {} for kind in faults}
        for key, count in sorted(self.sums.items()):
            if key[0] == "due":
                _, kind, executor, verdict = key
                verdicts.setdefault(kind, {}).setdefault(executor, {})[verdict] = count
        made = {kind: dict.fromkeys(names, 0) | self.part("fault", kind) for kind, names in faults.items()}
        return tuple(ErrorKind(kind, sum(n.values()), n, verdicts[kind]) for kind, n in made.items())

    def surveys(self, executors: Iterable[str]) -> tuple[Survey, ...]:
        made = {name: self.part("number", name).get("surveyed", 0) for name in executors}
        return tuple(Survey(name, modules, self.part("opcode", name)) for name, modules in made.items() if modules)

    def part(self, *prefix: str) -> dict[str, int]:
        """The sums whose key is `prefix` and one more word, by that word."""
        n = len(prefix)
        return {key[n]: value for key, value in sorted(self.sums.items()) if key[:n] == prefix and len(key) == n + 1}
