"""The hostile implementation, with complex numbers: parts are real programs of their own, functions move in any direction."""

from __future__ import annotations

import numpy as np
from perturbed_real import PerturbedReal, Val, kernel

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.ops import Op

COMPLEX_FUNCTIONS = {
    **{
        op: getattr(np, op.__name__.lower())
        for op in (ops.Exp, ops.Log, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Expm1)
    },
    ops.Log1p: lambda z: np.where(np.abs(z) < 0.01, sum(-((-z) ** k) / k for k in range(1, 13)), np.log(1 + z)),
    ops.Rsqrt: lambda z: 1 / np.sqrt(z),
    ops.Sign: lambda z: z / np.abs(z),
}


class Perturbed(PerturbedReal):
    """Runs programs under `model`; `rng` decides every freedom."""

    def real(self, op: Op, *parts: np.ndarray | Val) -> Val:
        self.known = [False] * len(parts)
        return self.step(op, [p if isinstance(p, Val) else Val(p) for p in parts])

    def joined(self, re: np.ndarray, im: np.ndarray) -> np.ndarray:
        z = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
        z.real, z.imag = re, im
        return z

    def complex_step(self, op: Op, v: list[Val]) -> Val:
        known = self.known
        made = self.complex_value(op, [o.a for o in v])
        self.known = known
        return Val(made)

    def complex_value(self, op: Op, x: list[np.ndarray]) -> np.ndarray:
        kind = type(op)
        z = x[0]
        if kind in (ops.Compare, ops.Convert):
            parts = [self.joined(self.flush(a.real), self.flush(a.imag)) if a.dtype.kind == "c" else a for a in x]
            return kernel(op, *parts)
        if kind is ops.Conj:
            return np.conj(z)
        if kind is ops.Multiply:
            return self.complex_product(*np.broadcast_arrays(*x))
        if kind is ops.ReduceProd:
            if self.model.restart and self.coin():  # 1 taken in beside each factor
                z = self.complex_product(np.ones_like(z), z)
            return self.fold(op.axes, z, self.complex_product)  # type: ignore[attr-defined]
        if kind is ops.Divide:
            return self.complex_quotient(*np.broadcast_arrays(*x))
        if kind is ops.Abs:
            wide = np.abs(z.astype(np.clongdouble))
            budget = self.model.budget("Abs", DType.of(z))
            return self.flush(self.moved(wide, budget, z.real.dtype.type, 0.0, np.inf), True)
        if kind in COMPLEX_FUNCTIONS or kind is ops.Pow:
            return self.complex_function(kind, *x)
        if kind is ops.DotGeneral:
            z, y = (
                np.moveaxis(a, axes[0], -1)
                for a, axes in ((z, op.lhs_contracting_dims), (x[1], op.rhs_contracting_dims))
            )  # type: ignore[attr-defined]
            left, right = np.stack([z.real, z.imag], -1), np.stack([y.real, y.imag], -1)
            flat = [a.reshape(*a.shape[:-2], -1) for a in (left, right * [1, -1], right[..., ::-1])]
            flat = [flat[0], *(a.astype(flat[0].dtype) for a in flat[1:])]
            ends = ops.DotGeneral((z.ndim - 1,), (y.ndim - 1,), (), ())
            return self.joined(*(self.dot(ends, flat[0], f).a for f in flat[1:]))
        # the imaginary part of a real addend; a predicate, indices
        other = np.zeros_like if kind in (ops.Add, ops.Subtract) else np.asarray
        parts = [[a.real, a.imag] if a.dtype.kind == "c" else [a, other(a)] for a in x]
        return self.joined(*(self.real(op, *(np.asarray(p[k]) for p in parts)).a for k in (0, 1)))

    def complex_product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b, p, q = (np.asarray(part) for part in (x.real, x.imag, y.real, y.imag))
        minus = self.real(ops.Negate(), self.real(ops.Multiply(), b, q))
        re = self.real(ops.Add(), self.real(ops.Multiply(), a, p), minus).a
        im = self.real(ops.Add(), self.real(ops.Multiply(), a, q), self.real(ops.Multiply(), b, p)).a
        lost = np.isnan(re) & np.isnan(im) & (np.isinf(x) | np.isinf(y)) & self.coin(re.shape)  # Annex G
        return self.joined(np.where(lost, np.inf, re).astype(re.dtype), np.where(lost, -np.inf, im).astype(re.dtype))

    def complex_quotient(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Smith's, NumPy's form of it with a reciprocal, or the textbook's where its squares and products are ordinary."""
        info = np.finfo(x.dtype)
        least, most = 16 * info.smallest_normal / info.epsneg, info.max / 4

        def usual(size: np.ndarray) -> np.ndarray:
            return (size > least) & (size < most)

        if self.model.reciprocal and self.known == [False, True] and self.coin():
            inverse = self.smith(np.ones_like(y), y)
            if usual(np.abs(inverse)).all():
                return self.complex_product(x, inverse)
        if self.coin():
            made = np.divide(x, y)
            made = self.joined(self.flush(made.real, True), self.flush(made.imag, True))
        else:
            made = self.smith(x, y)
        p, q = np.asarray(y.real), np.asarray(y.imag)
        size = self.real(ops.Add(), self.real(ops.Multiply(), p, p), self.real(ops.Multiply(), q, q)).a
        top = self.complex_product(x, np.conj(y))
        text = self.joined(*(self.real(ops.Divide(), np.asarray(part), size).a for part in (top.real, top.imag)))
        take = usual(size) & usual(np.abs(x).astype(np.longdouble) * np.abs(y)) & self.coin(x.shape)
        return np.where(take, text, made)

    def smith(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b, p, q = (np.asarray(part) for part in (x.real, x.imag, y.real, y.imag))
        turn = np.abs(q) > np.abs(p)
        a, b, p, q = (np.where(turn, u, v) for u, v in ((b, a), (-a, b), (q, p), (-p, q)))
        r = self.real(ops.Divide(), q, p).a
        below = self.real(ops.Add(), p, self.real(ops.Multiply(), q, r)).a
        re = self.real(ops.Add(), a, self.real(ops.Multiply(), b, r)).a
        im = self.real(ops.Add(), b, self.real(ops.Negate(), self.real(ops.Multiply(), a, r))).a
        return self.joined(*(self.real(ops.Divide(), part, below).a for part in (re, im)))

    def complex_function(self, kind: type, *x: np.ndarray) -> np.ndarray:
        """The true value moved in a random direction by at most the budget, in ULPs of its modulus."""
        z = x[0]
        info = np.finfo(z.dtype)
        budget = self.model.budget(kind.__name__, DType.of(z))
        wide = [a.astype(np.clongdouble) for a in np.broadcast_arrays(*x)]
        if kind is ops.Pow:
            log = np.log(wide[0])
            exact = np.exp(wide[1] * log)
            budget = budget * (1 + np.abs(wide[1]) * (1 + np.abs(log))).astype(float)
        else:
            exact = COMPLEX_FUNCTIONS[kind](wide[0])  # type: ignore[index]
        size = np.minimum(np.abs(exact), info.max / 2).astype(info.dtype)
        reach = self.rng.uniform(0, 1, z.shape) * np.maximum(budget - 1, 0) * np.spacing(size)
        turn = np.exp(2j * np.pi * self.rng.random(exact.shape))
        # a limit at an infinity is exact
        moved = np.where(np.isfinite(x[0]), exact + reach.astype(np.longdouble) * turn, exact)
        re, im = (np.where(np.isfinite(moved), m, e).astype(info.dtype) for m, e in
                  ((moved.real, exact.real), (moved.imag, exact.imag)))  # fmt: skip
        if kind is not ops.Pow:  # each part has a factor that is a zero there
            positive = {ops.Sqrt: z.real >= 0, ops.Log1p: z.real > -1, ops.Log: z.real > 0, ops.Rsqrt: z.real > 0}
            real = (z.imag == 0) & np.isfinite(z.real) & positive.get(kind, True)
            imaginary = (z.real == 0) & np.isfinite(z.imag)
            im = np.where(real | (imaginary & (kind is ops.Cos)), np.copysign(0, exact.imag), im).astype(re.dtype)
            re = np.where(imaginary & (kind in (ops.Sin, ops.Tanh)), np.copysign(0, exact.real), re).astype(im.dtype)
            one = (z.real == 1) & (kind in (ops.Log, ops.Sqrt, ops.Sign))
            re = np.where(real & ((z.real == 0) | one), exact.real, re).astype(im.dtype)
        if kind is ops.Sign:
            re, im = np.where(z == 0, 0, re).astype(re.dtype), np.where(z == 0, 0, im).astype(re.dtype)
        return self.joined(self.flush(re, True), self.flush(im, True))
