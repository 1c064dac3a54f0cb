"""Derivatives of generated programs: some programs are replaced by their jvp, their vjp, or the vjp of their jvp.

Which ones, by which transforms and with which seeds follows from seed, batch and number alone, so that the other programs of
a campaign stay what they are. A program that has no such derivative is left as it is.
"""

from __future__ import annotations

import hashlib

from fuzz.generate.choices import Choices
from fuzz.generate.config import Config
from fuzz.generate.values.recipes import REGIMES, array_of, draw_recipe
from oracle.case import Case
from oracle.derivation import derived
from tenferro_ref.dtype import DType
from tenferro_ref.tensor import Array

#: In the order in which they are tried from the one that is drawn on.
_TRANSFORMS = (("jvp",), ("vjp",), ("jvp", "vjp"))
#: Instructions of a derivative, of which a program has at most so many.
_LONGEST = 200
#: Bytes that decide on one program, and on one seed of it.
_BYTES = 4


def differentiated(case: Case, config: Config, seed: int, batch: int, number: int) -> Case:
    """The case, or in `config.derivatives` of all cases a derivative of it."""
    if not config.derivatives:
        return case
    stream = hashlib.sha256(f"derivative {seed} {batch} {number}".encode()).digest()
    if int.from_bytes(stream[:_BYTES], "big") >= config.derivatives * 2 ** (8 * _BYTES):
        return case
    choices = Choices(stream[_BYTES:])
    first, regime = choices.pick(len(_TRANSFORMS)), REGIMES(choices)

    def drawn(place: int, dtype: DType, shape: tuple[int, ...]) -> Array:
        own = hashlib.sha256(f"seed {seed} {batch} {number} {place}".encode()).digest()
        return array_of(draw_recipe(Choices(own), dtype, regime), dtype, shape)

    for transforms in (*_TRANSFORMS[first:], *_TRANSFORMS[:first]):
        made = derived(case, transforms, drawn)
        if made is not None and 0 < len(made.program.instructions) <= _LONGEST:
            return made
    return case
