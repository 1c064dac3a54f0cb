"""Functions of JAX are held to something: every element of what they give is decided, and narrowly, also of computed numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tenferro_ref import checking
from tests.libraries import module_or_skip

jax = module_or_skip("jax")
jnp, lax = jax.numpy, jax.lax
pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
X, S = RNG.normal(size=(4, 5)).astype(np.float32), RNG.normal(size=(4, 4)).astype(np.float32)
V, IDX = RNG.normal(size=8).astype(np.float32), np.array([2, 0, 3, 1, 1], np.int32)
KEY = np.array([0, 42], np.uint32)

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sort": (lambda x: jnp.sort(jnp.sin(x), axis=1), (X,)),
    "argsort": (lambda x: jnp.argsort(jnp.exp(x), axis=0), (X,)),
    "median": (lambda x: jnp.median(jnp.sin(x), axis=1), (X,)),
    "quantile": (lambda x: jnp.quantile(jnp.exp(x), 0.3), (V,)),
    "partition": (lambda x: jnp.partition(jnp.exp(x), 3), (V,)),
    "the largest": (lambda x: lax.top_k(jnp.tanh(x), 3), (V,)),
    "argmax": (lambda x: jnp.argmax(jax.nn.softmax(x), axis=1), (X,)),
    "argmin": (lambda x: jnp.argmin(jnp.sin(x)), (X,)),
    "nanmax": (lambda x: jnp.nanmax(jnp.log(x), axis=0), (X,)),
    "searched": (lambda x, y: jnp.searchsorted(jnp.sort(jnp.exp(x)), y), (V, V[:3])),
    "digits": (lambda x: jnp.digitize(jnp.exp(x), jnp.array([0.5, 1.5])), (X,)),
    "histogram": (lambda x: jnp.histogram(x, bins=4)[0], (V,)),
    "unique": (lambda i: jnp.unique(i, size=5), (IDX,)),
    "sorted by two": (lambda x, i: jnp.lexsort((jnp.exp(x), i)), (V, np.arange(8, dtype=np.int32) % 3)),
    "cumulative maximum": (lambda x: lax.cummax(jnp.exp(x)), (V,)),
    "cumulative sum": (lambda x: jnp.cumsum(jnp.abs(x)), (V,)),
    "gathered": (lambda x, i: jnp.sin(x)[i], (X, IDX)),
    "scattered": (lambda x, i: jnp.exp(x).at[i % 4].max(1.0), (X, IDX)),
    "interpolated": (lambda x: jnp.interp(x, jnp.array([-1.0, 0, 1]), jnp.array([1.0, 2, 0])), (X,)),
    "branches": (lambda x: lax.switch(jnp.argmax(jnp.exp(x)), [jnp.sin, jnp.cos, jnp.exp], x), (V,)),
    "a loop": (lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 1.5 + 1, jnp.abs(x)), (X,)),
    "a scan": (lambda x: lax.scan(lambda c, a: (c * 0.9 + jnp.sin(a), c), 0.0, x), (V,)),
    "attention": (lambda q: jax.nn.softmax(q @ q.T / 2) @ q, (X,)),
    "a normal layer": (lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), (X,)),
    "gradient of a sort": (jax.grad(lambda x: (jnp.sort(x) * V).sum()), (V,)),
    "hessian": (jax.hessian(lambda x: (jnp.sin(x) * x).sum()), (V[:4],)),
    "random categories": (lambda k: jax.random.categorical(k, jnp.array([0.1, 0.5, 0.2]), shape=(4,)), (KEY,)),
    "a permutation": (lambda k: jax.random.permutation(k, 6), (KEY,)),
    "rank": (jnp.linalg.matrix_rank, (X,)),
    "a determinant": (jnp.linalg.slogdet, (S,)),
}  # fmt: skip


@pytest.fixture(scope="module")
def using() -> Iterator[checking.Checker]:
    with checking.checker() as made:
        yield made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_element_is_decided_and_narrowly(name: str, using: checking.Checker) -> None:
    function, arguments = FUNCTIONS[name]
    (row,) = using.check(function, arguments, executors="native", model=None).rows
    assert (row["verdict"], row["decided"]) == ("pass", 1.0), row
    assert row["tight"] >= (0.7 if name in ("rank", "a determinant") else 1.0)  # factors are held by residuals
