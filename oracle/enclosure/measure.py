"""How far an implementation of a function is from the true value, in ULPs: what budgets are made of.

`python -m oracle.enclosure.measure` measures NumPy against Arb (python-flint; mpmath where that is absent) over ordinary and
hostile ranges. `measure` takes any implementation, so that a plugin can be measured by whoever can run one.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oracle.enclosure.formats import FORMATS, Array
from tenferro_ref.dtype import DType
from tenferro_ref.errors import MissingDependency

#: Bits that decide an error of far less than an ULP, and bits for the arguments of sin and cos near the largest value.
PRECISION, REDUCTION = 160, 1300

NAMES = ("Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Tanh", "Rsqrt", "Pow")
NUMPY: dict[str, Callable[..., Any]] = {
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tanh": np.tanh,
    "Rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x),
    "Pow": np.power,
}


@dataclass(frozen=True)
class Measured:
    """The largest error of one function: in ULPs of the true value, and the arguments where it is."""

    ulps: float
    at: tuple[float, ...]
    points: int


def _flint(name: str, x: Sequence[float]) -> Fraction | None:
    flint: Any = importlib.import_module("flint")
    old = flint.ctx.prec
    try:
        large = name in ("Sin", "Cos") and abs(x[0]) > 2.0**50
        flint.ctx.prec = REDUCTION if large else PRECISION
        a = flint.arb(x[0])
        true = {
            "Exp": a.exp,
            "Expm1": a.expm1,
            "Log": a.log,
            "Log1p": a.log1p,
            "Sin": a.sin,
            "Cos": a.cos,
            "Tanh": a.tanh,
            "Rsqrt": a.rsqrt,
            "Pow": lambda: _flint_pow(flint.arb, x),
        }[name]()
        if not true.is_finite():
            return None
        mantissa, exponent = true.mid().man_exp()
        return _fraction(int(mantissa), int(exponent))
    finally:
        flint.ctx.prec = old


def _fraction(mantissa: int, exponent: int) -> Fraction | None:
    """`mantissa * 2**exponent`; None far beyond any format, where the integers would fill the memory."""
    return Fraction(mantissa) * Fraction(2) ** exponent if abs(exponent) < 2**16 else None


def _flint_pow(arb: Any, x: Sequence[float]) -> Any:
    base, exponent = x
    magnitude = arb(abs(base)) ** arb(exponent)
    return -magnitude if base < 0 and exponent % 2 == 1 else magnitude


def _mpmath(name: str, x: Sequence[float]) -> Fraction | None:
    mpmath: Any = importlib.import_module("mpmath")
    with mpmath.workprec(REDUCTION if name in ("Sin", "Cos") else PRECISION):
        a = mpmath.mpf(x[0])
        true = {
            "Exp": lambda: mpmath.exp(a),
            "Expm1": lambda: mpmath.expm1(a),
            "Log": lambda: mpmath.log(a),
            "Log1p": lambda: mpmath.log1p(a),
            "Sin": lambda: mpmath.sin(a),
            "Cos": lambda: mpmath.cos(a),
            "Tanh": lambda: mpmath.tanh(a),
            "Rsqrt": lambda: 1 / mpmath.sqrt(a),
            "Pow": lambda: mpmath.power(a, mpmath.mpf(x[1])),
        }[name]()
        if isinstance(true, mpmath.mpc) or not mpmath.isfinite(true):
            return None
        sign, mantissa, exponent, _ = true._mpf_
        return _fraction((-1) ** int(sign) * int(mantissa), int(exponent))


def true_value(name: str, *x: float) -> Fraction | None:
    """The value of a function (to 160 bits) as a fraction; None where it is no finite real number.

    Raises
    ------
    MissingDependency
        Neither python-flint nor mpmath is installed.
    """
    for evaluate in (_flint, _mpmath):
        try:
            return evaluate(name, x)
        except ImportError:
            continue
    raise MissingDependency(name="python-flint", remedy='install the extra: pip install "tenferro-ref[truth]"')


def error_in_ulps(name: str, dtype: DType, result: float, *x: float) -> float | None:
    """Distance of a finite result from the true value; None where the true value rounds to no finite number."""
    f = FORMATS[dtype]
    true = true_value(name, *x)
    if true is None or abs(true) > Fraction(f.max) or not np.isfinite(result):
        return None
    near = np.asarray(float(true) if true else 0.0)
    return float(abs(Fraction(result) - true) / Fraction(float(f.ulp(near))))


def measure(name: str, dtype: DType, implementation: Callable[..., Array], *x: Array) -> Measured:
    """The largest error of `implementation` over arguments `x`, where argument, true value and result are normal."""
    with np.errstate(all="ignore"):
        results = np.asarray(implementation(*x))
    tiny = FORMATS[dtype].min_normal
    worst, at, points = 0.0, (0.0,), 0
    for result, *arguments in zip(results.tolist(), *(a.tolist() for a in x), strict=True):
        if not np.isfinite(result) or abs(result) < tiny or any(a != 0 and abs(a) < tiny for a in arguments):
            continue
        error = error_in_ulps(name, dtype, result, *arguments)
        if error is None:
            continue
        points += 1
        if error > worst:
            worst, at = error, tuple(arguments)
    return Measured(worst, at, points)


def arguments(name: str, dtype: DType, points: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Ordinary ranges, ranges where the result is near 1, 0 or the limits, and all magnitudes."""
    top = float(np.log(FORMATS[dtype].max))
    n = max(points // 5, 1)
    pieces = [
        rng.standard_normal(n) * 3,
        rng.uniform(-top * 1.01, top * 1.01, n),
        1 + rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 0, n),
        rng.choice([-1.0, 1.0], n) * np.exp(rng.uniform(-top, top, n)),
        rng.uniform(-1, 1, n),
    ]
    x = np.concatenate(pieces).astype(dtype.numpy)
    if name in ("Log", "Rsqrt", "Pow"):
        x = np.abs(x)
    if name == "Log1p":
        x = np.where(x < -1, -1 / np.where(x == 0, 1, x) * -1, x).astype(dtype.numpy)
    if name != "Pow":
        return (x,)
    with np.errstate(all="ignore"):
        y = rng.uniform(-top, top, x.size) / np.log(x.astype(float))
    return x, np.where(np.isfinite(y), y, 1).astype(dtype.numpy)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m oracle.enclosure.measure", description=__doc__)
    parser.add_argument("--function", choices=NAMES, action="append", help="default: all")
    parser.add_argument("--dtype", choices=("F32", "F64"), action="append", help="default: both")
    parser.add_argument("--points", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    print(f"NumPy {np.__version__}, {args.points} points, seed {args.seed}; largest error in ULPs")
    for dtype in [DType[d] for d in args.dtype or ("F32", "F64")]:
        for name in args.function or NAMES:
            rng = np.random.default_rng(args.seed)
            try:
                seen = measure(name, dtype, NUMPY[name], *arguments(name, dtype, args.points, rng))
            except MissingDependency as error:
                print(error, file=sys.stderr)
                return error.exit_status
            at = ", ".join(repr(v) for v in seen.at)
            print(f"{dtype.name} {name:6} {seen.ulps:8.3f}  at {at}  ({seen.points} points)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
