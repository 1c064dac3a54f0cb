"""What the optimiser passes make of a program: computed once for all that ask, executors under their pipelines and the tally.

In a campaign over the native executors half of the time went into passes that another executor had run on the same program before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tenferro_ref.compiler import PassResult, run_passes
from tenferro_ref.program import ExecProgram, GraphProgram, to_exec

#: Results that are kept: a batch of 32 programs has some 1,300 under the pipelines that have a name and those that are drawn.
_KEPT = 2048


@dataclass(frozen=True, eq=False)
class _Same:
    """A program by identity: comparing two equal ones by what is in them takes as long as a pass."""

    program: ExecProgram

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.program is other.program

    def __hash__(self) -> int:
        return id(self.program)


@lru_cache(maxsize=_KEPT)
def _executable(graph: _Same) -> ExecProgram:
    return to_exec(graph.program)


@lru_cache(maxsize=_KEPT)
def _after(program: _Same, name: str) -> PassResult:
    (result,) = run_passes(program.program, (name,))
    return result


def passed(graph: GraphProgram, names: Sequence[str]) -> list[PassResult]:
    """`run_passes` of the exec program of a graph; the same objects where it, or a part of the pipeline, was asked for before.

    Raises
    ------
    TenferroError
        What `to_exec` and `run_passes` raise.
    """
    program, results = _executable(_Same(graph)), list[PassResult]()
    for name in names:
        results.append(_after(_Same(program), name))
        program = results[-1].program
    return results


def compiled(graph: GraphProgram, names: Sequence[str]) -> ExecProgram:
    """`compile_std_to_exec`, as `passed`."""
    results = passed(graph, names)
    return results[-1].program if results else _executable(_Same(graph))


__all__ = ["compiled", "passed"]
