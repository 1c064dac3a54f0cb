"""What enclosing costs beside running natively: programs of 64-element tensors, by kind (goal: under 5 ms a program).

Run: `pytest benchmarks/test_enclosure.py`. Milliseconds a program are in `extra_info`, as is the ratio to the native run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from oracle.case import Case
from oracle.enclosure import MODELS, enclose
from oracle.peers import NativeExecutor
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import CompareDir
from tenferro_ref.program import GraphBuilder

PROGRAMS = 20
MATMUL = ops.DotGeneral((1,), (0,), (), ())


def arithmetic(b: GraphBuilder, rng: np.random.Generator, dtype: DType) -> Case:
    """A chain of a dozen ops as generated programs have them: arithmetic, functions, choices, a contraction, a sum."""
    x, y = b.input(dtype, (8, 8)), b.input(dtype, (8, 8))
    v = b.apply(ops.Add(), b.apply(ops.Multiply(), x, y), x)
    v = b.apply(ops.Divide(), v, b.apply(ops.Add(), b.apply(ops.Multiply(), v, v), b.constant(1.0, dtype)))
    v = b.apply((ops.Sin, ops.Cos, ops.Tanh, ops.Exp)[rng.integers(4)](), b.apply(ops.Transpose((1, 0)), v))
    if not dtype.is_complex:
        v = b.apply(ops.Select(), b.apply(ops.Compare(CompareDir.Lt), v, y), b.apply(ops.Maximum(), v, x), v)
    v = b.apply(MATMUL, v, b.apply(ops.Conj(), y))
    v = b.apply(ops.Log(), b.apply(ops.Sqrt(), b.apply(ops.Abs(), v)))
    drawn = [
        rng.standard_normal((8, 8)) + (1j * rng.standard_normal((8, 8)) if dtype.is_complex else 0) for _ in range(2)
    ]
    return Case.of(b.build(b.apply(ops.ReduceSum((1,)), v)), [a.astype(dtype.numpy) for a in drawn])


def indexed(b: GraphBuilder, rng: np.random.Generator, dtype: DType) -> Case:
    """A gather and a scatter at known indices, and at some that are not decided."""
    x, at, logs = b.input(dtype, (8, 8)), b.input(DType.I64, (8,)), b.input(DType.F32, (8,))
    near = b.apply(ops.Convert(DType.I32), b.apply(ops.Exp(), logs))
    results = []
    for indices in (at, near):
        rows = b.apply(ops.Gather((1,), (0,), (0,), 1, (1, 8)), x, indices)
        results.append(b.apply(ops.Scatter((1,), (0,), (0,), 1), x, indices, b.apply(ops.Multiply(), rows, rows)))
    whole = rng.integers(1, 8, 8)
    arrays = [rng.standard_normal((8, 8)).astype(dtype.numpy), whole, np.log(whole).astype(np.float32)]
    return Case.of(b.build(*results), arrays)


KINDS: dict[str, tuple[Callable[[GraphBuilder, np.random.Generator, DType], Case], DType]] = {
    "F32": (arithmetic, DType.F32),
    "F64": (arithmetic, DType.F64),
    "C32": (arithmetic, DType.C32),
    "C64": (arithmetic, DType.C64),
    "indices": (indexed, DType.F64),
}


@pytest.mark.parametrize("model", ["ieee", "xla"])
@pytest.mark.parametrize("kind", KINDS)
def test_enclosing_a_program_of_64_elements(benchmark: pytest.FixtureRequest, kind: str, model: str) -> None:
    make, dtype = KINDS[kind]
    cases = [make(GraphBuilder(), np.random.default_rng(seed), dtype) for seed in range(PROGRAMS)]
    native = NativeExecutor()
    for case in cases:
        native.run(case)
    start = time.perf_counter()
    for case in cases:
        native.run(case)
    alone = (time.perf_counter() - start) / PROGRAMS
    benchmark(lambda: [enclose(case.program, case.inputs, MODELS[model]) for case in cases])  # type: ignore[operator]
    took = benchmark.stats.stats.median / PROGRAMS  # type: ignore[attr-defined]
    benchmark.extra_info.update(  # type: ignore[attr-defined]
        milliseconds=round(1e3 * took, 3), native_milliseconds=round(1e3 * alone, 3), ratio=round(took / alone, 1)
    )
    print(f"{kind} {model}: {1e3 * took:.2f} ms a program, native {1e3 * alone:.2f} ms")
