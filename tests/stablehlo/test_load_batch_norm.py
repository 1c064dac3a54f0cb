"""Normalisation over all axes but one, read from StableHLO, against its definition in NumPy, whichever axis has the features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import load
from tenferro_ref.tensor import Array
from tests.libraries import module_or_skip

module_or_skip("jaxlib")

SHAPE, EPSILON = (2, 3, 4), 1e-3


def loaded(name: str, axis: int, arrays: Sequence[Array], results: Sequence[Array]) -> list[Array]:
    """What the operation gives natively for the arguments."""
    types = [f"tensor<{'x'.join(map(str, a.shape))}xf64>" for a in arrays]
    made = [f"tensor<{'x'.join(map(str, a.shape))}xf64>" for a in results]
    names = ", ".join(f"%a{i}" for i in range(len(arrays)))
    outputs = ", ".join(f"%r#{i}" for i in range(len(made))) if len(made) > 1 else "%r"
    gives = f"({', '.join(made)})"
    text = (
        f"func.func @main({', '.join(f'%a{i}: {t}' for i, t in enumerate(types))}) -> {gives} {{\n"
        f'  %r{f":{len(made)}" if len(made) > 1 else ""} = "stablehlo.{name}"({names}) '
        f"<{{epsilon = {EPSILON:e} : f32, feature_index = {axis} : i64}}> : ({', '.join(types)}) -> {gives}\n"
        f"  return {outputs} : {', '.join(made)}\n}}"
    )
    source = load(text)
    return GraphExecutor().eval_exec_ir(compile_std_to_exec(source.program), source.inputs(arrays))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_axis_may_have_the_features(axis: int) -> None:
    rng, features = np.random.default_rng(axis), SHAPE[axis]
    x, grad = rng.normal(size=SHAPE), rng.normal(size=SHAPE)
    scale, offset = rng.normal(size=(2, features))
    others = tuple(a for a in range(3) if a != axis)
    along = tuple(-1 if a == axis else 1 for a in range(3))
    mean, variance = x.mean(others), x.var(others)
    epsilon = float(np.float32(EPSILON))
    inverse = 1 / np.sqrt(variance + epsilon)
    centred = (x - mean.reshape(along)) * inverse.reshape(along)
    expected = centred * scale.reshape(along) + offset.reshape(along)

    got = loaded("batch_norm_training", axis, (x, scale, offset), (x, mean, variance))
    for a, b in zip(got, (expected, mean, variance), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    (got_expected,) = loaded("batch_norm_inference", axis, (x, scale, offset, mean, variance), (x,))
    np.testing.assert_allclose(got_expected, expected, rtol=1e-12, atol=1e-14)

    got = loaded("batch_norm_grad", axis, (x, scale, mean, variance, grad), (x, scale, offset))
    of_x = (scale * inverse).reshape(along) * (
        grad - grad.mean(others).reshape(along) - centred * (grad * centred).mean(others).reshape(along)
    )
    for a, b in zip(got, (of_x, (grad * centred).sum(others), grad.sum(others)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
