"""An independent evaluation in Arb balls (python-flint): what it finds must intersect the enclosure, and may narrow it.

Each result is the real op on balls of 200 bits, its radius enlarged by the budget: the ball holds every rounding, fused or
rewritten, of every operand. Where a value may leave the finite range, or a choice stays open, there is no ball (None).
Nothing is shared with the rules: elements are Python objects, and moves are those of their numbers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from operator import mul
from typing import Any, TypeAlias

import numpy as np

from oracle.enclosure.executor import enclose
from oracle.enclosure.formats import FORMATS, Array
from oracle.enclosure.model import Model
from oracle.enclosure.value import Enclosure, Interval
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.errors import MissingDependency
from tenferro_ref.extensions import einsum
from tenferro_ref.ops import CompareDir, Op, free_axes
from tenferro_ref.program import GraphProgram
from tenferro_ref.runtime.kernels.base import run_kernel

PRECISION = 200
#: ULPs, beyond its own half, that an op of a chain may be off when regrouped. A product or quotient needs two: its rounding
#: and that of a reciprocal. `x rsqrt(y)` needs four, twice the budget of Rsqrt, and those two: so much quotient and root have.
REWRITTEN = 3

#: An arb, a bool, or None where nothing is known.
Element: TypeAlias = Any
MOVES = (
    ops.Transpose,
    ops.Reshape,
    ops.BroadcastInDim,
    ops.Slice,
    ops.Reverse,
    ops.Concatenate,
    ops.Pad,
    ops.ExtractDiag,
    ops.EmbedDiag,
    ops.Tril,
    ops.Triu,
    ops.Conj,
)


class _Arb:
    """Rules on single elements under one model and dtype."""

    def __init__(self, flint: Any, model: Model) -> None:
        self.arb, self.model = flint.arb, model

    def rounded(self, x: Element, dtype: DType, ulps: float, slack: Element = 0) -> Element:
        """`x` within `ulps` ULPs and `slack`; None where that may not be a finite number of the dtype."""
        if x is None or not x.is_finite():
            return None
        f = FORMATS[dtype]
        size = abs(x).upper()
        if not size < f.top_binade:
            return None
        tiny = 2 * f.min_normal if self.model.flush else f.least_subnormal
        ulp = float(f.ulp(np.asarray(float(size))))
        return x + self.arb(0, 1) * (self.arb(ulps * ulp + tiny) + slack)

    def function(self, op: Op, dtype: DType, *x: Element) -> Element:
        if any(v is None for v in x):
            return None
        name = op.name
        exact: dict[str, Callable[[], Element]] = {
            "Add": lambda: x[0] + x[1],
            "Subtract": lambda: x[0] - x[1],
            "Multiply": lambda: x[0] * x[1],
            "Divide": lambda: x[0] / x[1],
            "Pow": lambda: x[0] ** x[1] if x[0] > 0 else None,
            "Sqrt": lambda: x[0].sqrt() if x[0] > 0 or x[0] == 0 else None,
            "Rsqrt": lambda: x[0].rsqrt() if x[0] > 0 else None,
        }
        value = exact[name]() if name in exact else getattr(x[0], name.lower())()
        ulps = 0.5 if name in ("Add", "Subtract", "Multiply", "Divide", "Sqrt") else self.model.budget(name, dtype)
        # of a root, its argument's rounding may be missing as well
        extra = REWRITTEN if self.model.gather and name in ("Multiply", "Divide", "Sqrt") else 0
        return self.rounded(value, dtype, ulps + extra)

    def total(self, terms: Sequence[Element], dtype: DType, each: float = 0.0) -> Element:
        """A sum in any order, each term off by up to `each` units of its size."""
        if any(t is None for t in terms):
            return None
        unit, n = FORMATS[dtype].unit, len(terms)
        size = sum((abs(t).upper() for t in terms), self.arb(0))
        gamma = (n + each) * unit / (1 - (n + each) * unit)
        return self.rounded(sum(terms, self.arb(0)), dtype, n, gamma * size)

    def product(self, terms: Sequence[Element], dtype: DType) -> Element:
        result: Element = self.arb(1)
        for t in terms:
            result = None if t is None or result is None else self.rounded(result * t, dtype, 1)
        return result

    def extremum(self, largest: bool, *x: Element) -> Element:
        if any(v is None for v in x):
            return None
        return reduce(lambda a, b: a.max(b) if largest else a.min(b), x)

    def compared(self, direction: CompareDir, x: Element, y: Element) -> bool | None:
        if x is None or y is None:
            return None
        if direction in (CompareDir.Gt, CompareDir.Ge):
            x, y = y, x
        if self.model.flush:  # a subnormal may be read as zero
            return True if x < y and direction is not CompareDir.Eq and abs(y - x) > 1e-37 else None
        if direction is CompareDir.Eq:
            return None if x.overlaps(y) and not (x.is_exact() and y.is_exact()) else bool(x == y)
        strict = direction in (CompareDir.Lt, CompareDir.Gt)
        yes, no = (x < y, x >= y) if strict else (x <= y, x > y)
        return True if yes else False if no else None

    def chosen(self, pred: bool | None, x: Element, y: Element) -> Element:
        if pred is not None:
            return x if pred else y
        return None if x is None or y is None else x.union(y)


def arb_values(program: GraphProgram, inputs: Sequence[Array], model: Model) -> dict[int, Array]:
    """The balls of every slot of real floats: arrays of arb, with None where there is none.

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
    old, flint.ctx.prec = flint.ctx.prec, PRECISION
    try:
        a = _Arb(flint, model)
        values = {s: _known(a, x) for s, x in zip(program.input_slots, inputs, strict=True)}
        for ins in program.instructions:
            operands = [values[s] for s in ins.input_slots]
            dtypes = [program.slot_types[s].dtype for s in ins.input_slots]
            for slot in ins.output_slots:
                dtype = program.slot_types[slot].dtype
                values[slot] = _step(a, program, ins.op, dtype, dtypes, operands)
        return values
    finally:
        flint.ctx.prec = old


def _objects(shape: tuple[int, ...], items: Iterable[Element]) -> Array:
    made = np.empty(shape, object)
    made.reshape(-1)[:] = [*items]
    return made


def _known(a: _Arb, x: Array) -> Array:
    """Inputs and constants: finite floats are points, widened where they may be flushed."""

    def one(v: Any) -> Element:
        if x.dtype.kind != "f" or not np.isfinite(v):
            return bool(v) if x.dtype.kind == "b" else None
        small = a.model.flush and 0 < abs(v) < np.finfo(x.dtype).smallest_normal
        return a.arb(float(v) / 2, abs(float(v)) / 2) if small else a.arb(float(v))

    return _objects(x.shape, map(one, x.reshape(-1)))


def _step(a: _Arb, program: GraphProgram, op: Op, dtype: DType, dtypes: Sequence[DType], x: Sequence[Array]) -> Array:
    """One op; None everywhere for an op that is not evaluated here."""
    if isinstance(op, ops.Constant):
        return _known(a, np.asarray(op.value))
    if isinstance(op, MOVES):
        return _moved(a, program, op, x)
    unknown = dtype is DType.Bool and any(not d.is_float for d in dtypes)
    if not unknown and isinstance(op, ops.Compare):
        return _each(lambda *v: a.compared(op.dir, *v), *x)
    if isinstance(op, ops.Select):
        return _each(a.chosen, *x)
    if not dtype.is_float or any(not d.is_float for d in dtypes):
        return _nothing(program, op, dtypes, x)
    if isinstance(op, ops.Negate | ops.Abs):
        return _each(lambda v: None if v is None else -v if isinstance(op, ops.Negate) else abs(v), *x)
    if isinstance(op, ops.Maximum | ops.Minimum):
        return _each(lambda *v: a.extremum(isinstance(op, ops.Maximum), *v), *x)
    if isinstance(op, ops.Clamp):
        return _each(lambda v, low, high: a.extremum(False, high, a.extremum(True, low, v)), *x)
    if isinstance(
        op,
        ops.Add
        | ops.Subtract
        | ops.Multiply
        | ops.Divide
        | ops.Pow
        | ops.Exp
        | ops.Log
        | ops.Sin
        | ops.Cos
        | ops.Tanh
        | ops.Sqrt
        | ops.Rsqrt
        | ops.Expm1
        | ops.Log1p,
    ):
        return _each(lambda *v: a.function(op, dtype, *v), *x)
    if isinstance(op, ops.ReduceSum | ops.ReduceProd | ops.ReduceMax | ops.ReduceMin):
        if not op.axes:
            return x[0]
        kept = free_axes(x[0].ndim, op.axes)
        lines = x[0].transpose((*kept, *op.axes)).reshape(*(x[0].shape[i] for i in kept), -1)
        fold: dict[type[Op], Callable[[Sequence[Element]], Element]] = {
            ops.ReduceSum: lambda t: a.total(t, dtype),
            ops.ReduceProd: lambda t: a.product(t, dtype),
            ops.ReduceMax: lambda t: a.extremum(True, *t),
            ops.ReduceMin: lambda t: a.extremum(False, *t),
        }
        return _objects(lines.shape[:-1], [fold[type(op)](list(lines[i])) for i in np.ndindex(lines.shape[:-1])])
    if isinstance(op, ops.DotGeneral) and not op.lhs_batch_dims:
        return _dot(a, op, dtype, *x)
    if isinstance(op, ops.Extension) and op.family == einsum.FAMILY:
        return _einsum(a, op, dtype, x)
    return _nothing(program, op, dtypes, x)


def _each(f: Callable[..., Element], *x: Array) -> Array:
    spread = np.broadcast_arrays(*x)
    return _objects(spread[0].shape, (f(*v) for v in zip(*(s.reshape(-1) for s in spread), strict=True)))


def _moved(a: _Arb, program: GraphProgram, op: Op, x: Sequence[Array]) -> Array:
    """The kernel moves numbers of elements; 0 is what it fills with."""
    pool, numbers = [a.arb(0)], []
    for v in x:
        numbers.append(np.asfortranarray(len(pool) + np.arange(v.size).reshape(v.shape)).reshape(v.shape))
        pool += [*v.reshape(-1)]
    if isinstance(op, ops.Conj):
        return x[0]
    (moved,) = run_kernel(op, program.policy, *numbers)
    return _objects(moved.shape, (pool[int(k)] for k in moved.reshape(-1)))


def _dot(a: _Arb, op: ops.DotGeneral, dtype: DType, x: Array, y: Array) -> Array:
    left, right = (
        v.transpose((*free_axes(v.ndim, axes), *axes))
        for v, axes in ((x, op.lhs_contracting_dims), (y, op.rhs_contracting_dims))
    )
    n = len(op.lhs_contracting_dims)
    rows, columns = left.shape[: left.ndim - n], right.shape[: right.ndim - n]
    left, right = left.reshape(*rows, -1), right.reshape(*columns, -1)

    def one(i: tuple[int, ...], j: tuple[int, ...]) -> Element:
        pairs = zip(left[i], right[j], strict=True)
        return a.total([None if p is None or q is None else p * q for p, q in pairs], dtype, 1.0)

    return _objects((*rows, *columns), (one(i, j) for i in np.ndindex(rows) for j in np.ndindex(columns)))


def _einsum(a: _Arb, op: ops.Extension, dtype: DType, x: Sequence[Array]) -> Array:
    """By the definition: a sum over all values of the labels that the output has not, of products of all operands.

    Whatever the path, a term meets at most as many sums as there are terms, and as many products as operands; what
    underflows on the way is multiplied by partial results, each at most what an operand adds up to.
    """
    equation = einsum.parse(op)
    extent = einsum.extents(op, equation, [v.shape for v in x])
    tiny = FORMATS[dtype].min_normal if a.model.flush else FORMATS[dtype].least_subnormal
    summed = sorted(equation.summed)
    count = prod(extent[label] for label in summed)
    reach = [sum((abs(v).upper() for v in m.reshape(-1) if v is not None), a.arb(0)) for m in x]
    slack = tiny * (count + len(x)) * reduce(lambda p, q: p * (1 if q < 1 else q), reach, a.arb(1))

    def element(at: tuple[int, ...]) -> Element:
        known = dict(zip(equation.output, at, strict=True))
        if any(known[label] != k for label, k in zip(equation.output, at, strict=True)):
            return a.arb(0)  # beside the diagonal of a repeated label
        terms = []
        for rest in np.ndindex(*(extent[label] for label in summed)):
            index = known | dict(zip(summed, rest, strict=True))
            factors = [m[tuple(index[label] for label in labels)] for labels, m in zip(equation.inputs, x, strict=True)]
            terms.append(None if any(v is None for v in factors) else reduce(mul, factors, a.arb(1)))
        value = a.total(terms, dtype, float(len(x)))
        return None if value is None else value + a.arb(0, 1) * slack

    shape = tuple(extent[label] for label in equation.output)
    return _objects(shape, map(element, np.ndindex(shape)))


def _nothing(program: GraphProgram, op: Op, dtypes: Sequence[DType], x: Sequence[Array]) -> Array:
    """An array of None, of the shape that the kernel gives for ones."""
    ones = [np.ones(v.shape, d.numpy, order="F") for v, d in zip(x, dtypes, strict=True)]
    return np.full(np.shape(run_kernel(op, program.policy, *ones)[0]), None, object)


# --- beside an enclosure ----------------------------------------------------------------------------------------------


def bounds(ball: Element, dtype: DType) -> tuple[float, float]:
    """The least and the greatest float of the dtype in a ball; (-inf, inf) where there is none."""
    if ball is None:
        return -np.inf, np.inf
    f = FORMATS[dtype]
    low, high = np.nextafter(float(ball.lower()), -np.inf), np.nextafter(float(ball.upper()), np.inf)
    return float(f.least_at_or_above(np.asarray(low))), float(f.greatest_at_or_below(np.asarray(high)))


def narrowed(program: GraphProgram, inputs: Sequence[Array], model: Model) -> list[Enclosure]:
    """The enclosures of the outputs, cut by what Arb finds; what it bounds cannot be NaN.

    Raises
    ------
    MissingDependency
        python-flint is not installed.
    ArithmeticError
        Arb and the enclosure have no value in common: one of the two is wrong.
    """
    values = arb_values(program, inputs, model)
    outputs = []
    for slot, e in zip(program.output_slots, enclose(program, inputs, model), strict=True):
        if not isinstance(e, Interval) or not e.dtype.is_float:
            outputs.append(e)
            continue
        ends = [bounds(v, e.dtype) for v in values[slot].reshape(-1)]
        low, high = (np.array([b[k] for b in ends]).reshape(e.shape) for k in (0, 1))
        lo, hi = np.maximum(e.lo, low), np.minimum(e.hi, high)
        known = np.isfinite(low)
        if (known & (lo > hi)).any():
            raise ArithmeticError(f"Arb and the enclosure of slot {slot} have no value in common")
        zero = (lo <= 0) & (hi >= 0)
        outputs.append(
            replace(
                e,
                lo=np.where(known, lo, e.lo),
                hi=np.where(known, hi, e.hi),
                nan=e.nan & ~known,
                pos_zero=e.pos_zero & (zero | ~known),
                neg_zero=e.neg_zero & (zero | ~known),
            )
        )
    return outputs
