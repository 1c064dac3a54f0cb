"""Thousands of arguments through one op, or two in a row: which results of an executor are outside their enclosure.

A campaign's programs are long and their arrays short. `python -m tools.sweep --executor pjrt:lam115@parity` runs every elementwise op, function and
conversion over special values, knees, whole numbers and what is beside them, all magnitudes and random bits, and prints one line a kind of
disagreement: the page that knows it, the signature, and where it was met first: in how many results, as of which arguments. It finds budgets that are too small,
contradictions between the native executor and the enclosures (`--executor native`), and values that a compiler treats wrongly.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product

import numpy as np

from fuzz.findings.known import load_known, page_of
from fuzz.findings.naming import signature
from fuzz.generate.values.special import KNEES, SPECIALS
from oracle.attribution import EVERY_LANE, attribute, hlo_pass
from oracle.case import Case
from oracle.enclosure.formats import Array
from oracle.judge import judge
from oracle.peers import Executor, NativeExecutor, Pool
from oracle.reference import Reference
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError, ValidationError
from tenferro_ref.ops import STABLEHLO, Op, TensorType
from tenferro_ref.program import GraphBuilder
from tools.measure import SPECIAL

UNARY: tuple[type[Op], ...] = (
    ops.Negate, ops.Conj, ops.Abs, ops.Sign, ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Expm1, ops.Log1p,
)  # fmt: skip
BINARY: tuple[type[Op], ...] = (
    ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Remainder, ops.Pow, ops.Maximum, ops.Minimum,
)  # fmt: skip
#: All of them, and the functions that the reference alone has.
ELEMENTWISE: tuple[Op, ...] = (
    *(op() for op in (*UNARY, *BINARY)),
    *((ops.Special, ops.Special2)[len(ends) - 1](name) for name, ends in SPECIAL.items()),
)


def arguments(dtype: DType, count: int, rng: np.random.Generator) -> Array:
    """Special values, knees, numbers beside 1 and beside whole numbers, all magnitudes, and random bits."""
    if dtype.is_complex:
        made = np.empty(count, dtype.numpy)
        made.real, made.imag = (arguments(dtype.real, count, rng) for _ in range(2))
        turned = np.exp(2j * np.pi * rng.random(count)) * 10.0 ** rng.choice([rng.uniform(-7, 7), 0.0], count)
        return np.where(rng.random(count) < 0.5, made, turned.astype(dtype.numpy))
    special = rng.choice(np.concatenate([SPECIALS[dtype], KNEES.get(dtype, SPECIALS[dtype])]), count)
    if not dtype.is_float:
        if dtype is DType.Bool:
            return special
        low, high = dtype.limits
        small, any_ = (
            rng.integers(least, most, count, np.uint64 if dtype.is_unsigned else np.int64, endpoint=True)
            for least, most in ((max(low, -9), min(high, 9)), (low, high))
        )
        return np.choose(rng.integers(0, 3, count), [special, small.astype(dtype.numpy), any_.astype(dtype.numpy)])
    sign, fine = rng.choice([-1, 1], count), 10.0 ** rng.uniform(-7, 0, count)
    pieces = [
        special,
        _bits(dtype, count, rng),
        1 + sign * fine,
        rng.uniform(-1.2, 1.2, count),
        rng.uniform(-100, 100, count),
        np.rint(rng.uniform(-30, 30, count)) + sign * fine,
        sign * 10.0 ** rng.uniform(-4, 4, count),
    ]
    with np.errstate(all="ignore"):
        return np.asarray(
            np.choose(rng.integers(0, len(pieces), count), [p.astype(dtype.numpy).astype(np.float64) for p in pieces])
        ).astype(dtype.numpy)


def _bits(dtype: DType, count: int, rng: np.random.Generator) -> Array:
    words = rng.integers(0, 2**dtype.bits, count, dtype=np.uint64)
    return words.astype(f"<u{dtype.itemsize}").view(dtype.numpy)


@dataclass(frozen=True)
class Form:
    """One op, or one after the other, of operands of one dtype; the second takes the operands that it lacks from the inputs."""

    ops: tuple[Op, ...]
    dtype: DType

    def case(self, arrays: Sequence[Array]) -> Case:
        """The program with these inputs.

        Raises
        ------
        TenferroError
            An op does not admit what it is given.
        """
        builder = GraphBuilder("sweep", STABLEHLO)
        inputs = [builder.typed_input(TensorType(self.dtype, a.shape)) for a in arrays]
        value = builder.apply(self.ops[0], *inputs[: self.ops[0].arity])
        for op in self.ops[1:]:
            value = builder.apply(op, value, *inputs[: op.arity - 1])
        return Case.of(builder.build(value), arrays)


def name_of(op: Op) -> str:
    """The name of an op, or of the function that it computes."""
    return str(getattr(op, "function", op.name))


def forms(dtypes: Sequence[DType], *, pairs: bool) -> Iterator[Form]:
    """Every op over each dtype; with `pairs` every two of them, without conversions."""
    for dtype in dtypes:
        if pairs:
            yield from (Form(two, dtype) for two in product(ELEMENTWISE, repeat=2))
            continue
        yield from (Form((op,), dtype) for op in ELEMENTWISE)
        for to in DType:
            yield Form((ops.Convert(to),), dtype)
            yield Form((ops.Convert(to), ops.Convert(dtype)), dtype)


def kinds(executor: Executor, case: Case) -> dict[tuple[str, ...], list[int]]:
    """The arguments whose results are outside, by what was expected and what came.

    Raises
    ------
    TenferroError
        The program cannot be run, or has no enclosure.
    """
    (result,) = executor.run(case).outputs
    (held,) = Reference(case, NativeExecutor()).enclosures(executor.model)
    found: dict[tuple[str, ...], list[int]] = {}
    seen = (result.real, result.imag) if len(held.parts) == 2 else (result,)
    for at in np.flatnonzero(~held.contains(result)).tolist():
        words = [
            f"{_kind(p.lo[at])} to {_kind(p.hi[at])}, {p.nan[at]}: {_kind(s[at])}"
            for p, s in zip(held.parts, seen, strict=True)
        ]
        found.setdefault(tuple(words), []).append(at)
    return found


def _kind(value: np.generic) -> str:
    number = float(value)
    return "NaN" if number != number else "0" if number == 0 else "infinity" if np.isinf(number) else "finite"


def explained(executor: Executor, case: Case, pool: Pool) -> tuple[str, str]:
    """Signature of the disagreement about a case, and the page that knows it; both empty if there is none."""
    answer = judge(executor, Reference(case, NativeExecutor()))
    if not answer.verdict.is_disagreement:
        return "", ""
    cause = attribute(executor, case, pool)
    if cause == EVERY_LANE or cause.startswith("only jax"):
        name = hlo_pass(executor, case)
        cause = f"HLO pass: {name}" if name else cause
    words = signature(case, answer, cause)
    verdict = answer.verdict.name.lower()
    return words, page_of(words, verdict, str(executor.name), executor.build, load_known())


def sweep(
    executor: Executor, form: Form, count: int, rng: np.random.Generator, pool: Pool
) -> Iterator[tuple[str, str, str]]:
    """Page, signature and occasion of each kind of disagreement of a form, also where the executor ends in an error or dies."""
    arrays = [arguments(form.dtype, count, rng) for _ in range(max(op.arity for op in form.ops))]
    try:
        case = form.case(arrays)
    except ValidationError:  # an op lacks the dtype
        return
    try:
        found = kinds(executor, case)
    except TenferroError:  # some are disagreements, and some say what the executor or the enclosures lack
        words, page = explained(executor, case, pool)
        if words:
            yield page, words, f"of {count} arguments together"
        return
    for places in found.values():
        one = [a[places[0] : places[0] + 1] for a in arrays]
        words, page = explained(executor, form.case(one), pool)
        words = words or f"{' > '.join(map(name_of, form.ops))} | {form.dtype.name} | not of one argument alone"
        of = ", ".join(str(a[0]) for a in one)
        yield page, words, f"{len(places)} of {count}, as of {of}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.sweep", description=__doc__)
    names = sorted({*map(name_of, ELEMENTWISE), "Convert"})
    parser.add_argument("--executor", default="native", help="native, interpreter, pjrt:lam115@parity, ...")
    parser.add_argument("--dtype", choices=[d.name for d in DType], action="append", help="default: all")
    parser.add_argument(
        "--op", choices=names, action="append", help="forms with none of these are left out; default: all"
    )
    parser.add_argument("--pairs", action="store_true", help="two ops in a row, and no conversions")
    parser.add_argument("--arguments", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    rng = np.random.default_rng(args.seed)
    print(f"{args.executor}, {args.arguments} arguments, seed {args.seed}")
    seen: set[tuple[str, str]] = set()
    with closing(Pool()) as pool:
        try:
            executor = pool.make(args.executor)
            for form in forms([DType[d] for d in args.dtype or DType.__members__], pairs=args.pairs):
                if args.op and not any(name_of(op) in args.op for op in form.ops):
                    continue
                for page, words, occasion in sweep(executor, form, args.arguments, rng, pool):
                    if (page, words) not in seen:
                        print(f"{page or 'NEW'}  {words}  [{occasion}]", flush=True)
                    seen.add((page, words))
        except TenferroError as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
