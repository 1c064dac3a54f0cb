"""Rules of extension ops: einsum over every contraction path, FFTs by their norm-wise bound.

Decompositions and solvers have no element by element enclosure: `oracle.decompositions` judges them by residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import cast

import numpy as np

from oracle import configurations
from oracle.configurations import Equation
from oracle.enclosure import integers, transforms
from oracle.enclosure.arithmetic import multiply
from oracle.enclosure.balls import Ball, ball, certainly_finite, complex_of
from oracle.enclosure.bounds import may_be_negative, may_be_positive
from oracle.enclosure.formats import NO_NAN, Array, quantum
from oracle.enclosure.freedoms import tf32
from oracle.enclosure.origin import NOWHERE
from oracle.enclosure.rectangles import anything, promoted
from oracle.enclosure.rule import COMPLEX, ENCLOSE, ComplexRule, Context, Rule
from oracle.enclosure.value import Enclosure, Interval, Rectangle, each_part, everything, point, real_point, rectangle
from tenferro_ref import ops
from tenferro_ref.extensions import einsum, fft, lapack, linalg
from tenferro_ref.table import Table

#: By family and op: `rule(op, context, *operands) -> enclosure`.
ENCLOSE_EXTENSION: Table[ComplexRule] = Table("enclosure")


def _extension(op: ops.Extension, c: Context, *operands: Enclosure) -> Enclosure:
    return ENCLOSE_EXTENSION[op.key](op, c, *operands)


COMPLEX[ops.Extension] = _extension
ENCLOSE[ops.Extension] = cast(Rule, _extension)  # of real numbers it gives real ones


def centred(c: Context, x: Enclosure) -> Ball:
    """Numbers of the result's dtype by their centres: real ones where that is real."""
    f = c.real.format
    if c.dtype.is_complex or isinstance(x, Rectangle):
        return ball(f, promoted(c, x))
    x = ENCLOSE[ops.Convert](ops.Convert(c.dtype), c, x)
    ok = certainly_finite(x)
    lo, hi = (np.where(ok, v, 0.0).astype(f.wide) for v in (x.lo, x.hi))
    return Ball(lo / 2 + hi / 2, (hi - lo) / 2 * (1 + 8 * f.wide_unit), ok)


def around(c: Context, centre: Array, error: Array, ok: Array) -> Enclosure:
    """All results within `error` of `centre`, part by part, for which it may have parts of its own; anything where not `ok`."""
    real = c.real
    f = real.format
    ok = ok & np.isfinite(error) & (np.abs(centre) + np.abs(error) < f.max / 4)
    sides = []
    errors = (error.real, error.imag) if np.iscomplexobj(error) else (error, error)
    for part, off in zip((centre.real, centre.imag)[: 1 + c.dtype.is_complex], errors, strict=False):
        low = f.least_at_or_above(np.where(ok, part - off, -np.inf))
        high = f.greatest_at_or_below(np.where(ok, part + off, np.inf))
        every = np.ones(ok.shape, bool)
        sides.append(real.build(low, high, ~ok, every, every))
    return rectangle(*sides) if c.dtype.is_complex else sides[0]


# --- linalg -----------------------------------------------------------------------------------------------------------


def _along_diagonal(c: Context, packed: Enclosure, *steps: ops.Op) -> Enclosure:
    """Ops in turn, from the diagonal of a matrix: complex numbers as far as the first step gives real ones."""
    made = ENCLOSE[ops.ExtractDiag](ops.ExtractDiag(0, 1), c, packed)
    for step in steps:
        made = (COMPLEX if isinstance(made, Rectangle) else ENCLOSE)[type(step)](step, c, made)
    return made


@ENCLOSE_EXTENSION.row((linalg.FAMILY, "SignDetFromLuFactor"))
def _sign_det(op: ops.Extension, c: Context, a: Enclosure, packed: Enclosure, parity: Enclosure) -> Enclosure:
    if 0 in packed.shape:
        return parity
    signs = _along_diagonal(c, packed, ops.Sign(), ops.ReduceProd((0,)))
    return (COMPLEX if c.dtype.is_complex else ENCLOSE)[ops.Multiply](ops.Multiply(), c, parity, signs)


@ENCLOSE_EXTENSION.row((linalg.FAMILY, "LogAbsDetFromLuFactor"))
def _log_abs_det(op: ops.Extension, c: Context, a: Enclosure, packed: Enclosure) -> Enclosure:
    if 0 in packed.shape:
        return point(np.zeros(packed.shape[2:], c.dtype.numpy))
    return _along_diagonal(c, packed, ops.Abs(), ops.Log(), ops.ReduceSum((0,)))


ENCLOSE_EXTENSION.unsupported(
    "judged by residuals and invariants, not by element",
    *ENCLOSE_EXTENSION.holes([*linalg.LINALG.keys, *lapack.LAPACK.keys]),
)

# --- einsum -----------------------------------------------------------------------------------------------------------


@ENCLOSE_EXTENSION.row(*einsum.EINSUM.keys)
def _einsum(op: ops.Extension, c: Context, *operands: Enclosure) -> Enclosure:
    """Every path: a term meets a rounding for each product and for each sum on its way, at most as many as there are.

    `|computed - sum prod x| <= gamma sum prod |x|` for products and sums of any order and association, by distributivity.
    """
    equation = configurations.equation(op)
    sizes = equation.sizes([x.shape for x in operands])
    text = f"{','.join(equation.inputs)}->{equation.kept}"
    terms = prod(sizes[label] for label in equation.summed)
    shape = tuple(sizes[label] for label in equation.kept)
    if c.dtype.is_int:
        result = _integer_einsum(c, text, operands, shape)
    else:
        result = _contraction(c, equation, operands) or _float_einsum(c, equation, operands, terms, shape)
    return _on_diagonal(result, equation.output, equation.kept)


def _integer_einsum(c: Context, text: str, operands: Sequence[Enclosure], shape: tuple[int, ...]) -> Enclosure:
    values = [p for x in operands for p in x.parts if p.is_point]
    if len(values) < len(operands):
        return everything(c.dtype, shape)
    total = np.asarray(np.einsum(text, *(x.lo for x in values)))
    return integers.wrapped(c.dtype, total)


def _contraction(c: Context, equation: Equation, operands: Sequence[Enclosure]) -> Enclosure | None:
    """One sum, or one contraction: what every path comes to if no label is summed of one operand alone."""
    labels, summed, kept = equation.inputs, equation.summed, equation.kept
    if len(labels) > 2 or any(len(set(t)) < len(t) or not set(summed) <= set(t) for t in labels):
        return None
    table = COMPLEX if c.dtype.is_complex else ENCLOSE
    c = replace(c, model=replace(c.model, either_zero=True))
    values = [
        promoted(c, x) if c.dtype.is_complex else ENCLOSE[ops.Convert](ops.Convert(c.dtype), c, x) for x in operands
    ]
    if len(labels) == 1:
        axes = tuple(labels[0].index(label) for label in summed)
        made, order = table[ops.ReduceSum](ops.ReduceSum(axes), c, *values), [t for t in labels[0] if t in kept]
    else:
        left, right = labels
        batch = [t for t in left if t in right and t in kept]
        dims = [tuple(t.index(label) for label in chosen) for chosen in (summed, batch) for t in labels]
        made = table[ops.DotGeneral](ops.DotGeneral(*dims), c, *values)
        order = [t for side, other in ((left, right), (right, left)) for t in side if t not in other] + batch
    made = made.map(lambda a: a.transpose([order.index(t) for t in kept]))

    # a copy or product keeps its zero, a sum may start from one; the parts of a complex product may be added otherwise
    def either_zero(p: Interval) -> Interval:
        zero = (p.lo <= 0) & (p.hi >= 0)
        return replace(p, pos_zero=zero, neg_zero=zero & (p.neg_zero | c.dtype.is_complex))

    return each_part(either_zero, made)


def _float_einsum(
    c: Context, equation: Equation, operands: Sequence[Enclosure], terms: int, shape: tuple[int, ...]
) -> Enclosure:
    f = c.real.format
    text = f"{','.join(equation.inputs)}->{equation.kept}"
    balls = [centred(c, x) for x in operands]

    def contracted(arrays: Sequence[Array]) -> Array:
        if any(not a.size for a in arrays):  # NumPy writes beyond what it owns here if they are complex long doubles
            return np.zeros(shape, np.result_type(*arrays))
        return np.asarray(np.einsum(text, *arrays, optimize=len(arrays) > 2))

    centre = contracted([b.mid for b in balls])
    size = contracted([np.abs(b.mid) + b.rad for b in balls])
    spread = size - contracted([np.abs(b.mid) for b in balls])
    roundings = terms + (4 if c.dtype.is_complex else 1) * len(balls)
    gamma = roundings * f.unit / (1 - roundings * f.unit) if roundings * f.unit < 0.5 else np.inf
    noise = 4 * roundings * f.wide_unit + tf32.relative(c, len(balls))
    # what may become, on any path, of a partial result that goes into an element
    reach = [np.abs(b.mid) + b.rad for b in balls]
    largest = _reached(equation, reach, np.ones(shape))
    error = (gamma + noise) * size + np.maximum(spread, 0) + 2 * c.real.lost_below * roundings * largest
    quanta = [float(min(quantum(part).min(initial=np.inf) for part in (b.mid.real, b.mid.imag))) for b in balls]
    grain = prod(min(q, 1.0) for q in quanta)  # of some of the operands, a product may be less than that of all
    if all(not b.rad.any() for b in balls) and grain > f.min_normal and not tf32.relative(c, len(balls)):
        whole = _reached(equation, [r / q for r, q in zip(reach, quanta, strict=True)], np.ones(shape))
        fits = 2 * size * f.unit < prod(quanta) if len(balls) <= 2 else 2 * whole * f.unit < 1
        error = np.where(fits, 0, error)
    finite = ~_touched(equation, [~b.ok for b in balls], shape)
    if c.dtype.is_complex:
        bounded = largest < f.max / 4
        made = around(c, centre, error, finite & bounded)
    else:
        bounded = largest * (1 + gamma + noise) + error < f.max
        ends = centre - error, centre + error
        made = _of_signs(c, equation, operands, ends, 1 - gamma - noise, finite, finite & bounded)
    if terms == 0 or (c.dtype.is_complex and (len(operands) < 2 or any(isinstance(x, Interval) for x in operands))):
        return made
    # a NaN goes into all that it is a factor or a term of, of complex numbers into both parts unless one is infinite
    empty = [np.logical_or.reduce([p.empty for p in x.parts]) for x in operands]
    certain = _touched(equation, empty, shape)
    if c.dtype.is_complex and certain.any():
        infinite = [~b.ok & ~e for b, e in zip(balls, empty, strict=True)]
        mixed = [e & ~np.logical_and.reduce([p.empty for p in x.parts]) for e, x in zip(empty, operands, strict=True)]
        certain = certain & bounded & ~_touched(equation, infinite, shape) & ~_touched(equation, mixed, shape)

    def emptied(p: Interval) -> Interval:
        lo, hi = np.where(certain, np.inf, p.lo), np.where(certain, -np.inf, p.hi)
        return replace(p, lo=lo, hi=hi, pos_zero=p.pos_zero & ~certain, neg_zero=p.neg_zero & ~certain)

    return each_part(emptied, made)


def _of_signs(
    c: Context,
    equation: Equation,
    operands: Sequence[Enclosure],
    ends: tuple[Array, Array],
    kept: float,
    finite: Array,
    known: Array,
) -> Interval:
    """Results between `ends` where they are `known`, and elsewhere what the signs of the operands say.

    Where no operand has both signs no path adds terms of different signs: what is infinite stays so, unless it meets a zero. Of
    `finite` operands a partial result is no less than the product of the least that go into it, of which roundings leave `kept`.
    """
    f, shape = c.format, finite.shape
    values = [ENCLOSE[ops.Convert](ops.Convert(c.dtype), c, p) for x in operands for p in x.parts]

    def some(masks: Sequence[Array]) -> list[Array]:
        """Of each operand, whether a mask holds for something that goes into a result."""
        nothing = [np.zeros(m.shape, bool) for m in masks]
        return [_touched(equation, [*nothing[:k], m, *nothing[k + 1 :]], shape) for k, m in enumerate(masks)]

    positive, negative = (some([may(v) for v in values]) for may in (may_be_positive, may_be_negative))
    one_sign = np.logical_and.reduce([p != q for p, q in zip(positive, negative, strict=True)])
    minus = np.logical_xor.reduce(negative)
    nan = _touched(equation, [v.nan for v in values], shape)
    endless = _touched(equation, [(v.lo == v.hi) & np.isinf(v.lo) for v in values], shape)
    sizes = [np.where((v.lo <= 0) & (v.hi >= 0), 0, np.minimum(np.abs(v.lo), np.abs(v.hi))) for v in values]
    most = _most(equation, [1 / np.minimum(np.where(v.empty, 1, s), 1) for s, v in zip(sizes, values, strict=True)])
    vanishing = ~(kept / most > 2 * f.min_normal)
    small = np.where(minus, -ends[1], ends[0])
    # where the largest number takes the place of an infinity, less may come of it
    usable = finite & ~vanishing & np.isfinite(small) & (c.dtype not in NO_NAN)
    small = np.where(endless, np.inf, np.where(usable, np.maximum(small, 0), 0))
    low = np.where(known, ends[0], np.where(one_sign, np.where(minus, -np.inf, small), -np.inf))
    high = np.where(known, ends[1], np.where(one_sign, np.where(minus, -small, np.inf), np.inf))
    low, high = (
        np.where(one_sign & ~minus, np.maximum(low, 0), low),
        np.where(one_sign & minus, np.minimum(high, 0), high),
    )
    low, high = f.least_at_or_above(low), f.greatest_at_or_below(high)
    # a sum of negative zeros, or of what underflowed to them, may be +0: another sign than theirs goes on into the other products;
    # the diagonal that a label takes which is there twice may be such a sum, of the matrix with zeros beside the diagonal
    sums = bool(equation.summed) or any(len(set(labels)) < len(labels) for labels in equation.inputs)
    lost = vanishing & np.logical_or.reduce(negative) & sums
    either = ~one_sign | minus | lost
    return c.build(low, high, nan | (~known & (~one_sign | vanishing)), np.ones(shape, bool), either)


def _most(equation: Equation, sizes: Sequence[Array]) -> Array:
    """For each element, the product of the largest of each operand that goes into it, or of 1 where that is less."""
    result = np.ones((1,) * len(equation.kept))
    for labels, size in zip(equation.inputs, sizes, strict=True):
        each = [label for label in dict.fromkeys(labels) if label in equation.kept]
        own = [*each, *(label for label in dict.fromkeys(labels) if label not in equation.kept)]
        seen = np.einsum(f"{labels}->{''.join(own)}", size)  # the diagonals of labels that are there twice
        largest = seen.max(tuple(range(len(each), len(own))), initial=1)
        order = [each.index(label) for label in equation.kept if label in each]
        places = tuple(slice(None) if label in each else np.newaxis for label in equation.kept)
        result = result * largest.transpose(order)[places]
    return result


def _reached(equation: Equation, sizes: Sequence[Array], start: Array) -> Array:
    """For each element, the product of what each operand adds up to among what goes into it, or of 1 where that is less."""
    result = start
    for labels, size in zip(equation.inputs, sizes, strict=True):
        own = "".join(label for label in equation.kept if label in labels)
        added = np.maximum(np.einsum(f"{labels}->{own}", size), 1)
        places = tuple(slice(None) if label in own else np.newaxis for label in equation.kept)
        result = result * added[places]
    return result


def _touched(equation: Equation, masks: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Results that some element of a mask goes into."""
    if not any(m.any() for m in masks):
        return np.zeros(shape, bool)
    return _reached(equation, [2.0 * m for m in masks], np.ones(shape)) > 1


def _on_diagonal(x: Enclosure, labels: str, kept: str) -> Enclosure:
    """Zeros where the indices of equal output labels disagree."""
    if labels == kept:
        return x

    def placed(a: Array, fill: object) -> Array:
        result = np.full([a.shape[kept.index(label)] for label in labels], fill, a.dtype)
        index = np.indices(a.shape, sparse=True)
        result[tuple(index[kept.index(label)] for label in labels)] = a
        return result

    def beside_zeros(p: Interval) -> Interval:
        return replace(p.map(lambda a: placed(a, 0)), pos_zero=placed(p.pos_zero, not p.dtype.is_int))

    return each_part(beside_zeros, x.plain())


# --- fft --------------------------------------------------------------------------------------------------------------

_WIDE: dict[str, Callable[..., Array]] = {
    "fft": np.fft.fft,
    "ifft": np.fft.ifft,
    "rfft": np.fft.rfft,
    "irfft": np.fft.irfft,
}


def _of_one(c: Context, x: Rectangle) -> Rectangle:
    """A transform of one number is that number, or its product with the scale, which is one; where it may be infinite or NaN, every value."""
    one = real_point(np.ones((), c.dtype.real.numpy))
    made = each_part(lambda p: replace(multiply(c.real, p, one), origin=NOWHERE), x)
    return anything(made, ~certainly_finite(x), signs=True)


@ENCLOSE_EXTENSION.row(*fft.FFT.keys)
def _fft(op: ops.Extension, c: Context, x: Enclosure) -> Enclosure:
    spec = configurations.transform(op, len(x.shape))
    axis, inverse, half = spec.axis, op.op.startswith("i"), op.op == "irfft"
    f = c.real.format
    length = spec.n or (2 * (x.shape[axis] - 1) if half else x.shape[axis])
    used = length // 2 + 1 if half else length
    cut = (slice(None),) * axis + (slice(used),)
    if length == 1 and x.shape[axis] and not half:
        return _of_one(c, promoted(c, x).map(lambda a: a[cut]))
    source = centred(replace(c, dtype=f.dtype) if op.op == "rfft" else c, x.map(lambda a: a[cut]))
    left = np.zeros((1,) * len(x.shape))
    if half:
        source, left = transforms.without_imaginary_ends(source, axis, length)
    scale = {"backward": (1.0, 1 / length), "ortho": (length**-0.5,) * 2, "forward": (1 / length, 1.0)}[spec.norm][
        inverse
    ]
    with np.errstate(all="ignore"):
        centre = np.asarray(_WIDE[op.op](source.mid, n=length, axis=axis, norm=spec.norm))
    error = transforms.error(c, source, axis, length, scale, real=op.op in ("rfft", "irfft"), half=half)
    error = np.broadcast_to(error, centre.shape).copy()
    if results := transforms.by_quarter_turns(length, half=half)[: centre.shape[axis]]:
        turned = (slice(None),) * axis + (slice(len(results)),)
        parts = transforms.error_by_parts(c, source, axis, length, scale, inverse=inverse, half=half)[turned]
        for own, other in ((error.real, parts.real), (error.imag, parts.imag)):
            own[turned] = np.minimum(own[turned], other)
    ok = source.ok.all(axis, keepdims=True) & transforms.fits(f, source, axis, length, half=half)
    return around(c, centre, error + complex_of(left, left) * scale, np.broadcast_to(ok, centre.shape))
