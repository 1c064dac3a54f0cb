"""What the tests of derivatives share: running programs, and the inner products of the two sides of the law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenferro_ref.autodiff import Derivative
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.program import Program
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import Array


def run(program: Program, inputs: Sequence[Array]) -> list[Array]:
    return GraphExecutor().eval_exec_ir(compile_std_to_exec(program), list(inputs))


def product(pairs: Sequence[tuple[Array, Array]]) -> tuple[float, float]:
    """`Re <a, b>` over all pairs, and the sum of the moduli of its terms."""
    terms = [np.conj(a) * b for a, b in pairs]
    return float(sum(np.real(t).sum() for t in terms)), float(sum(np.abs(t).sum() for t in terms))


def paired(
    seeds: Sequence[Array], results: Sequence[Array], into: Derivative, out_of: Derivative
) -> list[tuple[Array, Array]]:
    """Each seed of one product beside the result of the other that belongs to the same value."""
    given = iter(seeds)
    return [
        (seed, results[result])
        for place, result in zip(into.seeds, out_of.results, strict=True)
        if place is not None
        for seed in (next(given),)
        if result is not None
    ]
