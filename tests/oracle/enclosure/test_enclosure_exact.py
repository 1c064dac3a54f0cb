"""The exact regime: small integers and powers of two, where every order of evaluation gives the same bits."""

import numpy as np
import pytest
from perturbed import Perturbed

from oracle.case import Case
from oracle.enclosure import MODELS, XLA, enclose
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder

pytestmark = pytest.mark.once


MATMUL = ops.DotGeneral((1,), (0,), (), ())


def exact_program(rng, dtype, quotients=True):
    """A dozen ops that keep small integers over a power of two small; all results are outputs."""
    b = GraphBuilder()
    x, y = b.input(dtype, (3, 3)), b.input(dtype, (3, 3))
    at = b.input(DType.I64, (3,))
    pool = [x, y]
    results = []
    while len(results) < 10:
        v, w = (pool[rng.integers(max(0, len(pool) - 3), len(pool))] for _ in range(2))
        v = pool[rng.integers(len(pool))]
        first = x if rng.random() < 0.5 else y
        power = b.constant(float(2.0 ** rng.integers(-3, 4)), dtype)
        made = [
            lambda v=v, w=w: b.apply(ops.Add(), v, w),
            lambda v=v, f=first: b.apply(ops.Multiply(), v, f),
            lambda v=v, p=power: b.apply(ops.Multiply(), v, p),
            lambda v=v, p=power: b.apply(ops.Divide(), v, p) if quotients else b.apply(ops.Negate(), v),
            lambda v=v: b.apply(ops.BroadcastInDim((3, 3), (0,)), b.apply(ops.ReduceSum((1,)), v)),
            lambda f=first: b.apply(ops.BroadcastInDim((3, 3), (1,)), b.apply(ops.ReduceProd((0,)), f)),
            lambda v=v, f=first: b.apply(MATMUL, v, f),
            lambda v=v: b.apply(ops.Transpose((1, 0)), v),
            lambda v=v: b.apply(ops.Gather((1,), (0,), (0,), 1, (1, 3)), v, at),
            lambda v=v, w=w: b.apply(ops.Scatter((1,), (0,), (0,), 1), v, at, w),
            *(
                ()
                if dtype.is_complex
                else (
                    lambda v=v, w=w: b.apply(ops.Maximum(), v, w),
                    lambda v=v, w=w: b.apply(ops.Clamp(), v, w, b.apply(ops.Abs(), w)),
                    lambda v=v: b.apply(ops.BroadcastInDim((3, 3), (0,)), b.apply(ops.ReduceMax((1,)), v)),
                    lambda v=v, w=w: b.apply(ops.Select(), v < w, v, w),
                )
            ),
        ]
        result = made[rng.integers(len(made))]()
        results.append(result)
        pool.append(result)
    drawn = [rng.integers(-3, 4, (3, 3)) + (1j * rng.integers(-3, 4, (3, 3)) if dtype.is_complex else 0) for _ in "xy"]
    return b.build(*results), [*(a.astype(dtype.numpy) for a in drawn), rng.integers(0, 3, 3)]


def small(values, dtype):
    """Far from where anything rounds."""
    limit = 2.0 ** (10 if dtype.real is DType.F32 else 30)
    return all(np.abs(v).max() < limit for v in values)


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.C32, DType.C64], ids=str)
def test_one_value_is_demanded_whatever_the_order(dtype, model):
    tried = 0
    for seed in range(20):
        quotients = not (dtype.is_complex or model.approximate)  # by powers of two
        program, inputs = exact_program(np.random.default_rng((31, seed)), dtype, quotients)
        native = NativeExecutor().run(Case.of(program, inputs)).outputs
        if not small(native, dtype):
            continue
        tried += 1
        hostile = Perturbed(model, np.random.default_rng(seed)).run(program, inputs)
        for e, n, h in zip(enclose(program, inputs, model), native, hostile, strict=True):
            assert e.contains(n).all()
            assert (h == n).all()
            for part, value in zip(e.parts, (n.real, n.imag), strict=False):
                assert ((part.lo == value) & (part.hi == value) & ~part.nan).all(), seed
    assert tried > 6


def test_beyond_the_regime_sums_are_intervals_again():
    b = GraphBuilder()
    x = b.input(DType.F32, (3,))
    p = b.build(b.apply(ops.ReduceSum((0,)), x))
    (e,) = enclose(p, [np.float32([2.0**24, 1, 1])], XLA)
    assert e.lo < e.hi
    (e,) = enclose(p, [np.float32([2.0**22, 1, 1])], XLA)
    assert e.lo == e.hi
