"""Newton's method on Kepler's equation, with the derivative made by `jvp`: `python examples/newton.py [EXECUTOR...]`.

A planet on an orbit of eccentricity 0.6 is at the eccentric anomaly x with x - 0.6 sin x = m, where m grows evenly with time. The
function is written once; `jvp` makes its derivative, a program like any other, so that both run on every executor (all that are
installed, unless some are named). Each value is held to its enclosure, and in the end a change of sign between two enclosures
proves that a root lies between. `kepler.txt` is the same function as a file:

    tenferro-ref check examples/kepler.txt --transform vjp --executors all
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from oracle.case import Case
from oracle.enclosure import REAL, enclose
from oracle.judge import judge_result
from oracle.peers import Executor, NativeExecutor, Pool, attempt
from oracle.reference import Reference
from oracle.verdict import Verdict
from tenferro_ref import frontend as tn
from tenferro_ref.autodiff import jvp
from tenferro_ref.errors import TenferroError
from tenferro_ref.program import GraphBuilder, Program
from tenferro_ref.tensor import Array

ECCENTRICITY = 0.6
#: The times at which the planet is looked for.
TIMES = np.linspace(0.1, 3.0, 6)
#: A root is proved to lie at most this far from where the iteration ends.
RADIUS = 1e-12


def kepler() -> Program:
    """`x - e sin x - m` for all times at once."""
    b = GraphBuilder("kepler")
    x, m = b.input("F64", TIMES.shape), b.input("F64", TIMES.shape)
    return b.build(x - ECCENTRICITY * tn.sin(x) - m)


FUNCTION = kepler()
#: Inputs x, m and a tangent of x; its output is the derivative times the tangent.
DERIVATIVE = jvp(FUNCTION, active=[0]).program


def run(executor: Executor, program: Program, *arrays: Array) -> tuple[Array, ...]:
    """The outputs that an executor gives, each inside its enclosure.

    Raises
    ------
    SystemExit
        One is outside, or the executor fails.
    """
    case = Case.of(program, arrays)
    result = attempt(executor, case)
    answer = judge_result(executor, Reference(case, NativeExecutor()), result)
    if isinstance(result, TenferroError) or answer.verdict is not Verdict.PASS:
        raise SystemExit(f"{executor.name}: {answer.verdict.value}: {answer.reason}")
    return result.outputs


def newton(executor: Executor) -> tuple[Array, int]:
    """Where the function is zero, and after how many steps x no longer changed by more than a unit in its last place."""
    x = TIMES
    for steps in range(1, 20):
        (f,), (slope,) = run(executor, FUNCTION, x, TIMES), run(executor, DERIVATIVE, x, TIMES, np.ones_like(x))
        x = x - f / slope
        if (abs(f / slope) <= np.spacing(abs(x))).all():
            return x, steps
    raise SystemExit(f"{executor.name}: Newton's method does not settle")


def proved(x: Array) -> bool:
    """Whether a root lies near x: in real arithmetic f is certainly negative on its left, certainly positive on its right."""
    (left,), (right,) = (enclose(FUNCTION, [x + side, TIMES], REAL) for side in (-RADIUS, RADIUS))
    return bool((left.parts[0].hi < 0).all() and (right.parts[0].lo > 0).all())


def main(executors: Sequence[str]) -> int:
    pool = Pool()
    try:
        for executor in pool.select(executors or ["all"], others=["jax"]).executors:
            x, steps = newton(executor)
            if not proved(x):
                print(f"{executor.name}: there may be no root within {RADIUS} of {x}")
                return 1
            print(f"{executor.name}: x = {x.round(6)} after {steps} steps")
    finally:
        pool.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
