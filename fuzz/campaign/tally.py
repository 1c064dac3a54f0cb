"""What a batch adds to the counts of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fuzz.generate.describe import of_derivation, of_inputs, of_program
from fuzz.store.counts import Counts, Key
from oracle.case import Case, by_program
from oracle.verdict import Answer, Verdict
from tenferro_ref.program import GraphProgram

#: A program, its features, and its ops with the dtypes of their results.
_Described: TypeAlias = tuple[GraphProgram, set[Key], set[tuple[str, str]]]


@dataclass
class Tally(Counts):
    """Counts that programs and answers are added to."""

    _last: _Described | None = field(default=None, init=False, repr=False, compare=False)

    def add_cases(self, cases: Sequence[Case]) -> None:
        """Count the programs of a batch and their inputs."""
        for group in by_program(cases):
            first = cases[group[0]]
            if first.refusal:
                self.sums["fault", first.refusal.kind, first.refusal.fault] += len(group)
            else:
                self.sums.update(dict.fromkeys(self._describe(first.program)[1], len(group)))
                self.sums.update({("feature", name): len(group) for name in of_derivation(first)})
        values = of_inputs([case for case in cases if not case.refusal])
        self.sums.update({("feature", name): count for name, count in values.items()})

    def _describe(self, program: GraphProgram) -> _Described:
        """What is the same for all input sets of a program, which come in a row."""
        if self._last is None or self._last[0] is not program:
            types = program.slot_types
            cells = {(i.op.name, types[i.output_slots[0]].dtype.name) for i in program.instructions}
            self._last = program, {("feature", name) for name in of_program(program)}, cells
        return self._last

    def add_answer(self, case: Case, answer: Answer) -> None:
        """Count the answer of an executor. The cell of a disagreement is counted by `blame`."""
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
            return
        types = case.program.slot_types
        instructions = case.program.instructions
        for op, dtype in self._describe(case.program)[2]:
            self.sums["cell", op, dtype, name, verdict.value] += 1
        if instructions and ulp is not None:
            last = instructions[-1]
            self.raise_peak(("cell_ulp", last.op.name, types[last.output_slots[0]].dtype.name, name), ulp)

    def blame(self, op: str, dtype: str, executor: str, verdict: Verdict) -> None:
        """Count a disagreement where triage located it."""
        self.sums["cell", op.partition("(")[0] or "(none)", dtype, executor, verdict.value] += 1

    def add_opcodes(self, executor: str, opcodes: Sequence[str]) -> None:
        """Count what is left of one module after optimisation; nothing if the executor does not tell."""
        if opcodes:
            self.sums["number", executor, "surveyed"] += 1
            self.sums.update(("opcode", executor, opcode) for opcode in opcodes)
