"""Arb and the rules, independent of each other, meet; Arb decides some of what intervals leave open."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from enclosure_programs import chain, random_program
from perturbed import Perturbed

from oracle.enclosure import IEEE, MODELS, XLA, enclose
from tenferro_ref.dtype import DType
from tenferro_ref.extensions.einsum import einsum
from tenferro_ref.ops import Add, Divide, Exp, Log, Multiply, Pow, Sin
from tenferro_ref.program import GraphBuilder
from tests.oracle.enclosure.enclosure_report import with_all_slots
from tools.truth import arb_values, bounds, narrowed

pytestmark = pytest.mark.once


#: `tools.truth` bounds the errors of correctly rounded operations.
ROUNDED = [m for m in MODELS.values() if not (m.tf32 or m.approximate)]


@pytest.mark.parametrize("model", ROUNDED, ids=lambda m: m.name)
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


EQUATIONS = [
    "ij,jk->ik",
    "ij,jk,kl->il",
    "ij,kl->jk",
    "ii->i",
    "ij->iji",
    "ij,ij,ik->k",
    "ij->",
    "i,i,i->i",
    "ijk,kj->i",
]


def magnitudes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Of all sizes, with much cancellation."""
    return np.round(rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape), 4)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=str)
@pytest.mark.parametrize("equation", EQUATIONS)
def test_arb_meets_an_einsum(equation, dtype, model):
    """Of known operands, and of results that are not known exactly; the true value of the former is inside."""
    rng = np.random.default_rng(5)
    arrays = [magnitudes(rng, (3,) * len(t)).astype(dtype.numpy) for t in equation.partition("->")[0].split(",")]
    for known in (True, False):
        b = GraphBuilder()
        operands = [b.input(dtype, v.shape) for v in arrays]
        p = b.build(einsum(equation, *(operands if known else [b.apply(Sin(), v) for v in operands])))
        (e,), (cut,) = enclose(p, arrays, model), narrowed(p, arrays, model)  # raises where they do not meet
        assert e.decided.all()
        values = arb_values(p, arrays, model)[p.output_slots[0]].reshape(-1)
        assert all(v is not None for v in values)
        if known:
            middle = np.array([float(v.mid()) for v in values]).astype(dtype.numpy).reshape(e.shape)
            assert e.contains(middle).all()
            assert cut.contains(middle).all()


@pytest.mark.parametrize("dtype", [DType.C32, DType.C64], ids=str)
@pytest.mark.parametrize("equation", EQUATIONS)
def test_the_true_complex_einsum_is_inside(equation, dtype):
    """Evaluated in Arb by real einsums of the parts: each product has an even number of imaginary factors, or an odd one."""
    rng = np.random.default_rng(6)
    shapes = [(3,) * len(t) for t in equation.partition("->")[0].split(",")]
    arrays = [(magnitudes(rng, s) + 1j * magnitudes(rng, s)).astype(dtype.numpy) for s in shapes]
    b = GraphBuilder()
    whole = b.build(einsum(equation, *(b.input(dtype, v.shape) for v in arrays)))
    b = GraphBuilder()
    parts = b.build(einsum(equation, *(b.input(DType.F64, v.shape) for v in arrays)))
    true = [0, 0]
    for turn in itertools.product((0, 1), repeat=len(arrays)):
        given = [np.asarray((v.real, v.imag)[k], np.float64) for v, k in zip(arrays, turn, strict=True)]
        made = arb_values(parts, given, IEEE)[parts.output_slots[0]]
        turns = sum(turn)
        true[turns % 2] = true[turns % 2] + np.array([v.mid() * (-1) ** (turns // 2) for v in made.reshape(-1)])
    for model in MODELS.values():
        (e,) = enclose(whole, arrays, model)
        assert e.decided.all()
        for part, value in zip(e.parts, true, strict=True):
            near = np.array([float(v) for v in value]).reshape(e.shape).astype(dtype.real.numpy)
            assert part.contains(near).all()


def test_arb_says_nothing_of_an_einsum_with_unknown_factors():
    b = GraphBuilder()
    x, y = b.input(DType.F32, (2, 2)), b.input(DType.F32, (2,))
    p = b.build(einsum("ij,j->i", b.apply(Log(), x), y))
    values = arb_values(p, [np.float32([[1, 2], [-1, 3]]), np.float32([1, 2])], XLA)[p.output_slots[0]]
    assert [v is not None for v in values] == [True, False]


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

    monkeypatch.setattr("tools.truth.enclose", off)
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
