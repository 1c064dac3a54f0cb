"""Seeded faults of derivative rules, written by hand: what the literature warns of and the rules by source do not make.

Each is a mistake that somebody differentiating the op by hand makes: a conjugate, a sum or a share that is lost.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from fuzz.mutants.mutant import Mutant, member, row
from tenferro_ref import frontend as tn
from tenferro_ref import ops
from tenferro_ref.autodiff import JVP, TRANSPOSE, elementwise, extensions, structural, transform
from tenferro_ref.autodiff.rules import expanded, zeros
from tenferro_ref.extensions.einsum import EINSUM

_EINSUM = next(iter(EINSUM.keys))


def _same(right: Any) -> Any:
    """A function that gives its first argument back."""
    return lambda x, *rest: x


def _transposed_as_it_is(right: Any) -> Any:
    return lambda op, x, g: (g.builder.apply(op, g),)


def _passed_on(right: Any) -> Any:
    return lambda op, x, g: (g, *[None] * (len(x) - 1))


def _first_side_wins(right: Any) -> Any:
    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        first = x[0] == y[0]
        parts = [
            None if t[0] is None else tn.where(first, t[0], 0.0),
            None if t[1] is None else tn.where(first, 0.0, t[1]),
        ]
        there = [p for p in parts if p is not None]
        return there[0] if len(there) == 1 else there[0] + there[1]

    return wrong


def _first_of_many(right: Any) -> Any:
    def wrong(x: Any, axes: Any) -> Any:
        for axis in sorted(axes, reverse=True):
            if x.shape[axis] == 0:
                return right(x, axes)
            x = x[(slice(None),) * axis + (0,)]
        return x

    return wrong


def _lost_where_updated(right: Any) -> Any:
    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        if t[2] is None:
            return right(op, x, y, t)
        return y[0].builder.apply(op, zeros(y[0].builder, x[0].type), x[1], t[2])

    return wrong


def _untouched_update(right: Any) -> Any:
    return lambda op, x, g: (g if right(op, x, g)[0] is not None else None, *right(op, x, g)[1:])


def _within_closed_bounds(right: Any) -> Any:
    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        return None if t[0] is None else tn.where((x[0] >= x[1]) & (x[0] <= x[2]), t[0], 0.0)

    return wrong


def _overwritten(right: Any) -> Any:
    def wrong(cotangents: Any, slot: int, contribution: Any) -> None:
        cotangents[slot] = contribution

    return wrong


def _no_stride(right: Any) -> Any:
    def wrong(op: Any, x: Any, g: Any) -> Any:
        plain = dataclasses.replace(op, strides=(1,) * len(op.strides))
        return right(op if plain.strides == op.strides else _reversed_edges(op), x, g)

    return wrong


def _reversed_edges(op: Any) -> Any:
    return dataclasses.replace(op, strides=tuple(max(1, s - 1) for s in op.strides))


def _first_part_twice(right: Any) -> Any:
    def wrong(op: Any, x: Any, g: Any) -> Any:
        parts = right(op, x, g)
        fits = parts[0] is not None and parts[-1] is not None and parts[0].shape == parts[-1].shape
        return (*parts[:-1], parts[0]) if fits else parts

    return wrong


def _both_sides(right: Any) -> Any:
    return lambda op, x, g: tuple(None if c is None else g for c in right(op, x, g))


def _none_if_one_is(right: Any) -> Any:
    return lambda op, x, y, t: None if any(u is None for u in t) else right(op, x, y, t)


def _ties_added(right: Any) -> Any:
    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        if t[0] is None or not op.axes:
            return t[0]
        return tn.where(x[0] == expanded(y[0], op.axes, x[0].type, [x[0]]), t[0], 0.0).sum(op.axes)

    return wrong


def _divided_by_base(right: Any) -> Any:
    def wrong(op: Any, x: Any, y: Any, t: Any) -> Any:
        return t[0] * (x[1] * y[0] / x[0]) if t[1] is None else right(op, x, y, t)

    return wrong


def _fault(name: str, about: str, patch: Any) -> Mutant:
    return Mutant(name, "derivatives", about, patch)


DERIVATIVES: tuple[Mutant, ...] = (
    _fault(
        "product-conjugate-lost",
        "the cotangent of a factor lacks the conjugate of the other",
        member(elementwise, "conj", _same),
    ),
    _fault("dot-conjugate-lost", "the cotangent of a DotGeneral lacks a conjugate", member(structural, "conj", _same)),
    _fault("einsum-conjugate-lost", "the cotangent of an einsum lacks a conjugate", member(extensions, "conj", _same)),
    _fault("conj-cotangent-plain", "the cotangent passes Conj as it is", row(TRANSPOSE, ops.Conj, _passed_on)),
    _fault(
        "tie-to-one-side",
        "the first of two equal operands of Maximum gets all",
        row(JVP, ops.Maximum, _first_side_wins),
    ),
    _fault(
        "clamp-at-bounds", "a value at a bound of Clamp keeps its tangent", row(JVP, ops.Clamp, _within_closed_bounds)
    ),
    _fault(
        "broadcast-without-sum",
        "the cotangent of a broadcast is its first part",
        member(structural, "summed", _first_of_many),
    ),
    _fault(
        "dot-axes-in-order",
        "the cotangent of a DotGeneral keeps the product's axis order",
        member(structural, "_ordered", _same),
    ),
    _fault(
        "transpose-not-inverted",
        "the cotangent is permuted as the value is",
        row(TRANSPOSE, ops.Transpose, _transposed_as_it_is),
    ),
    _fault("reverse-passed-on", "the cotangent passes Reverse as it is", row(TRANSPOSE, ops.Reverse, _passed_on)),
    _fault("triangle-passed-on", "the cotangent of Tril is not cut", row(TRANSPOSE, ops.Tril, _passed_on)),
    _fault(
        "scatter-overwrites",
        "the tangent of a Scatter forgets that of its operand",
        row(JVP, ops.Scatter, _lost_where_updated),
    ),
    _fault(
        "update-keeps-operand",
        "the cotangent under an update is kept",
        row(TRANSPOSE, ops.DynamicUpdateSlice, _untouched_update),
    ),
    _fault("slice-stride", "a strided Slice scatters its cotangent too closely", row(TRANSPOSE, ops.Slice, _no_stride)),
    _fault(
        "concatenate-first-twice",
        "the last part of a Concatenate gets the first one's cotangent",
        row(TRANSPOSE, ops.Concatenate, _first_part_twice),
    ),
    _fault(
        "select-both-sides", "both sides of a Select get all of the cotangent", row(TRANSPOSE, ops.Select, _both_sides)
    ),
    _fault(
        "concatenate-absent",
        "a Concatenate with one operand that has no tangent has none",
        row(JVP, ops.Concatenate, _none_if_one_is),
    ),
    _fault(
        "ties-are-added",
        "the tangent of ReduceMax is the sum over equal elements, not the mean",
        row(JVP, ops.ReduceMax, _ties_added),
    ),
    _fault(
        "power-by-base",
        "the tangent of a power is the power divided by its base, which may be 0",
        row(JVP, ops.Pow, _divided_by_base),
    ),
    _fault("fan-out-overwrites", "of two uses of a value the last one counts", member(transform, "_add", _overwritten)),
)
