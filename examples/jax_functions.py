"""Four JAX functions, checked: read from what `jax.jit` and `jax.export` write, run natively, and on a PJRT plugin.

    python examples/jax_functions.py [EXECUTOR]        for example pjrt:xla081

Each result is compared with JAX's own, element by element: at most `BOUND` units of rounding of the largest element of that
result. The functions condition their results well, so that this is some ten times what is seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from oracle.case import Case
from oracle.peers import Executor, NativeExecutor, Pool
from tenferro_ref.stablehlo import load
from tenferro_ref.tensor import Array

BOUND = 64

Arrays = tuple[Array, ...]


# --- an MLP's training step -------------------------------------------------------------------------------------------


def train_step(params: Any, x: Any, labels: Any) -> Any:
    """One step of gradient descent on the cross-entropy of a classifier with one hidden layer; and the loss."""

    def loss(params: Any) -> Any:
        (w1, b1), (w2, b2) = params
        logits = jnp.tanh(x @ w1 + b1) @ w2 + b2
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
        return -chosen.mean()

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


def train_step_arguments(rng: np.random.Generator) -> Any:
    layers = [(rng.normal(size=(n, m)) / np.sqrt(n), np.zeros(m)) for n, m in ((8, 16), (16, 5))]
    return layers, rng.normal(size=(12, 8)), rng.integers(0, 5, 12)


# --- an attention block -----------------------------------------------------------------------------------------------


def attention(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    """Causal self-attention with several heads, a residual connection and a layer norm."""
    batch, length, width = x.shape
    heads = 4
    q, k, v = (jnp.moveaxis((x @ w).reshape(batch, length, heads, -1), 2, 1) for w in (wq, wk, wv))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bhkd->bqhd", jax.nn.softmax(scores, axis=-1), v).reshape(batch, length, width)
    y = x + jax.nn.gelu(mixed @ wo)
    centred = y - y.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(y.var(axis=-1, keepdims=True) + 1e-5)


def attention_arguments(rng: np.random.Generator) -> Any:
    return rng.normal(size=(2, 6, 16)), *(rng.normal(size=(16, 16)) / 4 for _ in range(4))


# --- a signal filter without FFT --------------------------------------------------------------------------------------


def signal_filter(signal: Any, taps: Any) -> Any:
    """Windowed FIR filter, its envelope (a running maximum of magnitudes), and where that peaks."""
    width = taps.shape[0]
    padded = jnp.pad(signal, (width // 2, width - 1 - width // 2), mode="reflect")
    windows = padded[jnp.arange(signal.shape[0])[:, None] + jnp.arange(width)[None, :]]
    filtered = windows @ (taps * jnp.hanning(width))[::-1]
    envelope = jax.lax.reduce_window(jnp.abs(filtered), -jnp.inf, jax.lax.max, (5,), (1,), "SAME")
    return filtered, envelope, jnp.argmax(envelope), jnp.cumsum(filtered**2)


def signal_filter_arguments(rng: np.random.Generator) -> Any:
    return np.sin(np.linspace(0, 9, 64)) + 0.1 * rng.normal(size=64), rng.normal(size=9)


# --- a Gaussian process -----------------------------------------------------------------------------------------------


def gaussian_process(x: Any, y: Any, at: Any) -> Any:
    """Mean and variance of the posterior with an RBF kernel, and the log marginal likelihood, all by Cholesky."""

    def kernel(a: Any, b: Any) -> Any:
        return jnp.exp(-0.5 * ((a[:, None] - b[None, :]) / 0.5) ** 2)

    factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(x.shape[0]))
    weights = jax.scipy.linalg.cho_solve((factor, True), y)
    cross = kernel(at, x)
    v = jax.scipy.linalg.solve_triangular(factor, cross.T, lower=True)
    likelihood = -0.5 * y @ weights - jnp.log(jnp.diag(factor)).sum() - 0.5 * x.shape[0] * jnp.log(2 * jnp.pi)
    return cross @ weights, 1 - (v**2).sum(axis=0), likelihood


def gaussian_process_arguments(rng: np.random.Generator) -> Any:
    x = np.linspace(-2, 2, 12)
    return x, np.sin(2 * x) + 0.1 * rng.normal(size=12), np.linspace(-2, 2, 5)


# --- checking ---------------------------------------------------------------------------------------------------------

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], Any]]] = {
    "MLP training step": (train_step, train_step_arguments),
    "attention block": (attention, attention_arguments),
    "signal filter": (signal_filter, signal_filter_arguments),
    "Gaussian process": (gaussian_process, gaussian_process_arguments),
}


@dataclass(frozen=True)
class Demonstration:
    """A JAX function as a case, and what JAX says that it gives."""

    case: Case
    expected: Arrays

    def distance(self, outputs: Arrays) -> float:
        """The largest distance from JAX's results, in units of rounding of the largest element of each."""
        return max(_distance(a, b) for a, b in zip(outputs, self.expected, strict=True))


def _distance(a: Array, b: Array) -> float:
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return np.inf
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else np.inf
    return float(np.max(abs(a - b)) / (np.finfo(a.dtype).eps * max(np.max(abs(b)), np.finfo(a.dtype).tiny)))


def demonstration(name: str, *, exported: bool = False) -> Demonstration:
    """Trace, lower, read; from the portable artifact of `jax.export` if `exported`, else from the text of `jax.jit`."""
    function, arguments_of = FUNCTIONS[name]
    with jax.enable_x64(True):
        arguments = arguments_of(np.random.default_rng(7))
        if exported:
            # the plain op instead of a call of LAPACK, which is no stable interface
            source: str | bytes = jax.export.export(jax.jit(function), platforms=("tpu",))(
                *arguments
            ).mlir_module_serialized
        else:
            source = jax.jit(function).lower(*arguments).as_text()
        expected = tuple(np.asarray(a) for a in jax.tree.leaves(jax.jit(function)(*arguments)))
    loaded = load(source, name)
    return Demonstration(Case.of(loaded.program, loaded.inputs(jax.tree.leaves(arguments))), expected)


def main(executors: list[str]) -> int:
    pool = Pool()
    worst = 0.0
    try:
        chosen: list[Executor] = [NativeExecutor(), *map(pool.make, executors)]
        for name in FUNCTIONS:
            shown = demonstration(name)
            for executor in chosen:
                distance = shown.distance(executor.run(shown.case).outputs)
                worst = max(worst, distance)
                size = len(shown.case.program.instructions)
                print(f"{name} ({size} instructions) on {executor.name}: {distance:.2g} units of rounding from JAX")
    finally:
        pool.close()
    return int(worst > BOUND)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
