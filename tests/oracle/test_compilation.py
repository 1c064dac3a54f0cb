"""Passes that are run once for all who ask for them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.generate.strategies import cases
from oracle.case import Case
from oracle.compilation import compiled, passed
from tenferro_ref.compiler import DECOMPOSED, DEFAULT_PIPELINE, PASSES, compile_std_to_exec, run_passes
from tenferro_ref.program import GraphBuilder, GraphProgram, to_exec


@settings(max_examples=30, deadline=None)
@given(cases(), st.lists(st.sampled_from(list(PASSES)), max_size=9))
def test_gives_what_the_compiler_gives(case: Case, names: Sequence[str]) -> None:
    for pipeline in (names, DEFAULT_PIPELINE, DECOMPOSED, names):
        assert passed(case.program, pipeline) == run_passes(to_exec(case.program), pipeline)
        assert compiled(case.program, pipeline) == compile_std_to_exec(case.program, pipeline)


def test_a_common_beginning_is_computed_once() -> None:
    graph = negated()
    default, decomposed = passed(graph, DEFAULT_PIPELINE), passed(graph, DECOMPOSED)
    shared = next(i for i, (a, b) in enumerate(zip(DEFAULT_PIPELINE, DECOMPOSED, strict=False)) if a != b)
    assert shared > 0
    assert all(a is b for a, b in zip(default[:shared], decomposed[:shared], strict=True))
    assert compiled(graph, DEFAULT_PIPELINE) is default[-1].program
    assert compiled(graph, ()) is compiled(graph, ())


def test_an_equal_program_is_another_one() -> None:
    one, other = negated(), negated()
    assert one == other
    assert compiled(one, DEFAULT_PIPELINE) is not compiled(other, DEFAULT_PIPELINE)


def negated() -> GraphProgram:
    b = GraphBuilder()
    return b.build(-b.input("F64", (2, 3)))
