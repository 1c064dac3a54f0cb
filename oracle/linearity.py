"""The vjp by other ways: the gradient of a real number, and the transpose of a program in an input in which it is linear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oracle.derivation import Differentiated, concrete, rules_applied
from oracle.enclosure import REAL, Enclosure, enclose
from oracle.enclosure.value import point
from tenferro_ref.autodiff import Derivative, grad, transpose
from tenferro_ref.autodiff.errors import UnsupportedAdRule, UnsupportedMetadata
from tenferro_ref.dtype import INEXACT
from tenferro_ref.tensor import Array

#: Instructions of a program whose inputs are tried one by one.
_LONGEST = 24

Sides = tuple[list[Enclosure], list[Enclosure]]


def by_gradient(d: Differentiated) -> Sides:
    """`grad` of a program with one output, a real number, and its vjp for the cotangent 1; nothing for other programs."""
    types = d.program.output_types
    if len(types) != 1 or types[0].rank or not types[0].dtype.is_float:
        return [], []
    with rules_applied(d.program):
        made = grad(d.program)
    one = np.array(1, types[0].dtype.numpy)
    return _enclosed(d, made, d.inputs), _enclosed(d, d.backward, (*d.inputs, one))


def by_transposes(d: Differentiated) -> Sides:
    """For each input in which the program is linear, its transpose and its vjp."""
    sides: Sides = [], []
    if len(d.program.instructions) > _LONGEST:
        return sides
    whole: list[Enclosure] = []
    moving = [i for i, type_ in enumerate(d.program.input_types) if type_.dtype in INEXACT]
    for place, number in enumerate(moving):
        try:
            with rules_applied(d.program):
                made = transpose(d.program, [number])
        except (UnsupportedAdRule, UnsupportedMetadata):
            continue
        whole = whole or _enclosed(d, d.backward, (*d.inputs, *d.cotangents))
        others = [x for i, x in enumerate(d.inputs) if i != number]
        sides[0].extend(_enclosed(d, made, (*others, *d.cotangents), [number]))
        sides[1].append(whole[place])
    return sides


def _enclosed(
    d: Differentiated, made: Derivative, inputs: Sequence[Array], numbers: Sequence[int] | None = None
) -> list[Enclosure]:
    """The cotangents of those inputs, of all that have one if none are named; zeros where they are left out."""
    values = enclose(concrete(made.program, inputs), inputs, REAL)
    places = zip(range(len(d.inputs)) if numbers is None else numbers, made.results, strict=True)
    return [
        point(np.zeros(d.inputs[i].shape, d.inputs[i].dtype)) if place is None else values[place]
        for i, place in places
        if d.program.input_types[i].dtype in INEXACT
    ]
