"""What the tests of extension families share: one op as a program, run on every native path."""

from __future__ import annotations

import numpy as np

from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.tensor import same_bits

TOLERANCE = {DType.F32: 2e-5, DType.C32: 2e-5, DType.F64: 1e-13, DType.C64: 1e-13}


def program(build, *arrays):
    """`build(*values)` over inputs of the arrays' types."""
    b = GraphBuilder()
    results = build(*(b.input(DType.of(x), x.shape) for x in arrays))
    return b.build(*(results if isinstance(results, tuple) else (results,)))


def run(build, *arrays):
    """Results of `build`, checked: both paths agree, types are the rule's, operands are untouched."""
    p = to_exec(program(build, *arrays))
    before = [x.copy() for x in arrays]
    executor = GraphExecutor(checking=True)
    results = executor.eval_exec_ir(p, arrays)
    for again in (executor.eval_unsegmented(p, arrays), GraphExecutor().eval_exec_ir(p, arrays)):
        assert all(map(same_bits, results, again))
    assert all(map(same_bits, arrays, before))
    for result, type_ in zip(results, p.output_types, strict=True):
        assert (DType.of(result), result.shape) == (type_.dtype, type_.shape)
    return results


def random(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    return np.array(values, dtype.numpy, order="F")


def close(got, want, dtype=None):
    """Equal but for rounding, relative to the largest element."""
    tolerance = TOLERANCE[dtype or DType.of(got)]
    scale = max(1.0, float(np.abs(want).max())) if want.size else 1.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)
