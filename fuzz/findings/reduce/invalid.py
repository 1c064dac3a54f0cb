"""Invalid cases made simpler: the same fault in less of a program must raise the same error.

A few simpler cases are tried; an invalid program that is changed at random is invalid in another way, or not at all.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz.findings.reduce.search import Reduction
from fuzz.generate.faults import simplest_of
from fuzz.generate.values.recipes import Recipe, array_of
from oracle.case import Case, Refusal, live
from tenferro_ref.program import GraphProgram, Instruction


def reduce_invalid(case: Case, still_fails: Callable[[Case], bool], budget_seconds: float, max_tests: int) -> Reduction:
    """The first of the simpler cases that fails, if the case itself does; the budget is that of `reduce_case`."""
    start, tests, failing, complete = time.monotonic(), 0, [], False
    for candidate in itertools.chain([case], _simpler(case)):
        if tests >= max_tests or time.monotonic() - start >= budget_seconds:
            break
        tests += 1
        if fails := still_fails(candidate):
            failing.append(candidate)
        if fails == (candidate is not case):  # the case itself does not fail, or a simpler one does
            complete = True
            break
    else:
        complete = True
    return Reduction(
        [case, *failing][-1], tests, time.monotonic() - start, (), reproduced=bool(failing), complete=complete
    )


def _simpler(case: Case) -> Iterator[Case]:
    """The faulty instruction alone; the simplest program with that fault; the program without the code that the fault does not need."""
    due, program = case.refusal, case.program
    if due is None:
        return
    if due.at is not None and not due.late:
        yield from _alone(case, due, due.at)
    simplest = simplest_of(due.fault)
    if simplest is not None and len(simplest.program.instructions) < len(program.instructions):
        yield simplest
    if due.at is not None:
        kept = live(replace(program, output_slots=program.instructions[due.at].output_slots))
        yield Case(kept, case.inputs, replace(due, at=len(kept.instructions) - 1))


def _alone(case: Case, due: Refusal, at: int) -> Iterator[Case]:
    """The faulty instruction on inputs of the types of its operands; nothing if only a run knows their extents."""
    program, faulty = case.program, case.program.instructions[at]
    sound = replace(program, instructions=program.instructions[:at], output_slots=()).slot_types
    arrays = dict(zip(program.input_slots, case.inputs, strict=True))
    types = {slot: sound[slot] for slot in faulty.input_slots}
    if not all(type_.is_static for type_ in types.values()):
        return
    for slot, type_ in types.items():
        arrays.setdefault(slot, array_of(Recipe("simple", 0), type_.dtype, type_.static_shape))
    new = {slot: i for i, slot in enumerate(types)}
    ins = Instruction(faulty.op, tuple(new[slot] for slot in faulty.input_slots), (len(new),))
    alone = GraphProgram((ins,), tuple(new.values()), tuple(types.values()), (len(new),), len(new) + 1, program.policy)
    yield Case.of(alone, [arrays[slot] for slot in types], replace(due, at=0))
