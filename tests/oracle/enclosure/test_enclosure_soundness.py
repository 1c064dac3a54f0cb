"""Soundness by construction: a hostile implementation that takes every freedom of a model never leaves the enclosure."""

from dataclasses import replace

import numpy as np
import pytest
from enclosure_programs import complex_program, indexed_program, random_program, values
from perturbed import Perturbed

from oracle.compare import compare
from oracle.enclosure import IEEE, MODELS, XLA, enclose
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Abs, Add, BroadcastInDim, Divide, DotGeneral, Exp, Multiply, Negate, ReduceSum, Sqrt
from tenferro_ref.program import GraphBuilder, print_program


def with_all_slots(program):
    return replace(program, output_slots=tuple(s for ins in program.instructions for s in ins.output_slots))


def escapes(program, inputs, taken, allowed, runs, seed):
    """How many runs of a platform `taken` leave the enclosure under `allowed`, and the first in words."""
    e = enclose(program, inputs, allowed)
    found, first = 0, ""
    for run in range(runs):
        outputs = Perturbed(taken, np.random.default_rng((seed, run))).run(program, inputs)
        c = compare(e, None, outputs, outputs)
        if c.outside:
            found += 1
            where = f"{c.worst_output}{c.worst_index}"
            first = first or f"{print_program(program)}{inputs}\n{where}: {c.observed} not in {c.expected}"
    return found, first


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("length", [1, 3, 8])
def test_random_programs_stay_inside(model, length):
    for seed in range(120):
        program, inputs = random_program(np.random.default_rng((length, seed)), length)
        found, first = escapes(with_all_slots(program), inputs, model, model, 3, seed)
        assert not found, f"seed {seed}: {first}"


def chain(rng):
    """Programs that contract and rewrite: products into sums, chains of divisions, roots, constants, sums of sums."""
    b = GraphBuilder()
    dtype = (DType.F32, DType.F64)[rng.integers(2)]
    shape = ((3,), (2, 3), (1,))[rng.integers(3)]
    pool = [b.input(dtype, shape) for _ in range(3)]
    inputs = list(pool)
    while len(pool) < 9:
        x, y = (pool[rng.integers(max(0, len(pool) - 3), len(pool))] for _ in range(2))
        if x.shape != y.shape:
            continue
        constant = b.constant(rng.choice([3.0, 0.1, -7.0, 2.0, 1e-3]), dtype)
        kind = rng.integers(8)
        if kind == 0:
            made = b.apply(Add(), b.apply(Multiply(), x, y), pool[rng.integers(3)])
        elif kind == 1:
            made = b.apply(Divide(), x, y)
        elif kind == 2:
            made = b.apply(Divide(), x, b.apply(Sqrt(), b.apply(Abs(), y)))
        elif kind == 3:
            made = b.apply(Divide(), x, constant)
        elif kind == 4:
            made = b.apply(Multiply(), constant, x)
        elif kind == 5:
            made = b.apply(Negate(), b.apply(Multiply(), x, x))
        elif kind == 6:
            made = b.apply(Add(), x, y)
        else:
            wide = b.apply(BroadcastInDim((*x.shape, 2), tuple(range(len(x.shape)))), b.apply(Multiply(), x, y))
            made = b.apply(ReduceSum((len(x.shape),)), wide)
        if made.shape == shape:
            pool.append(made)
    axis = len(shape) - 1
    ends = [b.apply(ReduceSum((0,)), b.apply(ReduceSum((axis,)), pool[-1]))] if axis else [pool[-1]]
    ends.append(b.apply(DotGeneral((axis,), (axis,), (), ()), pool[-1], pool[-2]))
    ends.append(b.apply(Add(), ends[-1], b.apply(ReduceSum((0, 1)[: axis + 1]), pool[0])))
    return b.build(*pool[3:], *ends), [values(rng, v.dtype, v.shape) for v in inputs]


def test_contractions_and_rewrites_stay_inside():
    for seed in range(120):
        program, inputs = chain(np.random.default_rng((99, seed)))
        found, first = escapes(program, inputs, XLA, XLA, 3, seed)
        assert not found, f"seed {seed}: {first}"


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_complex_programs_stay_inside(model):
    for seed in range(100):
        program, inputs = complex_program(np.random.default_rng((5, seed)), 6)
        found, first = escapes(program, inputs, model, model, 3, seed)
        assert not found, f"seed {seed}: {first}"


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
def test_indexed_programs_stay_inside(model):
    undecided = 0
    for seed in range(60):
        program, inputs = indexed_program(np.random.default_rng((6, seed)))
        found, first = escapes(program, inputs, model, model, 3, seed)
        assert not found, f"seed {seed}: {first}"
        undecided += sum(int((x.lo < x.hi).sum()) for x in enclose(program, inputs, model))
    assert undecided > 200  # some index was undecided, and its neighbours taken in


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
    program = b.build(b.apply(Exp(), b.input(DType.F32, (64,))))
    x = np.linspace(-5, 5, 64, dtype=np.float32)
    assert escapes(program, [x], XLA, Tight("xla", flush=True), 20, 0)[0] > 5


def test_the_hull_of_many_runs_is_not_much_narrower():
    """Tightness: the median width is at most four times the spread of what 32 hostile runs gave."""
    ratios, decided, elements = [], 0, 0
    for seed in range(50):
        program, inputs = random_program(np.random.default_rng((7, seed)), 6, extra=False)
        e = enclose(program, inputs, XLA)
        decided += sum(int(x.decided.sum()) for x in e)
        elements += sum(x.lo.size for x in e)
        runs = [Perturbed(XLA, np.random.default_rng((seed, r))).run(program, inputs) for r in range(32)]
        for k, x in enumerate(e):
            if not x.dtype.is_float:
                continue
            seen = np.stack([r[k] for r in runs]).astype(float)
            with np.errstate(invalid="ignore"):
                spread, width = seen.max(0) - seen.min(0), x.hi - x.lo
            moving = x.decided & ~x.nan & np.isfinite(width) & (spread > 0)
            ratios += (width / np.where(moving, spread, 1))[moving].tolist()
    assert decided >= 0.95 * elements
    assert np.median(ratios) <= 4
