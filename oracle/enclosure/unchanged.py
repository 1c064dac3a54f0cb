"""Ops that give one of their operands back.

A compiler leaves such an op out, so that what reads the result reads the operand. A rule that finds one returns the operand
itself: its sets, and all that is known of where it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oracle.enclosure.formats import Array
from oracle.enclosure.freedoms.contraction import picked
from oracle.enclosure.origin import fixed_in
from oracle.enclosure.value import Enclosure, Interval, each_part, hull
from tenferro_ref import ops
from tenferro_ref.ops import Op
from tenferro_ref.program import Instruction

#: Ops that undo one like them.
_UNDOING = (ops.Bitcast, ops.Bits, ops.Conj, ops.Negate, ops.Reverse)


def sign_of(one: Interval, other: Interval) -> int:
    """1 or -1 where `one` is that constant, so that `other` times or over it is `other` or its negative; else 0."""
    if not one.const or np.broadcast_shapes(one.shape, other.shape) != other.shape:
        return 0
    return next((sign for sign in (1, -1) if np.all((one.lo == sign) & (one.hi == sign) & ~one.nan)), 0)


def extremum(x: Interval, y: Interval, largest: bool) -> Interval | None:
    """The operand that a Maximum or Minimum gives back: both are one value, or the other is the infinity that never is taken."""
    if x is y or _alike(x, y):
        return x
    for bound, other in ((x, y), (y, x)):
        if np.broadcast_shapes(bound.shape, other.shape) == other.shape and np.all(_never_taken(bound, largest)):
            return other
    return None


def of_extremum(made: Interval, x: Interval, y: Interval, largest: bool) -> Interval:
    """A Maximum or Minimum with the origin of its operands, where some elements of either are the infinity that never is taken."""
    of_y, of_x = (_never_taken(v, largest) for v in (x, y))
    if not (np.any(of_x) or np.any(of_y)):
        return made
    return made.from_(picked(x, y, made, pick=lambda ends, _: np.where(of_y, ends[1], np.where(of_x, *ends[::2]))))


def _never_taken(x: Interval, largest: bool) -> Array:
    """Elements from constants of which a Maximum or Minimum always takes the other operand's."""
    return _fixed_at(x, -np.inf if largest else np.inf) if x.dtype.is_float else np.zeros(x.shape, bool)


def _fixed_at(x: Interval, value: float) -> Array:
    """Elements from constants that are this value."""
    if not (x.const or x.origin.fixed is not None):
        return np.zeros(x.shape, bool)
    return np.asarray(fixed_in(x) & (x.lo == value) & (x.hi == value) & ~x.nan)


#: What a reduction of floats leaves out of its elements: of a sum zeros of either sign, so that -0 beside +0 stays -0.
NEUTRAL: dict[type[Op], float] = {
    ops.ReduceProd: 1.0,
    ops.ReduceMax: -np.inf,
    ops.ReduceMin: np.inf,
    ops.ReduceSum: 0.0,
}


def needed(op: Op, x: Enclosure) -> Array:
    """Which places along the last axis a reduction of floats is of: not those that have neutral elements from constants in each line."""
    value = NEUTRAL.get(type(op)) if x.parts[0].dtype.is_float else None
    if value is None:
        return np.ones(x.shape[-1], bool)
    lines = tuple(range(len(x.shape) - 1))
    left_out = np.logical_and.reduce([_fixed_at(p, value).all(lines) for p in x.parts])
    if left_out.all():  # a sum of zeros: those stay that are -0
        left_out = ~np.logical_or.reduce([p.neg_zero.any(lines) for p in x.parts])
    return np.asarray(~left_out | left_out.all())


def without_neutral(op: Op, x: Interval) -> Interval:
    """What a reduction of floats along the last axis is of."""
    places = needed(op, x)
    return x if places.all() else x.map(lambda a: a[..., places])


def _alike(x: Interval, y: Interval) -> bool:
    """Whether both have the same sets, before they were rounded, too: one value that is written twice, or might as well be."""
    u, v = x.unrounded, y.unrounded
    if u is None or v is None or x.shape != y.shape:
        return False
    one, other = ((*_sets(a), w.lo, w.hi) for a, w in ((x, u), (y, v)))
    return all(map(np.array_equal, one, other))


def _sets(x: Interval) -> tuple[Array, ...]:
    return x.lo, x.hi, x.nan, x.pos_zero, x.neg_zero


def _same_sets(x: Interval, y: Interval) -> bool:
    return all(map(np.array_equal, _sets(x), _sets(y)))


def along_last(x: Interval) -> Interval | None:
    """The one value that a broadcast repeats along the last axis, if it does; also before it was rounded."""
    if not (x.repeated or x.unrounded) or not x.shape[-1]:
        return None
    same = True

    def first(a: Array) -> Array:
        nonlocal same
        same = same and bool(np.all(a == a[..., :1]))
        return a[..., 0]

    value = x.map(first)
    return value if same else None


def chosen(pred: Interval, x: Interval, y: Interval) -> Interval | None:
    """The operand that a Select gives back: both are one value, or the same constant, or a constant predicate picks one throughout."""
    if x is y:
        return x
    if x.shape != y.shape:
        return None
    if x.const and y.const and x.is_point and y.is_point and _same_sets(x, y):
        return x
    if not pred.const:
        return None
    return y if not np.any(pred.can_true) else x if not np.any(pred.can_false) else None


def there_and_back(ins: Instruction, makers: Mapping[int, Instruction], values: Mapping[int, Enclosure]) -> int | None:
    """The slot whose value comes back where an op undoes the one before: bits as their own dtype; what is negated, inverted, conjugated or reversed twice."""
    maker = makers.get(ins.input_slots[0]) if isinstance(ins.op, _UNDOING) else None
    if maker is None or type(maker.op) is not type(ins.op):
        return None
    slot = maker.input_slots[0]
    dtype = values[slot].dtype
    if isinstance(ins.op, ops.Bitcast):
        return slot if dtype is ins.op.to else None
    if isinstance(ins.op, ops.Bits) and ins.op.function != "not":
        return None
    return slot if maker.op == ins.op else None


def read_as(made: Enclosure, source: Enclosure) -> Enclosure:
    """The result of an op that a compiler may leave out, with the origin of `source`, which then is read in its place; both sets are admitted."""
    if all(map(_same_sets, made.parts, source.parts)):
        return source
    return each_part(lambda x, y: hull(x, y).from_(y.origin), made, source)


def is_operand(made: Enclosure, x: Enclosure) -> bool:
    """Whether an op gave this operand back: in each part the operand's, or read as that, and then with the signs of other zeros at most."""
    if made is x:
        return True
    if len(made.parts) != len(x.parts):
        return False
    pairs = [*zip(made.parts, x.parts, strict=True)]
    for p, q in pairs:
        if p.origin is not q.origin:  # of most results: what follows is asked of few
            return False
    if not any(p is q or q.origin.moves for p, q in pairs):
        return False
    return all(p is q or q.origin.moves or _same_sets(p, q) for p, q in pairs)


def given_back(made: Enclosure, operands: Sequence[Enclosure]) -> int | None:
    """Which operand an op gave back, if it did."""
    return next((k for k, x in enumerate(operands) if is_operand(made, x)), None)
