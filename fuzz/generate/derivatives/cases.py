"""Derivatives of generated programs: some programs are replaced by a jvp, a vjp, or the vjp of a jvp.

Which ones follows from batch and number alone, and what they are from the seed, too, so that the other programs of a campaign stay
what they are. Most are derivatives of a program grown for it (`fuzz.generate.derivatives.primals`), so that every rule has its
turn; one in five is the derivative of the program that was drawn, where ops meet as they do everywhere.
"""

from __future__ import annotations

import hashlib

from fuzz.generate.choices import Choices
from fuzz.generate.config import Config, Regime
from fuzz.generate.derivatives.primals import entries, primal
from fuzz.generate.values.recipes import REGIMES, array_of, draw_recipe
from oracle.case import Case
from oracle.derivation import Seeds, derived, underived
from tenferro_ref.dtype import DType
from tenferro_ref.errors import Internal
from tenferro_ref.tensor import Array

#: In the order in which they are tried from the one that is drawn on.
_TRANSFORMS = (("jvp",), ("vjp",), ("jvp", "vjp"))
#: Instructions of a derivative, of which a program has at most so many.
_LONGEST = 200
#: Of so many derivatives one is that of the program that was drawn.
_DRAWN = 5
#: Programs of a batch, as turns are counted; where it has more, its last turns are those of the next one, too.
_BATCH = 32
#: Programs that are grown for one turn, until one has elements and a derivative.
_ATTEMPTS = 6


def in_turn(config: Config, seed: int, batch: int, number: int) -> Case | None:
    """The derivative of a program that is grown around the next op with a rule; None where it is nobody's turn."""
    turn = _turn(config, batch, number)
    known = entries(config)
    if turn is None or turn % _DRAWN == _DRAWN - 1 or not known:
        return None
    start = int.from_bytes(hashlib.sha256(f"derivatives {seed}".encode()).digest()[:4], "big")
    place = start + turn - turn // _DRAWN
    for attempt in range(_ATTEMPTS):
        stream = hashlib.shake_256(f"tenferro-ref derivative {seed} {batch} {number} {attempt}".encode())
        round_, entry = divmod(place, len(known))
        case = primal(config, known[entry], round_, stream)
        if attempt < _ATTEMPTS - 1 and not all(a.size for a in case.inputs):
            continue  # of no elements nothing is decided
        # twice as often as others vjp, which has both tables in it
        made = _derivative(case, (1, 0, 1, 2)[(round_ + entry) % 4], "ordinary", f"{seed} {batch} {number}")
        if made is not None:
            return made
    return None


def of_drawn(case: Case, config: Config, seed: int, batch: int, number: int) -> Case:
    """The case, or a derivative of it where one is due and there is one."""
    if _turn(config, batch, number) is None:
        return case
    choices = Choices(hashlib.sha256(f"derivative {seed} {batch} {number}".encode()).digest())
    first, regime = choices.pick(len(_TRANSFORMS)), REGIMES(choices)
    return _derivative(case, first, regime, f"{seed} {batch} {number}") or case


def _turn(config: Config, batch: int, number: int) -> int | None:
    """How many derivatives come before this one in the campaign; None where there is none."""
    place = batch * _BATCH + number + 1  # one earlier than a module with the same share
    turn = int(place * config.derivatives)
    return turn if int((place + 1) * config.derivatives) > turn else None


def _derivative(case: Case, first: int, regime: Regime, name: str) -> Case | None:
    """A derivative of a case by the first transforms that give one, or by the first whose rules have a defect."""
    seeds = _seeds(regime, name)
    for transforms in (*_TRANSFORMS[first:], *_TRANSFORMS[:first]):
        try:
            made = derived(case, transforms, seeds)
        except Internal:
            return underived(case, transforms)
        if made is not None and 0 < len(made.program.instructions) <= _LONGEST:
            return made
    return None


def _seeds(regime: Regime, name: str) -> Seeds:
    def drawn(place: int, dtype: DType, shape: tuple[int, ...]) -> Array:
        own = hashlib.sha256(f"seed {name} {place}".encode()).digest()
        return array_of(draw_recipe(Choices(own), dtype, regime), dtype, shape)

    return drawn
