"""How the cost of each stage grows with the length of a program and with the size of its tensors.

Run: `tox run -e bench -- benchmarks/test_growth.py --benchmark-json growth.json`; `python -m tools.growth_plot growth.json
docs/measurements/growth.svg` draws it. Seconds are processor time, the least of the rounds, and stand in `extra_info` by size.
A stage that grows faster than n log n has an exponent of clearly more than 1 between the two largest sizes; 1.3 leaves room for what
a loaded machine and a cache that overflows add.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracle.compare import compare
from oracle.enclosure import MODELS, enclose
from tenferro_ref import ops
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder, GraphProgram, LoweringView
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array

#: Sizes by what grows: instructions over tensors of 64 elements, or elements under ten instructions.
SIZES = {"instructions": (10, 100, 1_000, 5_000), "elements": (10, 1_000, 100_000, 1_000_000)}
#: The size from which on a cost is that of the work, not of what every call does once.
MATTERS = {"instructions": 100, "elements": 100_000}
STEEPEST = 1.3
ROUNDS = 3


def program(instructions: int, elements: int) -> tuple[GraphProgram, list[Array]]:
    """A chain of arithmetic, a function, an extremum and a movement, over two inputs of F32."""
    b = GraphBuilder()
    shape = (elements // 2, 2)
    x, y = b.input(DType.F32, shape), b.input(DType.F32, shape)
    v = x
    for i in range(instructions):
        op, *others = (
            (ops.Multiply(), y),
            (ops.Add(), x),
            (ops.Tanh(),),
            (ops.Maximum(), y),
            (ops.Reverse((0,)),),
        )[i % 5]
        v = b.apply(op, v, *others)
    rng = np.random.default_rng(0)
    return b.build(v), [np.asfortranarray(rng.standard_normal(shape).astype(np.float32)) for _ in range(2)]


def stages(graph: GraphProgram, inputs: list[Array]) -> dict[str, Callable[[], Any]]:
    """Each stage as one call; what it needs of an earlier stage is made beforehand."""
    compiled = compile_std_to_exec(graph)
    outputs = GraphExecutor().eval_exec_ir(compiled, inputs)
    enclosures = enclose(graph, inputs, MODELS["xla"])
    view = LoweringView.of(graph, tuple(a.shape for a in inputs))
    return {
        "compile": lambda: compile_std_to_exec(graph),
        "native": lambda: GraphExecutor().eval_exec_ir(compiled, inputs),
        "lower": lambda: lower_to_stablehlo(view),
        "enclose, ieee": lambda: enclose(graph, inputs, MODELS["ieee"]),
        "enclose, xla": lambda: enclose(graph, inputs, MODELS["xla"]),
        "compare": lambda: compare(enclosures, None, outputs, outputs),
    }


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


@pytest.mark.parametrize("what", SIZES)
def test_growth(benchmark: Any, what: str) -> None:
    """No stage grows clearly faster than n log n."""
    least: dict[str, dict[int, float]] = {}

    def measure() -> None:
        for size in SIZES[what]:
            graph, inputs = program(size, 64) if what == "instructions" else program(10, size)
            for name, call in stages(graph, inputs).items():
                best = least.setdefault(name, {}).get(size, math.inf)
                least[name][size] = min(best, seconds(call))

    benchmark.pedantic(measure, rounds=ROUNDS)
    benchmark.extra_info.update(seconds=least)
    for name, took in least.items():
        print(f"{what:12} {name:14}", *(f"{size:>9,}: {1e3 * s:9.2f} ms" for size, s in took.items()))
        small, large = [size for size in SIZES[what] if size >= MATTERS[what]][-2:]
        if took[large] > 1e-3:
            exponent = math.log(took[large] / max(took[small], 1e-4)) / math.log(large / small)
            assert exponent < STEEPEST, f"{name} grows with the power {exponent:.2f} of {what}"
