"""A variational problem solved by derivatives of derivatives: `python examples/variational.py [EXECUTOR...]`.

A string is held at both ends, pulled by a load, and on springs that stiffen as they stretch. Its shape u is where the energy

    E(u) = sum (u[i+1] - u[i])^2 / 2h  +  h sum u^4 / 4  -  h sum load u

is least. Only the energy is written down. `grad` makes the force, and `jvp` of the force the product of the matrix of second
derivatives with a vector; Newton's method solves force(u) = 0. How far u is from the true minimum is bounded in the end: the matrix
has no eigenvalue below that of the string alone, `4 sin(pi h / 2)^2 / h`, so that the distance is at most the force over that.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from newton import run

from oracle.enclosure import REAL, enclose
from oracle.peers import Executor, Pool
from tenferro_ref import frontend as tn
from tenferro_ref.autodiff import grad, jvp
from tenferro_ref.program import GraphBuilder, Program
from tenferro_ref.tensor import Array

POINTS = 7
H = 1 / (POINTS + 1)
LOAD = 40 * np.sin(3 * np.linspace(H, 1 - H, POINTS))
#: The least eigenvalue of the matrix of second derivatives of the first sum.
STIFFNESS = 4 * math.sin(math.pi * H / 2) ** 2 / H
#: What is shown of the distance to the minimum.
DISTANCE = 1e-12


def energy() -> Program:
    b = GraphBuilder("string")
    u, load = b.input("F64", (POINTS,)), b.input("F64", (POINTS,))
    ends = tn.pad(u, 1)
    slope = ends[1:] - ends[:-1]
    square = u * u
    return b.build((slope * slope).sum() / (2 * H) + H * (square * square).sum() / 4 - H * (load * u).sum())


FORCE = grad(energy(), inputs=[0]).program
#: Inputs u, load and a tangent of u.
CURVATURE = jvp(FORCE, active=[0]).program


def minimum(executor: Executor) -> tuple[Array, int]:
    """The shape, and after how many of Newton's steps it no longer changed by more than `DISTANCE` / 100."""
    u = np.zeros(POINTS)
    for steps in range(1, 30):
        (force,) = run(executor, FORCE, u, LOAD)
        matrix = np.stack([run(executor, CURVATURE, u, LOAD, unit)[0] for unit in np.eye(POINTS)])
        change = np.linalg.solve(matrix, force)
        u = u - change
        if abs(change).max() < DISTANCE / 100:
            return u, steps
    raise SystemExit(f"{executor.name}: Newton's method does not settle")


def distance(u: Array) -> float:
    """A bound of how far u is from the minimum in the Euclidean norm: by the enclosure of the force in real arithmetic."""
    (force,) = enclose(FORCE, [u, LOAD], REAL)
    largest = np.maximum(abs(force.parts[0].lo), abs(force.parts[0].hi))
    return float(np.linalg.norm(largest)) * (1 + 1e-12) / STIFFNESS


def main(executors: Sequence[str]) -> int:
    pool = Pool()
    try:
        for executor in pool.select(executors or ["all"], others=["jax"]).executors:
            u, steps = minimum(executor)
            print(f"{executor.name}: u = {u.round(4)} after {steps} steps, at most {distance(u):.1e} from the minimum")
            if distance(u) > DISTANCE:
                return 1
    finally:
        pool.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
