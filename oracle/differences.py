"""Difference quotients: `f(x + d) - f(x) = jvp(x; d) + (d, H d) / 2`, with second derivatives anywhere between `x` and `x + d`.

No tolerance is involved: the second derivative program is enclosed over the box between the two points, and that bounds what the
first derivative leaves open (Taylor's theorem with Lagrange's remainder, part by part). It holds where the program is smooth in
the box; ops of which that is not certain there are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oracle.conventions import check_determined, check_unregularised
from oracle.derivation import Differentiated, concrete, plain_seed, replayed
from oracle.enclosure import REAL, Enclosure, enclose
from oracle.enclosure.factors import knows
from oracle.enclosure.value import Interval, Rectangle, each_part, hull, point, rectangle
from tenferro_ref import ops
from tenferro_ref.autodiff import jvp
from tenferro_ref.autodiff.errors import UnsupportedAdRule
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.extensions import einsum, fft
from tenferro_ref.program import GraphBuilder, GraphProgram
from tenferro_ref.tensor import Array

#: Steps relative to each element: the square root of a unit of rounding, so that Taylor's term is as small as roundings are.
_STEPS = {DType.F32: 2.0**-12, DType.F64: 2.0**-26}
#: Smooth wherever they have a value.
SMOOTH = (
    ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Negate, ops.Conj, ops.Exp, ops.Expm1, ops.Sin, ops.Cos, ops.Tanh,
    ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.ExtractDiag, ops.EmbedDiag, ops.Tril, ops.Triu, ops.ReduceSum,
    ops.ReduceSumSquares, ops.ReduceProd, ops.DotGeneral, ops.DotGeneralWithConj, ops.Slice, ops.Pad, ops.Concatenate,
    ops.Reverse, ops.PadToMatch, ops.ShapeOf,
)  # fmt: skip
#: Smooth where they are real, finite and have a value; complex ones have cuts.
SMOOTH_REAL = (ops.Log, ops.Log1p, ops.Sqrt, ops.Rsqrt, ops.Pow)
#: Smooth in some operands, if the others do not move.
_SMOOTH_IN: dict[type[ops.Op], tuple[int, ...]] = {
    ops.Select: (1, 2), ops.Gather: (0,), ops.GatherDynamicSliceSizes: (0,), ops.DynamicTruncate: (0,), ops.Scatter: (0, 2), ops.DynamicSlice: (0,), ops.DynamicUpdateSlice: (0, 1),
}  # fmt: skip
#: Smooth where no element of a diagonal is 0, since there they have no bounded value.
_OF_DIAGONALS = ("SignDetFromLuFactor", "LogAbsDetFromLuFactor")
#: Ops whose vectors of complex numbers have any phase.
_PHASED = ("Eigh", "Svd")
#: How far factors at two points may be from one another, relative to the largest element.
_NEAR = 0.25


def quotients(d: Differentiated) -> tuple[list[Enclosure], list[Enclosure]]:
    """Both sides for each output that has a derivative.

    Raises
    ------
    UnsupportedOp
        The program may not be smooth between the points, or an op has no enclosure.
    """
    program = concrete(d.program, d.inputs)
    check_determined(program)
    check_unregularised(program)
    ends = [_moved(x, number) for number, x in enumerate(d.inputs)]
    with np.errstate(invalid="ignore"):
        pairs = zip(d.inputs, ends, strict=True)
        steps = [np.asarray(np.subtract(b, a), order="F") for a, b in pairs if DType.of(a) in INEXACT]
    forward = jvp(program)
    try:
        second = jvp(forward.program, range(len(d.inputs)))
    except UnsupportedAdRule as error:
        raise UnsupportedOp(op="program", reason=f"there is no second derivative: {error}") from None
    still = (*d.inputs, *steps)
    boxes = [_between(x, end) for x, end in zip(d.inputs, ends, strict=True)]
    between = enclose(program, boxes, REAL, all_slots=True)
    _check_smooth(program, between)
    if any(knows(REAL, ins.op) for ins in program.instructions):
        _check_factors(program, between, *(enclose(program, x, REAL, all_slots=True) for x in (d.inputs, ends)))
    change = enclose(_difference(program), (*ends, *d.inputs), REAL)
    first = enclose(forward.program, still, REAL)
    curved = enclose(second.program, [*boxes, *map(point, (*steps, *steps))], REAL)
    sides: tuple[list[Enclosure], list[Enclosure]] = ([], [])
    for output, (place, type_) in enumerate(zip(forward.results, program.output_types, strict=True)):
        if type_.dtype not in INEXACT:
            continue
        zero = point(np.zeros(type_.static_shape, type_.dtype.numpy))
        bent = None if place is None else second.results[place]
        sides[0].append(change[output])
        sides[1].append(_taylor(zero if place is None else first[place], zero if bent is None else curved[bent]))
    return sides


def _check_smooth(program: GraphProgram, values: Mapping[int, Enclosure]) -> None:
    """Refuse a program that may have a kink where its values are these."""
    moving = {s for s, t in zip(program.input_slots, program.input_types, strict=True) if t.dtype in INEXACT}
    for ins in program.instructions:
        places = [i for i, slot in enumerate(ins.input_slots) if slot in moving]
        (made, *_) = ins.output_slots
        stays = isinstance(ins.op, ops.Compare | ops.Sign | ops.Convert) and bool(np.all(values[made].decided))
        if not places or (stays and program.slot_types[made].dtype not in INEXACT):
            continue
        if not (
            {*places} <= {*_SMOOTH_IN.get(type(ins.op), ())} or _smooth(ins.op, [values[s] for s in ins.input_slots])
        ):
            raise UnsupportedOp(op=ins.op.name, reason="it may have a kink between two points")
        if not isinstance(ins.op, ops.ShapeOf):
            moving.update(ins.output_slots)


def _smooth(op: ops.Op, operands: Sequence[Enclosure]) -> bool:
    """Whether an op is smooth in all its operands, where they are anywhere in these enclosures."""
    reals = [x for x in operands if isinstance(x, Interval)]
    real = len(reals) == len(operands)
    match op:
        case ops.Convert():
            return op.to in INEXACT
        case ops.Extension():
            free = real or op.op not in _PHASED
            return op.family in (einsum.FAMILY, fft.FAMILY) or op.op in _OF_DIAGONALS or (knows(REAL, op) and free)
        case ops.Abs():
            return bool(np.logical_or.reduce([(x.lo > 0) | (x.hi < 0) for x in operands[0].parts]).all())
        case ops.Maximum() | ops.Minimum():
            x, y = reals
            return bool(((x.lo > y.hi) | (x.hi < y.lo)).all())
    return isinstance(op, SMOOTH) or (isinstance(op, SMOOTH_REAL) and real)


def _check_factors(program: GraphProgram, *points: Mapping[int, Enclosure]) -> None:
    """Refuse a program whose factors at one of the points are others than near those of the first: of another order, or turned."""
    first, *others = points
    for slot in [slot for ins in program.instructions if knows(REAL, ins.op) for slot in ins.output_slots]:
        for other in others:
            pairs = list(zip(first[slot].parts, other[slot].parts, strict=True))
            apart = max(np.maximum(np.abs(p.hi - q.lo), np.abs(q.hi - p.lo)).max(initial=0) for p, q in pairs)
            if not apart <= _NEAR * max(np.maximum(np.abs(p.lo), np.abs(p.hi)).max(initial=0) for p, _ in pairs):
                raise UnsupportedOp(op="program", reason="its factors may jump between two points")


def _moved(x: Array, number: int) -> Array:
    """A point near `x`, whose difference from it is a number of the dtype; `x` itself of integers and where it is not finite."""
    dtype = DType.of(x)
    if dtype not in INEXACT:
        return x
    parts = []
    step, seed = _STEPS[dtype.real], plain_seed(number, dtype, x.shape)
    with np.errstate(all="ignore"):
        for value, direction in ((x.real, seed.real), (x.imag, seed.imag)) if dtype.is_complex else ((x, seed),):
            away = step * np.multiply(np.where(value == 0, 1, value), direction)
            end = np.add(value, away).astype(value.dtype)
            parts.append(np.where(np.isfinite(end) & np.isfinite(end - value), end, value))
    moved = np.empty(x.shape, x.dtype, order="F")
    moved.real = parts[0]
    if dtype.is_complex:
        moved.imag = parts[1]
    return moved


def _between(x: Array, end: Array) -> Enclosure:
    """All values between two arrays."""
    return each_part(hull, point(x), point(end)) if DType.of(x) in INEXACT else point(x)


def _difference(program: GraphProgram) -> GraphProgram:
    """`f(a) - f(b)` for inputs a, then b; outputs without a derivative as of a."""
    builder = GraphBuilder(program.name, program.policy)
    ends = [[builder.typed_input(t) for t in program.input_types] for _ in range(2)]
    a, b = (replayed(builder, program, inputs) for inputs in ends)
    return builder.build(*(u - v if u.dtype in INEXACT else u for u, v in zip(a, b, strict=True)))


def _taylor(first: Enclosure, curved: Enclosure) -> Enclosure:
    """The first derivative and half of the second, with the roundings of the bounds themselves."""

    def sum_(p: Interval, q: Interval) -> Interval:
        with np.errstate(all="ignore"):
            lo, hi = np.nextafter(p.lo + q.lo / 2, -np.inf), np.nextafter(p.hi + q.hi / 2, np.inf)
        open_ = p.nan | q.nan | np.isnan(lo) | np.isnan(hi)
        every = np.ones(lo.shape, bool)
        return Interval(p.dtype, np.where(open_, -np.inf, lo), np.where(open_, np.inf, hi), open_, every, every)

    if isinstance(first, Rectangle) or isinstance(curved, Rectangle):
        return rectangle(*(sum_(p, q) for p, q in zip(first.parts, curved.parts, strict=True)))
    return sum_(first, curved)
