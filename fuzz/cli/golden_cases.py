"""The hand-written golden cases: the edge semantics of SEMANTICS 1.4 and 2, each small enough to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from oracle.case import Case
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphBuilder, Value

Build = Callable[..., Value | Sequence[Value]]

_SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 5e-324, 1e308])
_LAST32, _LAST64 = 2**31 - 1, 2**63 - 1


def _i32(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def _f64(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape, order="F")


#: Name, what it shows, inputs, and the program over them.
_CASES: list[tuple[str, str, tuple[Any, ...], Build]] = [
    ("column-major-reshape", "Reshape keeps the column-major order", (_f64(2, 3),), lambda b, x: b.apply(ops.Reshape((3, 2)), x)),
    ("dot-order", "lhs free, rhs free, batch: equal extents tell no axis from another", (_f64(2, 2, 2), _f64(2, 2, 2) * 10),
     lambda b, x, y: b.apply(ops.DotGeneral((2,), (1,), (0,), (0,)), x, y)),
    ("dot-of-nothing", "a contraction over no element is 0", (np.zeros((2, 0)), np.zeros((0, 3))), lambda b, x, y: x @ y),
    ("signed-zeros", "Sign gives +0, Negate flips, Abs clears", (_SPECIAL,), lambda b, x: [b.apply(ops.Sign(), x), -x, abs(x)]),
    ("extrema-nan", "NaN if either operand is NaN", (_SPECIAL, _SPECIAL[::-1].copy()),
     lambda b, x, y: [tn.maximum(x, y), tn.minimum(x, y), x.max(), x.min()]),
    ("clamp", "upper where lower > upper; NaN from any operand",
     (np.array([0.5, 5, np.nan, 0.5, 0.5]), np.array([0, 0, 0, 3.0, np.nan]), np.array([1.0, 1, 1, 2, 1])),
     lambda b, x, lo, hi: b.apply(ops.Clamp(), x, lo, hi)),
    ("comparisons-nan", "false with NaN, and != is not ==", (_SPECIAL,), lambda b, x: [x == x, x != x, x <= x, x < 1.0]),
    ("ieee-values", "no domain errors", (_SPECIAL,), lambda b, x: [tn.log(x), tn.sqrt(x), tn.rsqrt(x), x / x, 1.0 / x, x**0.0]),
    ("cast-to-integer", "truncation, saturation, NaN to 0", (np.array([1.9, -1.9, 1e10, -1e10, np.inf, np.nan, 2.0**63]),),
     lambda b, x: [x.astype("I32"), x.astype("I64"), x.astype("Bool")]),
    ("cast-wraps", "I64 to I32 wraps", (np.array([2**31, -(2**31) - 1, 2**32 + 5]),), lambda b, x: b.apply(ops.Convert(DType.I32), x)),
    ("integer-wrap", "add, multiply and negate wrap", (_i32(_LAST32, -_LAST32 - 1, 65536), _i32(1, -1, 65536)),
     lambda b, x, y: [x + y, x * y, -x, abs(x)]),
    ("integer-division", "truncates toward zero; MIN / -1 is MIN", (_i32(7, -7, -_LAST32 - 1), _i32(2, 2, -1)), lambda b, x, y: x / y),
    ("integer-division-by-zero", "an error", (_i32(1, 2), _i32(1, 0)), lambda b, x, y: x / y),
    ("remainder", "the sign of the dividend; MIN rem -1 is 0", (_i32(7, -7, -_LAST32 - 1), _i32(3, 3, -1)),
     lambda b, x, y: b.apply(ops.Remainder(), x, y)),
    ("remainder-by-zero", "an error", (_i32(1, 2), _i32(1, 0)), lambda b, x, y: b.apply(ops.Remainder(), x, y)),
    ("remainder-of-floats", "exact; NaN of an infinity, or by zero", (_SPECIAL, _SPECIAL[::-1].copy()),
     lambda b, x, y: [b.apply(ops.Remainder(), x, y), b.apply(ops.Remainder(), x, b.constant(0.75))]),
    ("difference-of-equals", "+0; NaN of infinities", (_SPECIAL,), lambda b, x: x - x),
    ("sum-of-squares", "over an axis, and over none", (_f64(2, 3),),
     lambda b, x: [b.apply(ops.ReduceSumSquares((1,)), x), b.apply(ops.ReduceSumSquares(()), x)]),
    ("conjugated-dot", "operands are conjugated where flagged", (np.array([1 + 2j, 3j]), np.array([2 - 1j, 1j])),
     lambda b, x, y: [b.apply(ops.DotGeneralWithConj((0,), (0,), (), (), *flags), x, y) for flags in ((True, False), (True, True))]),
    ("negative-exponent", "an error for integers", (_i32(2), _i32(-1)), lambda b, x, y: x**y),
    ("sum-order", "a left fold from the identity: the sum of -0 is +0", (np.array([-0.0, -0.0]),), lambda b, x: [x.sum(), x.sum(())]),
    ("sum-of-nothing-kept", "a zero-length axis that is kept", (np.zeros((3, 0)),), lambda b, x: x.sum(0)),
    ("gather-clamps", "starts outside are clamped", (_f64(5), np.array([-7, 2, 99])), lambda b, x, i: tn.take(x, i)),
    ("scatter-clamps", "windows outside are clamped, and accumulate", (np.zeros(4), np.array([[-1], [2], [4]]), np.array([5.0, 6, 7])),
     lambda b, x, i, u: b.apply(ops.Scatter((), (0,), (0,), 1), x, i, u)),
    ("fractional-index", "a float index must be whole", (_f64(3), np.array([0.5])), lambda b, x, i: tn.take(x, i)),
    ("slices-clamp", "DynamicSlice and DynamicUpdateSlice", (_f64(4), np.array([9]), _f64(2) * 10),
     lambda b, x, i, u: [tn.dynamic_slice(x, i, [2]), tn.dynamic_update_slice(x, u, i)]),
    ("pad-crops", "negative edges crop behind the interior expansion", (_f64(4),), lambda b, x: b.apply(ops.Pad((-1,), (2,), (1,)), x)),
    ("diagonals", "ExtractDiag at axis_a, EmbedDiag at axis_b", (_f64(2, 3, 2),),
     lambda b, x: [b.apply(ops.ExtractDiag(2, 0), x), b.apply(ops.EmbedDiag(1, 0), x)]),
    ("triangle-of-the-first-axes", "Tril keeps row >= col - k of the first two axes", (_f64(3, 2, 2),), lambda b, x: b.apply(ops.Tril(-1), x)),
    ("truncate-rounds", "half away from zero, then clamped", (_f64(4), np.array(2.5)), lambda b, x, n: b.apply(ops.DynamicTruncate(0), x, n)),
    ("truncate-exactly", "a 64-bit size is not rounded through a float", (_f64(4), np.array(_LAST64)),
     lambda b, x, n: b.apply(ops.DynamicTruncate(0), x, n)),
    ("truncate-not-finite", "an error", (_f64(4), np.array(np.nan)), lambda b, x, n: b.apply(ops.DynamicTruncate(0), x, n)),
    ("pad-to-match", "other extents and the dtype are those of the data", (_f64(2, 3), np.zeros((4, 9), np.float32)),
     lambda b, x, y: b.apply(ops.PadToMatch(0), x, y)),
    ("complex", "no conjugation in a dot; the modulus is real", (np.array([1 + 2j, 3j]),), lambda b, x: [x @ x, abs(x), tn.conj(x), x == x]),
    ("subnormals", "kept", (np.array([5e-324, 2.0**-1023, -(2.0**-1060)]),), lambda b, x: [x + x, x * 0.5, x * 2.0**900]),
    ("f32-rounding", "one rounding an op", (np.array([1, 2**24, 0.1], np.float32), np.array([2**-24, 1, 3], np.float32)),
     lambda b, x, y: [x + y, x * y, x / y]),
]  # fmt: skip


def curated() -> Iterator[tuple[str, Case]]:
    """Title and case of each; the program carries the name."""
    for name, title, arrays, build in _CASES:
        b = GraphBuilder(name)
        outputs = build(b, *(b.input(DType.of(a), a.shape) for a in arrays))
        yield title, Case.of(b.build(*((outputs,) if isinstance(outputs, Value) else outputs)), arrays)
