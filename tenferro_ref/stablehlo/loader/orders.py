"""What order a body compares elements in, and what it leaves open: which elements are equal, and lines in which it is no order.

A comparison of floats orders nothing beside a NaN, of which none holds: what a network or a tree makes of a line with one depends
on which elements meet first, which StableHLO does not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenferro_ref import ops
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader.bodies import Expression, argument, node
from tenferro_ref.stablehlo.loader.composed import logical, select, static
from tenferro_ref.stablehlo.loader.tracer import Tracer


@dataclass(frozen=True)
class Key:
    """One of the keys that elements are ordered by.

    Attributes
    ----------
    first
        The key of the first of two elements.
    kind
        " FLOAT", " TOTALORDER" or "".
    ascending
        Whether a first element with the lesser key is preferred.
    places_nan
        A NaN is told apart and has a place of its own.
    """

    first: Expression
    kind: str
    ascending: bool
    places_nan: bool

    @property
    def arguments(self) -> set[int]:
        return _arguments(self.first)


@dataclass(frozen=True)
class Order:
    """That of several keys, of which a later one orders what is equal in all before. `strict` if it does not hold of equal elements."""

    keys: tuple[Key, ...]
    strict: bool

    def unordered(self, x: Expression) -> bool:
        """Whether a comparison is one of a key that may be a NaN which has no place."""
        return any(k.kind == " FLOAT" and not k.places_nan and _compares(x, k.first) for k in self.keys)


def order_of(x: Expression, other: Sequence[int]) -> Order | None:
    """The order in which a body compares two elements, if it is one.

    Parameters
    ----------
    other
        For each argument of the body the same of the other element; those of the first element are the lesser of the two.
    """
    name, *operands = x
    if name == "not":
        inner = order_of(operands[0], other)
        return None if inner is None else _turned(inner)
    if name in ("or", "select"):
        for prefers, same, rest in _by_the_next(name, operands):
            first, after = order_of(prefers, other), order_of(rest, other)
            if first is not None and after is not None and first.strict and len(first.keys) == 1:
                (key,) = first.keys
                if same == node("EQ" + key.kind, key.first, mirrored(key.first, other)):
                    return Order((key, *after.keys), after.strict)
    if name == "or":
        return _with_nan_placed(operands, other)
    return _one_key(x, other)


def _one_key(x: Expression, other: Sequence[int]) -> Order | None:
    """That of a comparison of one key of both."""
    direction, blank, kind = x[0].partition(" ")
    if direction not in ("LT", "LE") or x[2] != mirrored(x[1], other):
        return None
    of_first = [n < other[n] for n in _arguments(x[1])]
    if not of_first or len(set(of_first)) > 1:
        return None  # of both elements, or of none
    ascending = of_first[0]
    return Order((Key(x[1] if ascending else x[2], blank + kind, ascending, False),), direction == "LT")


def _with_nan_placed(operands: Sequence[Expression], other: Sequence[int]) -> Order | None:
    """That of `LT(x, y) or NE(x, x)`, in which a NaN comes before all others; or after them, with `NE(y, y)`."""
    for compared, asked in (operands, operands[::-1]):
        order = order_of(compared, other) if compared[0].partition(" ")[0] in ("LT", "LE") else None
        if order is None:
            continue
        (key,) = order.keys
        keys = (key.first, mirrored(key.first, other))
        if asked in [node("NE" + key.kind, k, k) for k in keys]:
            return Order((Key(key.first, key.kind, key.ascending, True),), order.strict)
    return None


def _by_the_next(name: str, operands: Sequence[Expression]) -> list[tuple[Expression, Expression, Expression]]:
    """Ways to read `prefers or (same and rest)`, and the same as a Select: `(prefers, same, rest)`."""
    if name == "select":
        same, rest, prefers = operands
        return [(prefers, same, rest)] if same[0].startswith("EQ") else []
    both = [(a, b) for a, b in (operands, operands[::-1]) if b[0] == "and"]
    return [(a, *pair) for a, b in both for pair in ((b[1], b[2]), (b[2], b[1]))]


def _turned(order: Order) -> Order | None:
    """The order that holds where that one does not; a NaN that has a place would get another one."""
    if any(k.places_nan for k in order.keys):
        return None
    keys = tuple(Key(k.first, k.kind, not k.ascending, False) for k in order.keys)
    return Order(keys, not order.strict)


def mirrored(x: Expression, other: Sequence[int]) -> Expression:
    """The expression with the two elements in each other's place."""
    return argument(other[x[1]]) if x[0] == "argument" else node(x[0], *(mirrored(v, other) for v in x[1:]))


def _arguments(x: Expression) -> set[int]:
    return {x[1]} if x[0] == "argument" else set[int]().union(*map(_arguments, x[1:]))


def _compares(x: Expression, key: Expression) -> bool:
    return key in x[1:] and x[0].partition(" ")[0] in ("LT", "LE")


# --- what is left open ------------------------------------------------------------------------------------------------


def any_nan(b: Tracer, keys: Sequence[Value]) -> Value | None:
    """Where a line, along the last axis, has a NaN among these; None if there are no keys."""
    found: Value | None = None
    for key in keys:
        here = b.apply(ops.ReduceMax((key.ndim - 1,)), key != key)
        found = here if found is None else logical("or", found, here)
    return found


def any_of(b: Tracer, x: Value) -> Value:
    """Any element of each line along the last axis; the first is what is computed."""
    axis = x.ndim - 1
    while (count := static(x)[-1]) > 1:
        half = count // 2
        joined = either(b, _cut(b, x, 0, half), _cut(b, x, half, 2 * half))
        rest = [_cut(b, x, 2 * half, count)] if count % 2 else []
        x = b.apply(ops.Concatenate(axis), joined, *rest) if rest else joined
    return b.reshape(x, static(x)[:-1])


def any_of_line(b: Tracer, x: Value, where: Value) -> Value:
    """`x`, or, in the lines that are meant, any element of the same line, along the last axis."""
    shape = static(x)
    lines = tuple(range(len(shape) - 1))
    other, mask = (b.apply(ops.BroadcastInDim(shape, lines), v) for v in (any_of(b, x), where))
    return select(mask, either(b, x, other), x)


def any_of_run(b: Tracer, x: Value, linked: Value) -> Value:
    """`x`, or any element of the same run along the last axis: `linked` says which elements are in one with the next."""
    backward = ops.Reverse((x.ndim - 1,))
    x = b.apply(backward, _any_from_here(b, x, linked))
    return b.apply(backward, _any_from_here(b, x, b.apply(backward, linked)))


def _any_from_here(b: Tracer, x: Value, linked: Value) -> Value:
    """`x`, or any later element of the run; in each step of twice as many."""
    n, step, axis = static(x)[-1], 1, x.ndim - 1
    while step < n:
        here = _cut(b, x, 0, n - step)
        joined = select(linked, either(b, here, _cut(b, x, step, n)), here)
        x = b.apply(ops.Concatenate(axis), joined, _cut(b, x, n - step, n))
        if 2 * step < n:
            linked = logical("and", _cut(b, linked, 0, n - 2 * step), _cut(b, linked, step, n - step))
        step *= 2
    return x


def either(b: Tracer, x: Value, y: Value) -> Value:
    """Either of two; what is computed is the first."""
    return b.apply(ops.Repeated("order", 1), x, y)


def _cut(b: Tracer, x: Value, start: int, stop: int) -> Value:
    shape = static(x)
    return b.apply(ops.Slice((*(0,) * (len(shape) - 1), start), (*shape[:-1], stop), (1,) * len(shape)), x)
