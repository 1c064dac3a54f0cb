"""Arb and the rules, independent of each other, meet; Arb decides some of what intervals leave open."""

from dataclasses import replace

import numpy as np
import pytest
from enclosure_programs import chain, random_program
from enclosure_report import with_all_slots
from perturbed import Perturbed

from oracle.enclosure import IEEE, MODELS, XLA, enclose
from oracle.enclosure.truth import arb_values, bounds, narrowed
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Add, Divide, Exp, Log, Multiply, Pow, Sin
from tenferro_ref.program import GraphBuilder


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("make", [lambda rng: random_program(rng, 5), chain], ids=["programs", "chains"])
def test_arb_meets_the_enclosure_and_holds_hostile_runs(make, model):
    said = 0
    for seed in range(25):
        program, inputs = make(np.random.default_rng((21, seed)))
        program = with_all_slots(program)
        cut = narrowed(program, inputs, model)  # raises where they do not meet
        outputs = Perturbed(model, np.random.default_rng(seed)).run(program, inputs)
        for e, o in zip(cut, outputs, strict=True):
            assert e.contains(o).all(), seed
        values = arb_values(program, inputs, model)
        said += sum(v is not None for s in program.output_slots for v in values[s].reshape(-1))
    assert said > 300


def test_arb_decides_what_an_interval_leaves_open():
    """The sine of what is not known exactly, beyond the range in which the rule looks for extrema."""
    b = GraphBuilder()
    x = b.input(DType.F64, ())
    huge = b.apply(Multiply(), b.apply(Exp(), x), b.constant(2.0**33, DType.F64))
    p = b.build(b.apply(Sin(), huge))
    (wide,) = enclose(p, [np.asarray(0.7)], IEEE)
    (cut,) = narrowed(p, [np.asarray(0.7)], IEEE)
    assert (wide.lo, wide.hi) == (-1, 1)
    assert float(cut.hi - cut.lo) < 1e-4
    assert cut.contains(np.sin(np.exp(0.7) * 2.0**33))


def test_a_wrong_rule_would_be_noticed(monkeypatch):
    b = GraphBuilder()
    x = b.input(DType.F64, (3,))
    p = b.build(b.apply(Add(), x, x))

    def off(*given):
        (e,) = enclose(*given)
        return [replace(e, lo=e.lo + 1e-9, hi=e.hi + 1e-9)]

    monkeypatch.setattr("oracle.enclosure.truth.enclose", off)
    with pytest.raises(ArithmeticError, match="no value in common"):
        narrowed(p, [np.ones(3)], IEEE)


def test_arb_says_nothing_of_what_may_not_be_finite():
    b = GraphBuilder()
    x = b.input(DType.F32, (4,))
    ops = [b.apply(Log(), x), b.apply(Exp(), x), b.apply(Divide(), x, x), b.apply(Pow(), x, x)]
    p = b.build(*ops)
    values = arb_values(p, [np.float32([-1, 0, 100, np.nan])], XLA)
    known = [[v is not None for v in values[s]] for s in p.output_slots]
    assert known == [[False, False, True, False], [True, True, False, False], [True, False, True, False], [False] * 4]
    assert bounds(None, DType.F32) == (-np.inf, np.inf)
    low, high = bounds(values[p.output_slots[1]][1], DType.F32)
    assert low < 1 < high
