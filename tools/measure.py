"""How far an implementation of a function is from the true value, in ULPs: what budgets are made of.

`python -m tools.measure` measures NumPy, JAX (`--implementation jax`) or an executor (`--implementation pjrt:gpu`) against Arb
(python-flint; mpmath where that is absent) over ordinary and hostile ranges; functions of the reference alone (`SPECIAL`) against mpmath.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from oracle.case import Case
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.true_values import budgets as special_budgets
from oracle.enclosure.true_values import true_range, true_values_of_two
from oracle.peers import Executor, Pool
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import MissingDependency, TenferroError
from tenferro_ref.ops import BY_NAME, Policy, TensorType
from tenferro_ref.program import GraphBuilder
from tenferro_ref.runtime.kernels.base import run_kernel

#: Bits that decide an error of far less than an ULP, and bits for the arguments of sin and cos near the largest value.
PRECISION, REDUCTION = 160, 1300

NAMES = ("Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Tanh", "Rsqrt", "Pow")
#: Ops of one correct rounding, but where a platform approximates them.
ROUNDED = ("Divide", "Sqrt")
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

#: Functions of complex numbers; errors are counted in ULPs of the modulus.
COMPLEX = (*NAMES, "Sqrt", "Abs", "Sign", "Divide")


#: Functions of the reference alone, and the ranges that their arguments are drawn from: uniformly, and dense at the ends.
SPECIAL: dict[str, tuple[tuple[float, float], ...]] = {
    "cbrt": ((-1e9, 1e9),), "tan": ((-30, 30),), "asin": ((-1, 1),), "acos": ((-1, 1),), "atan": ((-1e6, 1e6),),
    "sinh": ((-np.inf, np.inf),), "cosh": ((-np.inf, np.inf),), "asinh": ((-1e9, 1e9),), "acosh": ((1, 1e9),),
    "atanh": ((-1, 1),), "erf": ((-6, 6),), "erfc": ((-6, np.inf),), "erf_inv": ((-1, 1),), "lgamma": ((-30, 1e4),),
    "digamma": ((-1e7, 1e4),), "bessel_i1e": ((-1e3, 1e3),), "atan2": ((-1e6, 1e6), (-1e6, 1e6)),
    "zeta": ((1, 200), (0, 50)), "polygamma": ((1, 7), (0, 50)),
}  # fmt: skip


def native(name: str) -> Callable[..., Any]:
    """The native kernel of an op, which for complex numbers is more than one NumPy call, or of a function of the reference alone."""
    op = BY_NAME[name]() if name in BY_NAME else (ops.Special, ops.Special2)[len(SPECIAL[name]) - 1](name)
    return lambda *x: run_kernel(op, Policy(dtypes="stablehlo"), *x)[0]


def of_jax(name: str) -> Callable[..., Any]:
    """The same function as JAX has it, compiled by jaxlib."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    function = {"Divide": jax.lax.div}.get(name) or getattr(jax.lax, name.lower())
    return lambda *x: np.asarray(jax.jit(function)(*x))


def of_executor(executor: Executor, name: str) -> Callable[..., Any]:
    """The same function as an executor has it, in a program of this op alone."""
    op = BY_NAME[name]() if name in BY_NAME else (ops.Special, ops.Special2)[len(SPECIAL[name]) - 1](name)

    def run(*x: Array) -> Array:
        builder = GraphBuilder("measured", Policy(dtypes="stablehlo"))
        inputs = [builder.typed_input(TensorType(DType.of(a), a.shape)) for a in x]
        return executor.run(Case.of(builder.build(builder.apply(op, *inputs)), x)).outputs[0]

    return run


@dataclass(frozen=True)
class Measured:
    """The largest error of one function: in ULPs of the true value, and the arguments where it is."""

    ulps: float
    at: tuple[complex, ...]
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
            "Sqrt": a.sqrt,
            "Divide": lambda: a / flint.arb(x[1]),
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


def acb_value(flint: Any, name: str, z: Any, *rest: Any) -> Any:
    """The value of a function as an Arb ball around a complex number."""
    return {
        "Exp": lambda: z.exp(),
        "Expm1": lambda: z.expm1(),
        "Log": lambda: z.log(),
        "Log1p": lambda: z.log1p(),
        "Sin": lambda: z.sin(),
        "Cos": lambda: z.cos(),
        "Tanh": lambda: z.tanh(),
        "Sqrt": lambda: z.sqrt(),
        "Rsqrt": lambda: z.rsqrt(),
        "Abs": lambda: flint.acb(abs(z)),
        "Sign": lambda: z / abs(z),
        "Divide": lambda: z / rest[0],
        "Pow": lambda: z ** rest[0],
    }[name]()


def complex_true_value(name: str, *z: complex) -> tuple[Fraction, Fraction] | None:
    """Real and imaginary part of the value of a function (to 160 bits); None where it is no finite number.

    Raises
    ------
    MissingDependency
        python-flint is not installed.
    """
    try:
        flint: Any = importlib.import_module("flint")
    except ImportError as error:
        raise MissingDependency(
            name="python-flint", remedy='install the extra: pip install "tenferro-ref[truth]"'
        ) from error
    old = flint.ctx.prec
    try:
        flint.ctx.prec = REDUCTION if name in ("Sin", "Cos") and abs(z[0].real) > 2.0**50 else PRECISION
        true = acb_value(flint, name, *(flint.acb(v.real, v.imag) for v in z))
        if not true.is_finite():
            return None
        parts = [_fraction(*map(int, part.mid().man_exp())) for part in (true.real, true.imag)]
        return None if None in parts else (parts[0], parts[1])  # type: ignore[return-value]
    finally:
        flint.ctx.prec = old


def complex_error_in_ulps(name: str, dtype: DType, result: complex, *z: complex) -> float | None:
    """Distance of a finite result from the true value, in ULPs of the true modulus; of Pow, per 1 + |y| (1 + |log x|)."""
    f = FORMATS[dtype.real]
    true = complex_true_value(name, *z)
    if true is None or not np.isfinite(result):
        return None
    size = float(np.hypot(float(true[0]), float(true[1])))
    if not f.min_normal / f.unit < size < f.max / 4:
        return None
    off = float(np.hypot(float(Fraction(result.real) - true[0]), float(Fraction(result.imag) - true[1])))
    growth = 1 + abs(z[1]) * (1 + abs(np.log(z[0]))) if name == "Pow" else 1.0
    return off / float(f.ulp(np.asarray(size))) / float(growth)


def complex_arguments(name: str, dtype: DType, points: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Near the origin, ordinary, near the unit circle, with one part much smaller than the other, and all magnitudes."""
    n = max(points // 5, 1)
    turn = np.exp(2j * np.pi * rng.random(n))
    plain = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    pieces = [
        plain * 10.0 ** rng.uniform(-6, 0, n),
        plain * 3,
        turn * (1 + rng.standard_normal(n) * 10.0 ** rng.uniform(-6, -1, n)),
        plain.real + 1j * plain.imag * 10.0 ** rng.uniform(-6, 0, n),
        plain * 10.0 ** rng.uniform(-8, 8, n),
    ]
    z = np.concatenate(pieces).astype(dtype.numpy)
    if name == "Divide":
        return z, rng.permutation(z)
    return (z, (rng.permutation(z) * 0.5).astype(z.dtype)) if name == "Pow" else (z,)


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
            "Sqrt": lambda: mpmath.sqrt(a),
            "Divide": lambda: a / mpmath.mpf(x[1]),
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


def special_errors(name: str, dtype: DType, results: Array, *x: Array) -> Array:
    """Distances of results from the true values of a function of the reference alone, in ULPs; NaN where either is not finite."""
    f, floor = FORMATS[dtype], special_budgets()[name].get("floor", 0.0)
    arguments = [a.astype(np.float64) for a in x]
    with np.errstate(all="ignore"):
        if len(x) == 1:
            low, high = true_range(name, arguments[0], dtype)
        else:
            low = high = _true_of_two(name, arguments[0], arguments[1], f.wide)
        size = np.maximum(np.maximum(np.abs(low), np.abs(high)), floor)
        got = results.astype(f.wide)
        off = np.maximum(np.maximum(low - got, got - high), 0) / f.ulp(size)
        usual = (size < f.max) & (size >= f.min_normal / f.unit)  # below, terms underflow or are flushed
        return np.where(usual & np.isfinite(off), off, np.nan).astype(float)


def _true_of_two(name: str, x: Array, y: Array, wide: Any) -> Array:
    if name == "atan2":
        return np.asarray(np.arctan2(x.astype(wide), y.astype(wide)))
    return true_values_of_two(name, x, y, wide)


def special_arguments(name: str, dtype: DType, points: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Uniform over the ranges of the function, dense near 0, their ends and whole numbers, and of all magnitudes within them."""
    top = float(np.log(FORMATS[dtype].max)) if name != "erfc" else 26.5 if dtype is DType.F64 else 9.2

    def one(low: float, high: float) -> Array:
        low, high = max(low, -top), min(high, top) if np.isinf(high) else high
        n = points // 5
        near = (high - low) * 10.0 ** rng.uniform(-9, 0, n)
        sign = rng.choice([-1, 1], n)
        pieces = [
            rng.uniform(low, high, n),
            low + near,
            high - near,
            sign * 10.0 ** rng.uniform(-6, np.log10(max(-low, high)), n),
            np.rint(rng.uniform(max(low, -100), min(high, 100), n)) + sign * 10.0 ** rng.uniform(-7, 0, n),
        ]
        drawn = np.clip(np.concatenate(pieces), low, high).astype(dtype.numpy)
        return np.clip(np.rint(drawn), 1, 6).astype(dtype.numpy) if name == "polygamma" and high == 7 else drawn

    return tuple(rng.permutation(one(*ends)) for ends in SPECIAL[name])


def measure(name: str, dtype: DType, implementation: Callable[..., Array], *x: Array) -> Measured:
    """The largest error of `implementation` over arguments `x`, where argument, true value and result are normal."""
    with np.errstate(all="ignore"):
        results = np.asarray(implementation(*x))
    tiny = FORMATS[dtype.real].min_normal
    if name in SPECIAL:
        usual = np.logical_and.reduce([(a == 0) | (np.abs(a) >= tiny) for a in x])
        errors = np.where(usual, special_errors(name, dtype, results, *x), np.nan)
        k = int(np.nanargmax(errors))
        return Measured(float(errors[k]), tuple(a[k].item() for a in x), int((~np.isnan(errors)).sum()))
    count = complex_error_in_ulps if dtype.is_complex else error_in_ulps
    worst, points = 0.0, 0
    at: tuple[complex, ...] = (0.0,)
    for result, *arguments in zip(results.tolist(), *(a.tolist() for a in x), strict=True):
        if not np.isfinite(result) or abs(result) < tiny or any(a != 0 and abs(a) < tiny for a in arguments):
            continue
        error = count(name, dtype, result, *arguments)
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
    if name in ("Log", "Rsqrt", "Sqrt", "Pow"):
        x = np.abs(x)
    if name == "Log1p":
        x = np.where(x < -1, -1 / np.where(x == 0, 1, x) * -1, x).astype(dtype.numpy)
    if name == "Divide":
        return x, rng.permutation(x)
    if name != "Pow":
        return (x,)
    with np.errstate(all="ignore"):
        y = rng.uniform(-top, top, x.size) / np.log(x.astype(float))
    return x, np.where(np.isfinite(y), y, 1).astype(dtype.numpy)


def drawn(name: str, dtype: DType, points: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Arguments of a function."""
    draw = special_arguments if name in SPECIAL else complex_arguments if dtype.is_complex else arguments
    return draw(name, dtype, points, rng)


def main(argv: Sequence[str] | None = None) -> int:
    names = {
        **dict.fromkeys(("F32", "F64"), (*NAMES, *ROUNDED, *SPECIAL)),
        "F16": NAMES,
        "BF16": NAMES,
        "C32": COMPLEX,
        "C64": COMPLEX,
    }
    parser = argparse.ArgumentParser(prog="python -m tools.measure", description=__doc__)
    parser.add_argument(
        "--function", choices=sorted({*NAMES, *ROUNDED, *COMPLEX, *SPECIAL}), action="append", help="default: all"
    )
    parser.add_argument("--dtype", choices=tuple(names), action="append", help="default: all")
    parser.add_argument("--implementation", default="native", help="native, jax, or an executor, as pjrt:gpu")
    parser.add_argument("--points", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    with closing(Pool()) as pool:
        try:
            made = {"native": native, "jax": of_jax}.get(args.implementation)
            _print_all(args, names, made or partial(of_executor, pool.make(args.implementation)))
        except TenferroError as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_status
    return 0


def _print_all(
    args: argparse.Namespace, names: dict[str, tuple[str, ...]], make: Callable[[str], Callable[..., Any]]
) -> None:
    print(
        f"{args.implementation}, NumPy {np.__version__}, {args.points} points, seed {args.seed}; largest error in ULPs"
    )
    for dtype in [DType[d] for d in args.dtype or names]:
        for name in [n for n in names[dtype.name] if args.function is None or n in args.function]:
            x = drawn(name, dtype, args.points, np.random.default_rng(args.seed))
            seen = measure(name, dtype, make(name), *x)
            at = ", ".join(repr(v) for v in seen.at)
            print(f"{dtype.name} {name:10} {seen.ulps:8.3f}  at {at}  ({seen.points} points)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
