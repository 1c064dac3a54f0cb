"""A hostile implementation of real programs: every freedom that an arithmetic model grants is taken at random, element by element.

Results move within their budgets, sums run in random trees, subnormals are flushed, products go unrounded into additions,
divisions are rewritten. What it gives must be inside the enclosure, always. It evaluates exactly (fractions) where rounding
matters and shares nothing with the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oracle.enclosure import Model
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op, Policy, free_axes
from tenferro_ref.program import GraphProgram
from tenferro_ref.runtime.kernels.base import run_kernel

INDEXED = (ops.DynamicSlice, ops.DynamicTruncate, ops.DynamicUpdateSlice, ops.Gather, ops.Scatter)
#: Moves of one operand: what it was made of moves with it.
MOVES = (ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Reverse, ops.Slice)
PICKS = (
    ops.Compare, ops.Convert, ops.Abs, ops.Sign, ops.Maximum, ops.Minimum, ops.Clamp, ops.ReduceMax, ops.ReduceMin,
)  # fmt: skip
FUNCTIONS = {
    ops.Exp: np.exp,
    ops.Expm1: np.expm1,
    ops.Log: np.log,
    ops.Log1p: np.log1p,
    ops.Sin: np.sin,
    ops.Cos: np.cos,
    ops.Tanh: np.tanh,
    ops.Rsqrt: lambda v: 1 / np.sqrt(v),
}
RANGES = {ops.Exp: (0, np.inf), ops.Expm1: (-1, np.inf), ops.Tanh: (-1, 1), ops.Sin: (-1, 1), ops.Cos: (-1, 1)}
WIDE = {DType.F32: np.float64, DType.F64: np.longdouble}


@dataclass
class Val:
    """An array, and the operands of the product, quotient or root that it is; the addends (last axis) of a sum."""

    a: np.ndarray
    factors: tuple[np.ndarray, ...] | None = None
    quotient: tuple[np.ndarray, ...] | None = None
    root: tuple[np.ndarray, ...] | None = None
    addends: np.ndarray | None = None
    constant: int | None = None
    started: np.ndarray | None = None

    def map(self, f: Any) -> Val:
        memory = (None if m is None else tuple(map(f, m)) for m in (self.factors, self.quotient, self.root))
        return Val(f(self.a), *memory, None, self.constant)


def kernel(op: Op, *operands: np.ndarray) -> np.ndarray:
    """The native result, for what rounds nothing."""
    return run_kernel(op, Policy(), *(np.array(a, order="F") for a in operands))[0]


def round_fraction(q: Fraction, kind: type) -> Any:
    """Correctly rounded to `kind`, ties to even."""
    try:
        near = kind(q.numerator / q.denominator)
    except OverflowError:
        near = kind(np.inf if q > 0 else -np.inf)
    if kind is np.float64:
        return near
    largest = Fraction(float(np.finfo(kind).max))
    candidates = [near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf))]
    step = Fraction(2) ** 104

    def position(c: Any) -> Fraction:
        return Fraction(float(c)) if np.isfinite(c) else (largest + step) * (1 if c > 0 else -1)

    best = min(abs(position(c) - q) for c in candidates)
    tied = [c for c in candidates if abs(position(c) - q) == best]
    even = [c for c in tied if np.isinf(c) or not (int(c.view(np.int32)) & 1)]
    return (even or tied)[0] if len(tied) > 1 else tied[0]


class PerturbedReal:
    """Runs programs under `model`; `rng` decides every freedom."""

    def __init__(self, model: Model, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng

    def run(self, program: GraphProgram, inputs: list[np.ndarray]) -> list[np.ndarray]:
        values = {s: Val(a) for s, a in zip(program.input_slots, inputs, strict=True)}
        self.const = dict.fromkeys(program.input_slots, False)
        with np.errstate(all="ignore"):
            for ins in program.instructions:
                operands = [values[s] for s in ins.input_slots]
                self.known = [self.const[s] for s in ins.input_slots]
                (slot,) = ins.output_slots
                values[slot] = self.step(ins.op, operands)
                self.const[slot] = all(self.known)
        return [self.flush(values[s].a) for s in program.output_slots]

    def coin(self, shape: tuple[int, ...] = (), p: float = 0.5) -> Any:
        return self.rng.random(shape) < p

    def flush(self, a: np.ndarray, inexact: bool = False) -> np.ndarray:
        if not self.model.flush or a.dtype.kind != "f":
            return a
        tiny = np.finfo(a.dtype).smallest_normal
        small = (np.abs(a) <= tiny) if inexact and self.coin() else (np.abs(a) < tiny)
        return np.where(small & self.coin(a.shape), np.copysign(a.dtype.type(0), a), a).astype(a.dtype)

    def step(self, op: Op, v: list[Val]) -> Val:
        kind = type(op)
        if any(o.a.dtype.kind == "c" for o in v):
            return self.complex_step(op, v)
        if kind in INDEXED:
            return Val(self.indexed(op, [self.flush(o.a) for o in v]))
        if kind in (*MOVES, ops.Concatenate, ops.Tril, ops.Negate, ops.Constant):
            return self.move(op, v)
        if kind is ops.Subtract:
            v = [v[0], self.move(ops.Negate(), [v[1]])]
        x = [self.flush(o.a) for o in v]
        if kind is ops.Select:
            return Val(np.where(*x))
        if kind in PICKS:
            return Val(self.pick(op, x))
        if x[0].dtype.kind != "f":
            return Val(kernel(ops.Add() if kind is ops.Subtract else op, *x))
        if kind in (ops.Add, ops.Subtract):
            return Val(self.flush(self.add(v, x), True))
        if kind is ops.Multiply:
            return self.multiply(v, x)
        if kind is ops.Divide:
            if self.model.reciprocal and self.known == [False, True] and self.coin():
                reciprocal = self.approximated(np.asarray(1 / x[1]), 1 / x[1].astype(np.float64))
                tiny = np.finfo(reciprocal.dtype).smallest_normal
                if (np.isfinite(reciprocal) & (np.abs(reciprocal) >= tiny)).all():
                    return self.multiply([v[0], Val(reciprocal)], [x[0], reciprocal])
            quotient = Val(self.flush(self.divide(v, x), True))
            if self.model.gather:
                quotient.quotient = tuple(np.broadcast_arrays(*x))
            return quotient
        if kind is ops.Sqrt:
            root = self.approximated(np.sqrt(x[0]), np.sqrt(x[0].astype(np.float64)))
            return Val(self.flush(root, True), root=(x[0],) if self.model.gather else None)
        if kind is ops.Pow:
            return Val(self.flush(self.power(*x), True))
        if kind in FUNCTIONS:
            return Val(self.flush(self.function(kind, x[0]), True))
        if kind is ops.ReduceSum:
            total = Val(self.reduce_sum(op, v[0], x[0]))
            if self.model.merge and op.axes:
                kept = free_axes(x[0].ndim, op.axes)
                total.addends = x[0].transpose((*kept, *op.axes)).reshape(*[x[0].shape[i] for i in kept], -1)
            return total
        if kind is ops.ReduceProd:
            return Val(self.fold(op.axes, x[0], lambda a, b: self.flush(np.asarray(a * b), True)))
        assert kind is ops.DotGeneral
        return self.dot(op, *x)

    def complex_step(self, op: Op, v: list[Val]) -> Val:
        raise NotImplementedError  # in perturbed.py

    def move(self, op: Op, v: list[Val]) -> Val:
        """The kernel's, of the value and of what it is made of."""
        if isinstance(op, ops.Negate):
            x = v[0]
            pairs = (None if m is None else (-m[0], m[1]) for m in (x.factors, x.quotient))
            return Val(-x.a, *pairs, constant=x.constant)
        others = [o.a for o in v[1:]]
        return (
            v[0].map(lambda a: kernel(op, a, *others)) if isinstance(op, MOVES) else Val(kernel(op, *(o.a for o in v)))
        )

    def pick(self, op: Op, x: list[np.ndarray]) -> np.ndarray:
        if isinstance(op, ops.Convert):
            return self.flush(kernel(op, *x), x[0].dtype == np.float64 and op.to is DType.F32)
        if isinstance(op, ops.Compare | ops.Abs):
            return kernel(op, *x)
        if isinstance(op, ops.Sign):
            s = np.sign(x[0])
            return np.where((s == 0) & self.coin(s.shape), -s, s).astype(s.dtype)
        if isinstance(op, ops.Clamp):
            return self.extremum(np.minimum, x[2], self.extremum(np.maximum, x[1], x[0]))
        if isinstance(op, (ops.Maximum, ops.Minimum)):
            return self.extremum(np.maximum if isinstance(op, ops.Maximum) else np.minimum, *x)
        f = np.maximum if isinstance(op, ops.ReduceMax) else np.minimum
        return self.fold(op.axes, x[0], lambda a, b: self.extremum(f, a, b))  # type: ignore[attr-defined]

    def extremum(self, f: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Either operand where both are zeros, or subnormals under flushing."""
        r = f(a, b)
        if a.dtype.kind != "f":
            return np.asarray(r)
        tiny = np.finfo(a.dtype).smallest_normal if self.model.flush else np.finfo(a.dtype).smallest_subnormal
        alike = (np.abs(a) < tiny) & (np.abs(b) < tiny)
        return np.where(alike, np.where(self.coin(r.shape), a, b), r).astype(a.dtype)

    def add(self, v: list[Val], x: list[np.ndarray]) -> np.ndarray:
        r = np.asarray(x[0] + x[1])
        for i in (0, 1):
            if v[i].factors is not None and self.model.contract and self.coin():
                r = np.where(self.coin(r.shape), self.fma(*v[i].factors, x[1 - i]), r)  # type: ignore[misc]
        for i in (0, 1):
            if v[i].started is not None and v[i].started.ndim == v[i].a.ndim + 1 and self.coin():
                terms = [v[i].started[..., k] for k in range(v[i].started.shape[-1])]  # from the addend on
                inner = self.tree([*terms, x[1 - i]], lambda a, b: self.flush(np.asarray(a + b)))
                if np.isfinite(inner).all() and np.isfinite(r).all():
                    r = np.broadcast_to(inner, r.shape)
        if self.model.merge:
            for i in (0, 1):
                if self.known[1 - i]:
                    r = np.where((x[1 - i] == 0) & self.coin(r.shape), x[i], r)
        return r

    def fma(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        kind = a.dtype.type
        a, b, c = np.broadcast_arrays(a, b, c)

        def one(p: Any, q: Any, r: Any) -> Any:
            if not np.isfinite(p * q * 0 + r) and not (np.isfinite(p) and np.isfinite(q) and np.isfinite(r)):
                return r if np.isinf(r) and np.isfinite(p) and np.isfinite(q) else p * q + r
            exact = Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r))
            if exact == 0:
                return p * q + r if p == 0 or q == 0 else kind(0)
            rounded = round_fraction(exact, kind)
            return np.copysign(rounded, -1 if exact < 0 else 1)

        return np.array([one(*t) for t in zip(a.flat, b.flat, c.flat, strict=True)], kind).reshape(a.shape)

    def multiply(self, v: list[Val], x: list[np.ndarray]) -> Val:
        factors = tuple(np.broadcast_arrays(*x))
        known = list(self.known)
        for i in (0, 1):
            inner = v[i].factors
            if self.model.gather and self.known[1 - i] and v[i].constant is not None and inner is not None:
                j = v[i].constant  # (x * c) * d as x * (c * d)
                folded = np.asarray(inner[j] * x[1 - i])
                info = np.finfo(folded.dtype)
                usual = (np.abs(folded) > info.smallest_normal) & (np.abs(folded) < info.max)
                if usual.all() and self.coin():
                    factors, known = (np.broadcast_to(inner[1 - j], folded.shape), folded), [False, True]
                    break
        fi, fj = v[0].factors, v[1].factors
        if self.model.gather and fi and fj and v[0].constant is not None and v[1].constant is not None and self.coin():
            i, j = v[0].constant, v[1].constant  # (x * c) * (y * d) as (x * y) * (c * d)
            inner, folded = np.asarray(fi[1 - i] * fj[1 - j]), np.asarray(fi[i] * fj[j])
            info = np.finfo(folded.dtype)
            usual = [(np.abs(p) > info.smallest_normal) & (np.abs(p) < info.max) for p in (inner, folded)]
            if usual[0].all() and usual[1].all():
                factors, known = (inner, folded), [False, True]
        product = Val(self.flush(np.asarray(factors[0] * factors[1]), True))
        if self.model.gather and v[0] is v[1] and v[0].root is not None and self.coin():
            product.a = np.where(v[0].root[0] >= 0, v[0].root[0], product.a)
        if self.model.keeps_unrounded:
            product.factors = tuple(factors)
            product.constant = known.index(True) if known[0] != known[1] else None
        return product

    def divide(self, v: list[Val], x: list[np.ndarray]) -> np.ndarray:
        r = np.asarray(x[0] / x[1])
        r = self.approximated(r, x[0].astype(np.float64) / x[1].astype(np.float64))
        info = np.finfo(r.dtype)

        def take(inner: np.ndarray, other: np.ndarray) -> None:
            """A rewrite counts where its intermediate value is an ordinary number; else it is a finding, not a freedom."""
            nonlocal r
            usual = (
                (np.abs(inner) > info.smallest_normal) & (np.abs(inner) < info.max) & (np.abs(r) > info.smallest_normal)
            )
            r = np.where(usual & np.isfinite(other) & self.coin(r.shape), other, r)

        n, d = v
        if n.quotient is not None:  # (a / b) / c
            inner = n.quotient[1] * x[1]
            take(inner, n.quotient[0] / inner)
        if d.quotient is not None:  # a / (b / c)
            inner = x[0] * d.quotient[1]
            take(inner, inner / d.quotient[0])
        if d.root is not None:
            inner = self.function(ops.Rsqrt, d.root[0])
            take(np.broadcast_to(inner, r.shape), x[0] * inner)
        if self.model.reciprocal and self.known[1]:
            reciprocal = self.approximated(np.asarray(1 / x[1]), 1 / x[1].astype(np.float64))
            tiny = np.finfo(r.dtype).smallest_normal
            usable = (np.abs(reciprocal) >= tiny) & self.coin(r.shape)
            r = np.where(usable, x[0] * reciprocal, r)
        return r

    def approximated(self, rounded: np.ndarray, exact: np.ndarray) -> np.ndarray:
        """A quotient or root in F32, up to two ULPs away; of narrower numbers it is rounded then."""
        if not self.model.approximate or rounded.dtype == np.float64:
            return rounded
        moved = self.moved(exact, 2.0, np.float32, -np.inf, np.inf).astype(rounded.dtype)
        return np.where(np.isfinite(rounded) & (rounded != 0), moved, rounded).astype(rounded.dtype)

    def tf32(self, x: np.ndarray) -> np.ndarray:
        """What the tensor cores may read: the last 13 bits cut off, or the magnitude above."""
        if not self.model.tf32 or x.dtype != np.float32:
            return x
        bits = np.array(x, order="C").view(np.uint32)
        cut = bits & np.uint32(0xFFFFE000)
        above = np.where(cut == bits, bits, cut + np.uint32(0x2000))
        read = np.where(self.coin(), cut, above).astype(np.uint32).view(np.float32)
        return np.where(np.isfinite(x), read, x).astype(np.float32)

    def moved(self, exact: np.ndarray, ulps: float, kind: type, least: float, greatest: float) -> np.ndarray:
        """Results of `kind` within `ulps` of `exact` (wide)."""
        info = np.finfo(kind)
        near = exact.astype(kind)
        ulp = np.spacing(np.minimum(np.abs(near), info.max / 2)).astype(exact.dtype)
        ulp = np.where(np.abs(near) > info.max / 2, 2 * ulp, ulp)
        shift = self.rng.choice([-1.0, 1.0, 0.0, self.rng.uniform(-1, 1)]) * ulps
        result = (exact + shift * ulp).astype(kind)
        too_far = ~(np.abs(result.astype(exact.dtype) - exact) <= ulps * ulp) & np.isfinite(result)
        gone = np.abs(exact) <= exact.dtype.type(info.smallest_subnormal) / 4
        wrong_sign = gone | (np.signbit(result) != np.signbit(exact))
        result = np.where(too_far | wrong_sign | ~np.isfinite(exact), near, result)
        outside = (result < least) | (result > greatest)
        return np.where(outside, near, result).astype(kind)

    def function(self, kind: type, x: np.ndarray) -> np.ndarray:
        dtype = DType.of(x)
        exact = np.asarray(FUNCTIONS[kind](x.astype(WIDE[dtype])))  # type: ignore[operator]
        least, greatest = RANGES.get(kind, (-np.inf, np.inf))  # type: ignore[call-overload]
        moved = self.moved(exact, self.model.budget(kind.__name__, dtype), x.dtype.type, least, greatest)
        saturated = (kind is ops.Tanh) & (np.abs(x) > np.log(128 / (np.finfo(x.dtype).eps / 2)) / 2)
        return np.where(np.isinf(x) | (x == 0) | saturated, exact, moved).astype(x.dtype)

    def power(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        dtype = DType.of(x)
        x, y = np.broadcast_arrays(x, y)
        exact = np.power(x.astype(WIDE[dtype]), y.astype(WIDE[dtype]))
        moved = self.moved(exact, self.model.budget("Pow", dtype), x.dtype.type, -np.inf, np.inf)
        certain = (np.abs(x) == 1) | (y == 0)
        return np.where(certain, exact, moved).astype(x.dtype)

    def fold(self, axes: tuple[int, ...], x: np.ndarray, f: Any) -> np.ndarray:
        """Pairs merged in random order."""
        if not axes:
            return x
        kept = free_axes(x.ndim, axes)
        moved = x.transpose((*kept, *axes)).reshape(*[x.shape[i] for i in kept], -1)
        parts = [np.asarray(moved[..., i]) for i in range(moved.shape[-1])]
        return self.tree(parts, f)

    def tree(self, parts: list[np.ndarray], f: Any) -> np.ndarray:
        parts = list(parts)
        while len(parts) > 1:
            i, j = self.rng.choice(len(parts), 2, replace=False)
            merged = f(parts[i], parts[j])
            parts = [p for k, p in enumerate(parts) if k not in (i, j)] + [merged]
        return parts[0]

    def reduce_sum(self, op: Any, v: Val, x: np.ndarray) -> np.ndarray:
        if not op.axes:
            return x
        start = x.dtype.type(-0.0 if self.model.either_zero and self.coin() else 0.0)
        if v.addends is not None and self.coin():
            axes = (*op.axes, x.ndim)
            return np.asarray(self.fold(axes, v.addends, lambda a, b: self.flush(np.asarray(a + b))) + start)
        if v.factors is not None and self.model.contract and self.coin():
            kept = free_axes(x.ndim, op.axes)
            f, g, plain = (
                a.transpose((*kept, *op.axes)).reshape(*[x.shape[i] for i in kept], -1) for a in (*v.factors, x)
            )
            total = np.full(f.shape[:-1], start)
            for i in self.rng.permutation(f.shape[-1]):
                fused = self.coin()
                total = self.fma(f[..., i], g[..., i], total) if fused else np.asarray(total + plain[..., i])
                total = self.flush(total, True)
            return total
        total = self.fold(op.axes, x, lambda a, b: self.flush(np.asarray(a + b)))
        return np.asarray(total + start)

    def dot(self, op: ops.DotGeneral, x: np.ndarray, y: np.ndarray) -> Val:
        assert not op.lhs_batch_dims
        x, y = self.tf32(x), self.tf32(y)
        x = np.moveaxis(x, op.lhs_contracting_dims[0], -1)
        y = np.moveaxis(y, op.rhs_contracting_dims[0], -1)
        shape = x.shape[:-1] + y.shape[:-1]
        x = x.reshape((-1, 1, x.shape[-1]))
        y = y.reshape((1, -1, y.shape[-1]))
        x, y = np.broadcast_arrays(x, y)
        start = x.dtype.type(-0.0 if self.model.either_zero and self.coin() else 0.0)
        started = None
        if self.coin() and self.model.contract:
            total = np.full(x.shape[:-1], start)
            for i in self.rng.permutation(x.shape[-1]):
                total = self.flush(self.fma(x[..., i], y[..., i], total), True)
        else:
            products = [self.flush(np.asarray(x[..., i] * y[..., i]), True) for i in range(x.shape[-1])]
            if self.model.merge and products:
                started = np.stack(products, -1).reshape((*shape, -1))
            total = np.asarray(self.tree(products, lambda a, b: self.flush(np.asarray(a + b))) + start)
        return Val(total.reshape(shape), started=started)

    # --- indices ----------------------------------------------------------------------------------------------------

    def indexed(self, op: Op, x: list[np.ndarray]) -> np.ndarray:
        """The kernels', but scattered updates meet in random order."""
        if isinstance(op, ops.Scatter) and x[0].dtype.kind == "f":
            batch = [d for d in range(x[2].ndim) if d not in op.update_window_dims]
            if len(batch) == 1 and op.index_vector_dim != 0:
                order = self.rng.permutation(x[2].shape[batch[0]])
                x = [x[0], np.take(x[1], order, 0), np.take(x[2], order, batch[0])]
        return self.flush(kernel(op, *x))
