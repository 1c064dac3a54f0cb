"""Executors with a fault, small programs that show it, and the disagreement as triage begins with it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fuzz.findings.suspect import Suspect, inspect
from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import Execution, Executor, NativeExecutor, Pool
from oracle.peers.errors import EngineFault
from oracle.verdict import Verdict
from tenferro_ref.ops import Abs, Negate, Op
from tenferro_ref.program import GraphBuilder


@dataclass
class Wrong(Executor):
    """Computes a negation as an absolute value, with `after` only that of such a result; counts its runs.

    With `outputs` it refuses programs of more outputs.
    """

    after: type[Op] | None = None
    outputs: int = 99
    programs_a_module: int = 1
    name: str = "wrong"
    model: str = "ieee"
    runs: int = 0

    def run(self, case: Case) -> Execution:
        self.runs += 1
        program = case.program
        if len(program.output_slots) > self.outputs:
            raise EngineFault(engine=self.name, detail="too many outputs")
        made = {s: type(ins.op) for ins in program.instructions for s in ins.output_slots}
        instructions = tuple(
            replace(ins, op=Abs()) if isinstance(ins.op, Negate) and self._at(made.get(ins.input_slots[0])) else ins
            for ins in program.instructions
        )
        return NativeExecutor(passes=()).run(Case(replace(program, instructions=instructions), case.inputs))

    def _at(self, maker: type[Op] | None) -> bool:
        return self.after in (None, maker)


def chain(*ops: type[Op], values: Sequence[float] = (3.0, 2.0, 5.0)) -> Case:
    b = GraphBuilder()
    x = b.input("F64", (len(values),))
    for op in ops:
        x = b.apply(op(), x)
    return Case.of(b.build(x), [np.array(values)])


def suspect_of(executor: Executor, case: Case, verdict: Verdict = Verdict.MISMATCH) -> Suspect:
    answer = judge(executor, Reference(case, NativeExecutor()))
    assert answer.verdict is verdict
    with contextlib.closing(Pool()) as pool:
        return inspect(executor, case, answer, pool)
