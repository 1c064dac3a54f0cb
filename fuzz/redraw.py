"""Further input sets for a program: one compile serves them all.

The values of a generated case are kept in kind: what indexes, divides or must stay small does so in every set. Which programs
there are does not live here (`fuzz.generate`).
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.random import PCG64, Generator

from fuzz.generate import distinct, generate
from fuzz.strategies import DEFAULT, Config
from fuzz.strategies.values import Recipe, classes, make
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

    A program with decompositions has one set: they need matrices of a kind.
    """
    if decomposing(case.program):
        return [case]
    seed = int.from_bytes(hashlib.sha256(case.fingerprint.encode()).digest()[:8], "big")
    rng = Generator(PCG64(seed))
    whole = [_whole(array) for array in case.inputs]
    return [case] + [
        case.with_inputs(tuple(_redrawn(array, w, rng) for array, w in zip(case.inputs, whole, strict=True)))
        for _ in range(count - 1)
    ]


def _whole(array: Array) -> bool:
    """Integers, also those in floats: they may be indices, or exact."""
    dtype = DType.of(array)
    with np.errstate(invalid="ignore"):
        return not (dtype.is_float or dtype.is_complex) or bool((array.real == np.rint(array.real)).all())


def _redrawn(array: Array, whole: bool, rng: Generator) -> Array:
    """What is whole is kept, in another order."""
    dtype = DType.of(array)
    if not whole and rng.random() < _NEW:
        kinds = list(classes(dtype))
        recipe = Recipe(kinds[int(rng.integers(len(kinds)))], int(rng.integers(2**16)))
        return make(recipe, dtype, array.shape)
    return np.asarray(rng.permutation(array.ravel("F")).reshape(array.shape, order="F"))


__all__ = ["batch_of", "input_sets_of"]
