"""An MLP's training step and its gradient, ours and JAX's: `python examples/mlp.py [EXECUTOR...]`.

The loss of a classifier with one hidden layer is written twice, with the front end and with `jax.numpy`; `grad` differentiates the
one, `jax.grad` the other. The two programs round differently, but over the real numbers they are one gradient: of each element,
their enclosures in real arithmetic have a value in common. Each executor runs both, and the step; what it gives is held to its
enclosure, and so is what JAX gives for its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from newton import run

from oracle.enclosure import REAL, XLA, enclose
from oracle.identities import compare_sides
from oracle.peers import Pool
from oracle.verdict import Comparison
from tenferro_ref import frontend as tn
from tenferro_ref.autodiff import grad
from tenferro_ref.program import GraphBuilder, Program
from tenferro_ref.stablehlo import load
from tenferro_ref.tensor import Array

RATE, STEPS = 0.5, 3
#: Weights and biases of two layers; then points, and a row of zeros and a one for the class of each.
SHAPES = ((3, 6), (6,), (6, 4), (4,), (8, 3), (8, 4))
PARAMETERS = range(4)


def loss() -> Program:
    """The mean cross-entropy."""
    b = GraphBuilder("loss")
    w1, b1, w2, b2, points, classes = (b.input("F64", shape) for shape in SHAPES)
    logits = tn.tanh(points @ w1 + b1) @ w2 + b2
    return b.build(tn.mean(tn.log(tn.exp(logits).sum(1)) - (classes * logits).sum(1)))


def jax_loss(w1: Any, b1: Any, w2: Any, b2: Any, points: Any, classes: Any) -> Any:
    logits = jnp.tanh(points @ w1 + b1) @ w2 + b2
    return (jnp.log(jnp.exp(logits).sum(1)) - (classes * logits).sum(1)).mean()


def update() -> Program:
    """Parameters less `RATE` times their gradients."""
    b = GraphBuilder("update")
    old = [b.input("F64", SHAPES[i]) for i in PARAMETERS]
    return b.build(*[old[i] - RATE * b.input("F64", SHAPES[i]) for i in PARAMETERS])


GRADIENT = grad(loss(), inputs=PARAMETERS).program


def start() -> list[Array]:
    rng = np.random.default_rng(7)
    *parameters, points, _ = (rng.normal(size=shape) for shape in SHAPES)
    return [*parameters, points, np.eye(4)[rng.integers(0, 4, 8)]]


def jax_gradient(arrays: Sequence[Array]) -> tuple[Program, tuple[Array, ...]]:
    """The program that `jax.grad` makes, and its inputs; what JAX itself gives for it is inside its enclosure."""
    with jax.enable_x64(True):
        function = jax.jit(jax.grad(jax_loss, tuple(PARAMETERS)))
        loaded = load(function.lower(*arrays).as_text(), "jax.grad")
        given = [np.asarray(g) for g in function(*arrays)]
    program, inputs = loaded.program, loaded.inputs(arrays)
    if not all(e.contains(g).all() for e, g in zip(enclose(program, inputs, XLA), given, strict=True)):
        raise SystemExit("JAX's gradient is outside the enclosure of its own program")
    return program, inputs


def compare(gradient: Program, arrays: Sequence[Array]) -> Comparison:
    """How many elements of a gradient and JAX's are bounded in real arithmetic, and how many of these have no value in common."""
    return compare_sides(enclose(gradient, arrays, REAL), enclose(*jax_gradient(arrays), REAL))


def main(executors: Sequence[str]) -> int:
    compared, (theirs, inputs) = compare(GRADIENT, start()), jax_gradient(start())
    known = f"{compared.decided} of {compared.elements} elements of the gradient are bounded"
    print(f"{known}, {compared.outside} of them differ from JAX's")
    pool = Pool()
    try:
        for executor in pool.select(executors or ["all"], others=["jax"]).executors:
            run(executor, theirs, *inputs)
            arrays, losses = start(), []
            for _ in range(STEPS):
                losses.append(float(run(executor, loss(), *arrays)[0]))
                old = arrays[: len(PARAMETERS)]
                arrays[: len(PARAMETERS)] = run(executor, update(), *old, *run(executor, GRADIENT, *arrays))
            print(f"{executor.name}: loss {' '.join(f'{value:.6f}' for value in losses)}")
    finally:
        pool.close()
    return int(compared.outside > 0 or compared.decided < compared.elements)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
