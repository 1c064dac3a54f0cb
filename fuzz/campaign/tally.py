"""What a batch adds to the counts of a campaign."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TypeAlias

from fuzz.findings.naming import of_cell
from fuzz.generate.describe import of_inputs, of_origin, of_program
from fuzz.records import Held
from fuzz.store.counts import Counts
from oracle.case import Case, by_program
from oracle.compilation import passed
from oracle.verdict import ORIGINS, Answer, Verdict
from tenferro_ref import ops
from tenferro_ref.compiler import DEFAULT_PIPELINE
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import GraphProgram

#: An op with the dtype of its result.
_Cell: TypeAlias = tuple[str, str]
#: Characters of a refusal's reason that are kept.
_REASON = 200


class Tally(Counts):
    """Counts that programs and answers are added to."""

    def add_cases(self, cases: Sequence[Case]) -> None:
        """Count the programs of a batch and their inputs."""
        for group in by_program(cases):
            first = cases[group[0]]
            if first.refusal:
                self.sums["fault", first.refusal.kind, first.refusal.fault] += len(group)
            else:
                names = {*of_origin(first), *of_program(first.program), *coverage(first.program)}
                self.sums.update({("feature", name): len(group) for name in names})
        values = of_inputs([case for case in cases if not case.refusal])
        self.sums.update({("feature", name): count for name, count in values.items()})

    def add_answer(self, case: Case, answer: Answer, number: int | None = None) -> None:
        """Count the answer of an executor to program `number`. The cells of a disagreement are counted by `blame`."""
        name, comparison, verdict = answer.executor, answer.comparison, answer.verdict
        self.sums["verdict", name, verdict.value] += 1
        for what in ("elements", "decided", "tight", "forgiven"):
            self.sums["number", name, what] += getattr(comparison, what)
        for phase, seconds in answer.seconds.items():
            self.add_seconds(("seconds", name, phase), seconds)
            if phase in ORIGINS:
                self.sums["number", name, phase] += 1
        if case.refusal is not None:
            self.sums["due", case.refusal.kind, name, verdict.value] += 1
            self.sums["number", name, "due"] += verdict is not Verdict.UNSUPPORTED
            return
        self.widths[name] += comparison.widths
        self.sums.update({("ulps", op, dtype, name, bins): count for op, dtype, bins, count in answer.by_input})
        ulp = comparison.worst_ulp
        if ulp is not None:
            self.raise_peak(("worst", name), ulp)
        if verdict.is_disagreement:
            return
        cells = _cells(case.program)
        if verdict is Verdict.UNSUPPORTED:
            self._refused(cells, answer, number)
            return
        held = [(f.name, getattr(comparison, f.name)) for f in fields(Held)] if comparison.elements else []
        for cell in cells:
            self._count(cell, answer, number)
            for count, value in held:
                self.sums["held", *cell, name, count] += value
        computed = [i for i in case.program.instructions if not isinstance(i.op, ops.Constant)]
        if len(computed) == 1 and ulp is not None:
            (only,) = computed
            dtype = case.program.slot_types[only.output_slots[0]].dtype.name
            self.raise_peak(("cell_ulp", only.op.name, dtype, name), ulp)

    def _count(self, cell: _Cell, answer: Answer, number: int | None) -> None:
        """Count an answer that says something about the op of a cell."""
        key = (*cell, answer.executor, answer.verdict.value)
        self.sums["cell", *key] += 1
        if number is not None:
            self.raise_peak(("example", *key), number)

    def _refused(self, cells: set[_Cell], answer: Answer, number: int | None) -> None:
        """Count a refusal for the op that it names, or the only one that there is; the others were beside it."""
        named = (answer.error or {}).get("op")
        chosen = {cell for cell in cells if cell[0] == named} or cells
        guilty = chosen if len(chosen) == 1 else set()
        for cell in cells - guilty:
            self.sums["beside", *cell, answer.executor, answer.verdict.value] += 1
        reason = str((answer.error or {}).get("reason") or answer.reason)
        for cell in guilty:
            self._count(cell, answer, number)
            self.sums["refusal", *cell, answer.executor, reason[:_REASON]] += 1

    def blame(self, case: Case, op: str, dtype: str, answer: Answer, number: int | None = None) -> None:
        """Count a disagreement for the op in which triage located it; the others of the program were beside it."""
        guilty = of_cell(op), dtype
        self._count(guilty, answer, number)
        for cell in _cells(case.program) - {guilty}:
            self.sums["beside", *cell, answer.executor, answer.verdict.value] += 1

    def add_opcodes(self, executor: str, opcodes: Sequence[str]) -> None:
        """Count what is left of one module after optimisation; nothing if the executor does not tell."""
        if opcodes:
            self.sums["number", executor, "surveyed"] += 1
            self.sums.update(("opcode", executor, opcode) for opcode in opcodes)


def _cells(program: GraphProgram) -> set[_Cell]:
    types = program.slot_types
    return {(ins.op.name, types[ins.output_slots[0]].dtype.name) for ins in program.instructions}


def coverage(program: GraphProgram) -> Iterator[str]:
    """Ops that read another's result, and the passes that change the program."""
    for ins in program.instructions:
        before = {program.producers[slot] for slot in ins.input_slots if slot in program.producers}
        yield from (f"pair: {program.instructions[n].op.name} > {ins.op.name}" for n in before)
    with contextlib.suppress(TenferroError):
        for name, result in zip(DEFAULT_PIPELINE, passed(program, DEFAULT_PIPELINE), strict=True):
            if result.changes:
                yield f"changed by: {name}"
