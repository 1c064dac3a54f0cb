"""Further input sets for a program: one compile serves them all.

The values of a generated case stay what they are for: what indexes, divides or must stay small does so in every set.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.random import PCG64, Generator

from fuzz.generate.batches import distinct, generate
from fuzz.generate.config import DEFAULT, Config
from fuzz.generate.values.classes import classes
from fuzz.generate.values.recipes import Recipe, array_of
from oracle.case import Case
from oracle.staged import decomposing
from tenferro_ref.dtype import DType
from tenferro_ref.tensor import Array

#: Share of the inputs of fractions that get new values, of any class; the others keep theirs, in another order.
_NEW = 0.5


def batch_of(seed: int, number: int, count: int, input_sets: int = 1, config: Config = DEFAULT) -> list[Case]:
    """The cases of one batch: `count` distinct ones, up to `input_sets` in a row of each program.

    With one input set they are those of `generate`. Cases of one program share the program object.
    """
    if input_sets == 1:
        return generate(seed, number, count, config)
    cases: dict[str, Case] = {}
    # programs without inputs, or with empty ones, have fewer sets, so that more programs are needed
    for case in distinct(seed, number, count, config):
        for drawn in input_sets_of(case, input_sets):
            cases.setdefault(drawn.fingerprint, drawn)
        if len(cases) >= count:
            break
    return list(cases.values())[:count]


def input_sets_of(case: Case, count: int) -> list[Case]:
    """The case, and further ones of the same program; the same for equal cases in every process.

    A program with decompositions has one set: whether a matrix can be factored depends on its values.
    """
    if decomposing(case.program):
        return [case]
    seed = int.from_bytes(hashlib.sha256(case.fingerprint.encode()).digest()[:8], "big")
    rng = Generator(PCG64(seed))
    columns = [_redrawn(array, count - 1, rng) for array in case.inputs]
    return [case] + [replace(case, inputs=tuple(column[i] for column in columns)) for i in range(count - 1)]


def _redrawn(array: Array, count: int, rng: Generator) -> list[Array]:
    """`count` arrays of other values for an input.

    Integers, also those in floats, may be indices or exact: they are kept, in another order.
    """
    dtype = DType.of(array)
    rows = rng.permuted(np.tile(array.ravel("F"), (count, 1)), axis=1)
    with np.errstate(invalid="ignore"):
        whole = not (dtype.is_float or dtype.is_complex) or bool((array.real == np.rint(array.real)).all())
    if not whole:
        kinds = list(classes(dtype))
        drawn = np.where(rng.random(count) < _NEW, rng.integers(len(kinds), size=count), -1)
        for kind in np.unique(drawn[drawn >= 0]).tolist():
            places = np.flatnonzero(drawn == kind)
            recipe = Recipe(kinds[kind], int(rng.integers(2**16)))
            rows[places] = array_of(recipe, dtype, (len(places), array.size))
    return [row.reshape(array.shape, order="F") for row in rows]
