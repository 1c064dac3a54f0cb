"""Why a reduced finding is one: the expected value instruction by instruction, the first wrong instruction, and the passes.

What a bundle's README and a report's page show of a finding beside what was observed.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from fuzz.explanation import Explanation, SegmentNote, Snapshot, Step
from fuzz.findings.suspect import evaluate_all, first_wrong
from fuzz.records import Finding
from oracle.case import Case
from oracle.compare import interval_words
from oracle.enclosure import MODELS, Enclosure, enclose
from oracle.enclosure.model import FREEDOMS, Model
from oracle.peers import DerivativeExecutor, Execution, Executor, NativeExecutor, PjrtExecutor, attempt
from oracle.peers.modules import module_text
from oracle.staged import decomposing
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.compiler import DEFAULT_PIPELINE, compile_std_to_exec, run_passes
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import Instruction, Program, print_program, to_exec
from tenferro_ref.runtime import segment_exec_program
from tenferro_ref.runtime.fusion import plan_fusion

#: Elements of each value that are shown.
_SHOWN = 4
#: Verdicts of programs that are compiled once more, to see what the passes make of them.
_REPEATED = frozenset({Verdict.MISMATCH.value, Verdict.ERROR.value})
#: Characters of an optimised module that are kept.
_OPTIMISED = 20_000


def explained(finding: Finding, executor: Executor, case: Case) -> Finding:
    """The finding, which `executor` shows on the reduced `case`, with all that explains it."""
    model, mismatch = MODELS[executor.model], finding.verdict == Verdict.MISMATCH.value
    steps = _enclosures(case, model) if case.refusal is None and mismatch else {}
    why, followed = _why(finding, executor, case, steps)
    guilty = _guilty(finding, executor, case)
    lines = finding.program_text.split("\n")
    return replace(
        finding,
        explanation=Explanation(
            why=why,
            steps=tuple(_steps(finding, case, steps)) if followed else (),
            model=model.name if followed else "",
            freedoms=_freedoms(model) if followed else (),
            guilty_lines=tuple(n for n, line in enumerate(lines) if guilty is not None and _writes(line, guilty)),
            guilty_stablehlo=() if guilty is None else _stablehlo_lines(finding, case, guilty),
            snapshots=_snapshots(executor, case) if case.refusal is None and finding.verdict in _REPEATED else (),
            segments=_segments(case) if case.refusal is None else (),
        ),
    )


def _enclosures(case: Case, model: Model) -> dict[int, Enclosure]:
    """Of every slot; none where an op has no rule."""
    try:
        return enclose(case.program, case.inputs, model, all_slots=True, arguments=len(case.arguments))
    except TenferroError:
        return {}


def _freedoms(model: Model) -> tuple[str, ...]:
    return tuple(FREEDOMS[field.name] for field in fields(model) if getattr(model, field.name) is True)


def _why(finding: Finding, executor: Executor, case: Case, steps: dict[int, Enclosure]) -> tuple[str, bool]:
    """In words, and whether the enclosures of the steps are the reason."""
    if case.refusal is not None:
        when = "when it runs" if case.refusal.late else "before anything is compiled or run"
        return (
            f"The program is invalid: it was made to break one rule ({case.refusal.fault}), and is sound otherwise. So it must raise "
            f"{case.refusal}, {when}. Kind, op and axis are compared, not the message."
        ), False
    if finding.verdict != Verdict.MISMATCH.value:
        return (
            "The program is valid: it passes the shape and dtype rules of every op, and the native executor runs it. No input makes "
            "it undefined. A correct executor gives a result, or refuses it with a typed error before it compiles anything; it does "
            "not do what is quoted above."
        ), False
    native = attempt(NativeExecutor(), case)
    if not isinstance(native, Execution):
        return f"The native executor refuses it with a typed error ({native}); so must every other executor.", False
    if executor != NativeExecutor() and executor.bit_exact(case):
        return (
            "The two executors differ only in how they schedule the same instructions, so they must agree bit for bit; no tolerance "
            "is involved."
        ), False
    if decomposing(case.program):
        return (
            "The factors of a decomposition are not unique, so nothing that is computed from them is known by itself. The executor "
            "was asked for the operands and results of each decomposition beside the outputs: the op is held to its backward-error "
            "bound on those operands, and everything else to the set of all values that a correct implementation may have where the "
            "executor's own factors are given (docs/explanation/enclosures.md). What is quoted above is outside one of the two."
        ), False
    if finding.primal_text:
        return (
            f"{finding.executor} differentiates the reduced program in another way. Both ways are equal over the real numbers, and each was "
            "enclosed in real arithmetic: the two enclosures of the element quoted above have no value in common "
            "(docs/explanation/enclosures.md)."
        ), False
    if not steps:
        return (
            "What is quoted above is outside the set of all values that a correct implementation may have "
            "(docs/explanation/enclosures.md)."
        ), False
    return (
        f"No tolerance is involved. The table follows the program one instruction at a time under the arithmetic model "
        f"{executor.model}: each entry is the set of all values that a correct implementation may have at that point, given those of "
        "the line above, with every freedom that the model grants (rounding, order of sums, contraction, flushing). The last column "
        "is what the reference computed. The observed value is outside the set of the program's output, so no sequence of permitted "
        "roundings leads to it."
    ), True


def _steps(finding: Finding, case: Case, steps: dict[int, Enclosure]) -> Iterator[Step]:
    wrong = next((tuple(json.loads(row.index)) for row in finding.values if row.outside), ())
    values = evaluate_all(case)
    for slot, what in _instructions(case):
        for index in _shown(steps[slot].shape, wrong):
            words = interval_words(steps[slot], index)
            number = repr(values[slot][index].item()) if slot in values else ""
            yield Step(f"%{slot} = {what}", str(case.program.slot_types[slot]), str(list(index)), words, number)


def _instructions(case: Case) -> Iterator[tuple[int, str]]:
    for number, slot in enumerate(case.program.input_slots):
        yield slot, f"input {number}"
    for ins in case.program.instructions:
        for slot in ins.output_slots:
            yield slot, _call(ins)


def _call(ins: Instruction) -> str:
    return f"{ins.op.name}({', '.join(f'%{slot}' for slot in ins.input_slots)})"


def _shown(shape: tuple[int, ...], wrong: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Elements of a value that the table shows: the one that is wrong in the end if it has such a one, else the first ones."""
    if len(wrong) == len(shape) and all(i < n for i, n in zip(wrong, shape, strict=True)):
        return [wrong]
    return list(itertools.islice(np.ndindex(shape), _SHOWN))


# --- the guilty instruction ---------------------------------------------------------------------------------------------


def _guilty(finding: Finding, executor: Executor, case: Case) -> int | None:
    """The slot that the first wrong instruction writes, in an invalid program the faulty one; None if it is not known."""
    if case.refusal is not None:
        outputs = () if case.refusal.at is None else case.program.instructions[case.refusal.at].output_slots
        return outputs[0] if outputs else None
    if isinstance(executor, DerivativeExecutor):
        return None
    computed = [ins for ins in case.program.instructions if not isinstance(ins.op, ops.Constant)]
    if len(computed) == 1:
        return computed[0].output_slots[0]
    if finding.verdict == Verdict.MISMATCH.value:
        return first_wrong(executor, case)
    named = [ins for ins in computed if ins.op.name == finding.op.partition("(")[0]]
    return named[0].output_slots[0] if len(named) == 1 else None


def _writes(line: str, slot: int) -> bool:
    """Whether a line of a program's text is the instruction that writes a slot."""
    return re.match(rf"\s*(%\d+(: [^,=]*)?, )*%{slot}\b[^(=]*=", line) is not None


def _stablehlo_lines(finding: Finding, case: Case, guilty: int) -> tuple[int, ...]:
    """Lines of the module that the guilty instruction was written as: those that the module of what is before it lacks."""
    at = case.program.producers.get(guilty)
    if at is None or case.source is not None or case.refusal is not None:
        return ()
    try:
        before, upto = (_statements(module_text(_first(case, n))) for n in (at, at + 1))
    except TenferroError:
        return ()
    lines = finding.stablehlo.split("\n")
    numbers = [n for n, line in enumerate(lines) if _statements(line)]
    if [lines[n] for n in numbers][: len(upto)] != upto:
        return ()
    return tuple(numbers[len(before) : len(upto)])


def _first(case: Case, count: int) -> Case:
    """The first instructions alone, all of their results outputs."""
    program: Program = case.program
    kept = program.instructions[:count]
    outputs = tuple(slot for ins in kept for slot in ins.output_slots) or program.input_slots
    return replace(case, program=replace(program, instructions=kept, output_slots=outputs))


def _statements(text: str) -> list[str]:
    return re.findall(r"^    %\d+(?::\d+)? = .*$", text, flags=re.M)


# --- before and after the passes ----------------------------------------------------------------------------------------


def _snapshots(executor: Executor, case: Case) -> tuple[Snapshot, ...]:
    """The program before our passes and after each that changes it; for a plugin, what its compiler is given and leaves."""
    if isinstance(executor, PjrtExecutor):
        return _optimised(executor, case)
    passes = executor.passes if isinstance(executor, NativeExecutor) else ()
    program = to_exec(case.program)
    snapshots = [Snapshot("before the passes", (), print_program(program))]
    for name in passes or DEFAULT_PIPELINE:
        try:
            (result,) = run_passes(program, (name,))
        except TenferroError as error:
            return (*snapshots, Snapshot(f"{name} fails", (str(error),), print_program(program)))
        program = result.program
        if result.changes:
            snapshots.append(Snapshot(f"after {name}", result.changes, print_program(program)))
    return tuple(snapshots) if len(snapshots) > 1 else ()


def _optimised(executor: PjrtExecutor, case: Case) -> tuple[Snapshot, ...]:
    """The HLO module before and after the plugin's passes, as it dumps them; none if it dumps nothing."""
    with tempfile.TemporaryDirectory() as folder:
        attempt(executor.with_options({"xla_dump_to": folder, "xla_dump_hlo_as_text": True}), case)
        snapshots = []
        for when in ("before", "after"):
            texts = [p.read_text("utf-8", "replace") for p in sorted(Path(folder).glob(f"*{when}_optimizations.txt"))]
            if texts:
                snapshots.append(Snapshot(f"HLO {when} optimisation", (), texts[-1][:_OPTIMISED]))
    return tuple(snapshots)


def _segments(case: Case) -> tuple[SegmentNote, ...]:
    """How the native executor runs the program after its passes; none for one that it refuses."""
    try:
        program = compile_std_to_exec(case.program)
        segments = segment_exec_program(program)
    except TenferroError:
        return ()
    notes = []
    for segment in segments:
        instructions = [program.instructions[n] for n in segment.instructions]
        words = tuple(f"{', '.join(f'%{s}' for s in ins.output_slots)} = {_call(ins)}" for ins in instructions)
        last = {s for ins in instructions for s, is_last in zip(ins.input_slots, ins.last_use, strict=True) if is_last}
        fuses = segment.kind == "fused" and plan_fusion(program, segment) is not None
        notes.append(SegmentNote(segment.kind, words, fuses, tuple(f"%{slot}" for slot in sorted(last))))
    return tuple(notes)
