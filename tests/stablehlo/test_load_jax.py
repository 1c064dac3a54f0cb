"""JAX functions, read from what JAX writes, against JAX's own results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from oracle.peers import Executor, NativeExecutor, Pool
from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.ops import ReferenceOp
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo.loader import load, lower_loaded
from tenferro_ref.tensor import Array
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

jax = module_or_skip("jax")
jnp: Any = module_or_skip("jax.numpy")

from examples.jax_functions import BOUND, FUNCTIONS, demonstration  # noqa: E402 - it needs jax

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def plugin() -> Iterator[Executor]:
    plugin_or_skip("lam115")
    pool = Pool()
    yield pool.make("pjrt:lam115")
    pool.close()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_demonstrations_agree_with_jax(name: str, plugin: Executor) -> None:
    shown = demonstration(name)
    for executor in (NativeExecutor(), plugin):
        assert shown.distance(executor.run(shown.case).outputs) <= BOUND, executor.name


@pytest.mark.parametrize("name", ["attention block", "Gaussian process"])
def test_portable_artifacts_of_jax_export_are_read(name: str) -> None:
    shown = demonstration(name, exported=True)
    assert shown.distance(NativeExecutor().run(shown.case).outputs) <= BOUND


X = np.random.default_rng(0).normal(size=(3, 4))
Z = X + 1j * X[::-1]
I = np.arange(-6, 6).reshape(3, 4) * 37
ROWS = np.array([2, 0, 2, -1])

SMALL: dict[str, tuple[Callable[..., Any], Array]] = {
    "argmin": (lambda x: jnp.argmin(x), X),
    "argmax of integers": (lambda i: jnp.argmax(i * i, axis=0), I),
    "all and any": (lambda x: (jnp.all(x > -1, axis=0), jnp.any(x > 1, axis=1)), X),
    "erf and gammaln": (lambda x: (jax.scipy.special.erf(x), jax.scipy.special.gammaln(x)), X),
    "trigonometry": (lambda x: (jnp.arcsin(x / 10), jnp.arctan2(x, x[::-1]), jnp.tan(x), jnp.sinh(x)), X),
    "rounding": (lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.trunc(x), jnp.sign(x)), 3 * X),
    "integers": (lambda i: (i & 7, i | 3, i ^ 5, ~i, i << 2, i >> 1, i % 7, i // 7), I),
    "complex": (lambda z: (z.imag, jnp.conj(z), jnp.angle(z), abs(z), jnp.exp(z), jnp.sqrt(z)), Z),
    "row-major reshape": (lambda x: x.reshape(4, 3) @ x.reshape(-1)[:3], X),
    "einsum": (lambda x: jnp.einsum("ij,kj,ij->ki", x, x, x), X),
    "pad": (lambda x: jnp.pad(x, ((1, 0), (0, 2)), constant_values=3), X),
    "add at": (lambda x: x.at[ROWS].add(2.0), X),
    "set one": (lambda x: x.at[1, 2].set(5.0), X),
    "set many, some twice": (lambda x: x.at[ROWS, 1].set(jnp.arange(4.0)), X),
    "set rows": (lambda x: x.at[ROWS].set(-x[0]), X),
    "sorted lines with equal elements": (
        lambda i: (jnp.sort(i % 5, axis=0), jnp.argsort(i % 5, axis=1), jax.lax.sort((i % 3, i), num_keys=1, dimension=0)), I),
    "sorted zeros and NaN": (lambda x: jax.lax.top_k(jnp.where(x > 1, jnp.nan, jnp.round(x)), 3), X),
    "take": (lambda x: (x[ROWS], jnp.take_along_axis(x, jnp.argmax(x, axis=1)[:, None], axis=1)), X),
    "cumulative": (lambda x: (jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0)), X),
    "branches": (lambda x: jax.lax.switch(1, [jnp.exp, jnp.sin, jnp.cos], jnp.where(x > 0, x, -x)), X),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 0, lambda a: a * 2, lambda a: a - 1, x), X),
    "vmap of a dynamic slice": (
        lambda x: jax.vmap(lambda a, k: jax.lax.dynamic_slice(a, (k,), (2,)))(x, jnp.arange(3)), X),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.tanh(x) @ x.T)), X),
    "convolve": (lambda x: jnp.convolve(x[0], x[1], mode="same"), X),
    "convolution with strides": (
        lambda x: jax.lax.conv_general_dilated(
            x[None, None], x[None, None, :2, :3], (1, 2), [(1, 0), (2, 1)], lhs_dilation=(2, 1), rhs_dilation=(1, 2)), X),
    "gradient of a pooling": (lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (1, 2), "VALID"), X),
    "transforms": (lambda x: (jnp.fft.rfft2(x), jnp.fft.ifft(x, axis=0)), X),
    "upper Cholesky": (lambda x: jax.scipy.linalg.cholesky(x @ x.T + jnp.eye(3)), X),
    "triangular solves": (
        lambda x: jax.lax.linalg.triangular_solve(x[:, :3], x.T, lower=False, transpose_a=True, unit_diagonal=True), X),
    "a batch of factors": (lambda x: jnp.linalg.cholesky(jnp.stack([jnp.eye(3), x @ x.T + jnp.eye(3)])), X),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_small_functions_agree_with_jax(name: str) -> None:
    function, argument = SMALL[name]
    with jax.enable_x64(True):
        text = jax.jit(function).lower(argument).as_text()
        expected = [np.asarray(a) for a in jax.tree.leaves(jax.jit(function)(argument))]
    loaded = load(text, "f")
    alone = any(isinstance(ins.op, ReferenceOp) for ins in loaded.program.instructions)
    for again in (loaded,) if alone else (loaded, load(lower_loaded(loaded), "again")):
        got = GraphExecutor(checking=True).eval_exec_ir(compile_std_to_exec(again.program), again.inputs([argument]))
        for a, b in zip(got, expected, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
