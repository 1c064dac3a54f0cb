"""Soundness by construction: a hostile implementation that takes every freedom of a model never leaves the enclosure."""

import numpy as np
import pytest
from enclosure_programs import chain, complex_program, indexed_program, random_program

from oracle.enclosure import IEEE, MODELS, XLA, enclose
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder
from tests.oracle.enclosure.enclosure_report import escapes, main, tightness, with_all_slots

pytestmark = pytest.mark.once


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("length", [1, 3, 8])
def test_random_programs_stay_inside(model, length):
    for seed in range(120):
        program, inputs = random_program(np.random.default_rng((length, seed)), length)
        found, first = escapes(with_all_slots(program), inputs, model, model, 3, seed)
        assert not found, f"seed {seed}: {first}"


def test_contractions_and_rewrites_stay_inside():
    for seed in range(120):
        program, inputs = chain(np.random.default_rng((99, seed)))
        found, first = escapes(program, inputs, XLA, XLA, 3, seed)
        assert not found, f"seed {seed}: {first}"


def test_a_constant_that_was_gathered_is_gathered_again():
    """(2 z)(2 z) may become (z z) 4, and its product with a quotient by a constant (z z z z)(4 / c)."""
    b = GraphBuilder()
    z = b.input("F64", (4096,))
    y = 2.0 * z
    square = y * y
    program = b.build((square / 0.001) * square)
    found, first = escapes(program, [np.random.default_rng(1).uniform(1, 2, 4096)], XLA, XLA, 16, 0)
    assert not found, first


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_complex_programs_stay_inside(model):
    for seed in range(50):
        program, inputs = complex_program(np.random.default_rng((5, seed)), 6)
        found, first = escapes(program, inputs, model, model, 3, seed)
        assert not found, f"seed {seed}: {first}"


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_indexed_programs_stay_inside(model):
    undecided = 0
    for seed in range(30):
        program, inputs = indexed_program(np.random.default_rng((6, seed)))
        found, first = escapes(program, inputs, model, model, 3, seed)
        assert not found, f"seed {seed}: {first}"
        undecided += sum(int((x.lo < x.hi).sum()) for x in enclose(program, inputs, model))
    assert undecided > 100  # some index was undecided, and its neighbours taken in


def test_the_test_can_fail():
    """A platform that flushes and contracts leaves the IEEE enclosure; budgets that are halved are exceeded."""
    found = 0
    for seed in range(60):
        program, inputs = chain(np.random.default_rng((99, seed)))
        found += escapes(program, inputs, XLA, IEEE, 2, seed)[0]
    assert found > 30

    class Tight(type(XLA)):
        def budget(self, op, dtype):
            return super().budget(op, dtype) / 2

    b = GraphBuilder()
    program = b.build(b.apply(ops.Exp(), b.input(DType.F32, (64,))))
    x = np.linspace(-5, 5, 64, dtype=np.float32)
    assert escapes(program, [x], XLA, Tight("xla", flush=True), 20, 0)[0] > 5


def test_the_hull_of_many_runs_is_not_much_narrower():
    """Tightness: the median width is at most four times the spread of what 32 hostile runs gave."""
    for kind, least in (("real", 0.95), ("complex", 0.75)):
        seen = tightness(kind, XLA, 30)
        assert seen.decided >= least * seen.elements, f"{kind}: {seen}"
        assert np.median(seen.ratios) <= 4, f"{kind}: {seen}"


def test_a_second_of_the_long_run(capsys):
    """`python -m tests.oracle.enclosure.enclosure_report soundness --runs 100000`, for as long as a test may take."""
    assert main(["soundness", "--runs", "48", "--seed", "1000"]) == 0
    assert "0 escapes" in capsys.readouterr().out


def test_the_command_that_tells_how_tight_they_are(capsys):
    assert main(["tightness", "--programs", "4", "--model", "ieee"]) == 0
    out = capsys.readouterr().out
    assert out.count("elements decided") == 4
