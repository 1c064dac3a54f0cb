"""Bodies of reductions that pick one of two elements: whether every tree of them gives the same, which StableHLO leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tenferro_ref import ops
from tenferro_ref.program import Value
from tenferro_ref.stablehlo.loader import bodies
from tenferro_ref.stablehlo.loader.bindings import Operation
from tenferro_ref.stablehlo.loader.bodies import Expression, argument, node
from tenferro_ref.stablehlo.loader.composed import spread, static
from tenferro_ref.stablehlo.loader.orders import Order, any_nan, any_of, mirrored, order_of
from tenferro_ref.stablehlo.loader.regions import apply_body
from tenferro_ref.stablehlo.loader.tracer import Tracer


@dataclass(frozen=True)
class Picking:
    """A body of which each result is one of two elements, or of parts of both.

    Attributes
    ----------
    orders
        By which the results are picked: all have the keys of the shortest, and some more; empty if that is not known, and any
        element may be picked.
    compared
        The comparisons of the body.
    """

    orders: tuple[Order, ...]
    compared: tuple[Expression, ...]


def picking(op: Operation, count: int, region: int, *, several: bool) -> Picking | None:
    """How the body of a reduction of `count` arrays picks; None if it does not.

    Parameters
    ----------
    several
        It is applied to more than one element.

    Raises
    ------
    UnsupportedOp
        It is, and the body neither picks nor is known to give the same in every tree: it need not be associative.
    """
    compared: list[Expression] = []
    found = bodies.results(op, region, compared)
    if found is not None:
        if folds(found):
            return None
        if all(_picks(x, i, count) for i, x in enumerate(found)):
            return Picking(_orders(found, count), tuple(compared))
    if not several:
        return None
    raise op.refusal("its body need not be associative: in which order it is applied is not said")


def folds(found: Sequence[Expression]) -> bool:
    """Whether each result of a body is made of the elements of one array, and the same in every tree."""
    ways = ((x, argument(i), argument(len(found) + i)) for i, x in enumerate(found))
    return all(x in (a, b, node("xor", a, b), *(node(name, a, b) for name in bodies.FOLDS)) for x, a, b in ways)


def _picks(x: Expression, i: int, count: int) -> bool:
    """Whether a result is always one of the two elements."""
    if x[0] in ("select", "maximum", "minimum"):
        return all(_picks(v, i, count) for v in x[-2:])
    return x in (argument(i), argument(count + i))


def _orders(found: Sequence[Expression], count: int) -> tuple[Order, ...]:
    """The orders by which all results are picked, if every tree picks the same by them."""
    other = [(i + count) % (2 * count) for i in range(2 * count)]
    turned = all(x[0] == "select" and x[2:] == (argument(count + i), argument(i)) for i, x in enumerate(found))
    if turned:  # the second of two, which is the same as the first of the two the other way round
        found = [mirrored(x, other) for x in found]
        found = [node("select", x[1], argument(i), argument(count + i)) for i, x in enumerate(found)]
    orders = [order for i, x in enumerate(found) if (order := _order(x, i, count, other)) is not None]
    if not orders:
        return ()
    shortest = min(orders, key=lambda order: len(order.keys))
    of_selects, orders = iter(orders), []
    for i, x in enumerate(found):
        order = _extremum(x, i, count, other, shortest) if x[0] != "select" else next(of_selects, None)
        if order is None:
            return ()
        orders.append(order)
    number = len(shortest.keys)
    for i, order in enumerate(orders):
        rest = order.keys[number:]
        own = {i, count + i}
        same = order.keys[:number] == shortest.keys and all(key.arguments <= own for key in rest)
        if not same or (not rest and order.strict != shortest.strict):
            return ()
    mixed = any(len(order.keys) > number for order in orders)
    if mixed and any(len(key.arguments) > 1 for key in shortest.keys):
        return ()  # a key of parts of several elements
    return tuple(orders)


def _order(x: Expression, i: int, count: int, other: Sequence[int]) -> Order | None:
    """By which the result is the first of two elements."""
    if x[0] != "select":
        return None
    _, asked, a, b = x
    first, second = argument(i), argument(count + i)
    if (a, b) == (first, second):
        return order_of(asked, other)
    if (a, b) == (second, first):
        return order_of(node("not", asked), other)
    for name, direction in (("minimum", "LT"), ("maximum", "GT")):
        if a == node(name, first, second) and b[0] == "select" and b[2:] == (first, second):
            # of elements with an equal key the lesser: `select(x == y, min(i, j), select(x > y, i, j))`
            before = order_of(b[1], other)
            if before is None or len(before.keys) != 1 or before.keys[0].places_nan:
                return None
            (key,) = before.keys
            if asked != node("EQ" + key.kind, key.first, mirrored(key.first, other)):
                return None
            after = order_of(node(direction, first, second), other)
            return None if after is None else Order((key, *after.keys), after.strict)
    return None


def _extremum(x: Expression, i: int, count: int, other: Sequence[int], of: Order) -> Order | None:
    """The order of another result, if it is the one that an extremum of elements is picked by."""
    ways = [("maximum", "GT"), ("minimum", "LT")]
    own = [order_of(node(direction + k, *map(argument, (i, count + i))), other) for name, direction in ways if name == x[0] for k in ("", " FLOAT")]  # fmt: skip
    return of if any(order is not None and order.keys == of.keys for order in own) else None


def left_open(
    b: Tracer, op: Operation, how: Picking, arrays: Sequence[Value], inits: Sequence[Value], region: int
) -> tuple[list[Value], Value | None]:
    """Any element of each line, along the last axis, or the initial value; and in which lines it may be any, None for in none."""
    axis, shape = arrays[0].ndim - 1, static(arrays[0])[:-1]
    lines = [
        b.apply(ops.Concatenate(axis), x, spread(init, (*shape, 1))) for x, init in zip(arrays, inits, strict=True)
    ]
    where: Value | None
    if how.orders:
        keys: list[Value] = []
        apply_body(b, op, [*lines, *lines], region, keys)
        nan = [v for v, x in zip(keys, how.compared, strict=True) if any(o.unordered(x) for o in how.orders)]
        where = any_nan(b, nan)
    else:
        where = b.array(np.ones(shape, bool))
    return ([] if where is None else [any_of(b, v) for v in lines]), where
