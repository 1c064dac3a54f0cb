"""Module cases: StableHLO modules with operations that programs lack, in the place of some programs of a batch.

A module begins with the program that it replaces, if that is short and has a form in StableHLO; statements
(`fuzz.generate.modules.statements`) read its results, and operations that programs have read theirs. Executors of StableHLO are
given the module as it is; what it should give comes from the program that it is read as. Reading it needs MLIR, the extra `jax`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache

from fuzz.generate.choices import Choices
from fuzz.generate.config import Config, Regime
from fuzz.generate.modules.draft import MOST, Draft
from fuzz.generate.modules.statements import STATEMENTS, read
from fuzz.generate.values.recipes import REGIMES, array_of
from oracle.case import Case
from oracle.given_case import case_of
from oracle.staged import decomposing
from tenferro_ref.errors import MissingDependency, TenferroError, defects_in
from tenferro_ref.isolation.engines.reader import evaluate
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_into
from tenferro_ref.stablehlo.loader import bindings, load, signature
from tenferro_ref.stablehlo.writer import SsaValue
from tenferro_ref.tensor import Array

#: Instructions that a program may have to begin a module.
_LONGEST = 8
#: Bytes that decide on one module.
_BYTES = 512
#: Results of a module at most.
_RESULTS = 5


def with_modules(seed: int, batch: int, config: Config, cases: Sequence[Case]) -> list[Case]:
    """The cases of a batch, some of them replaced by modules: which, and by what, depends on seed, batch and place alone.

    Invalid programs and derivatives stay; so does everything where MLIR is not installed.
    """
    if not config.modules or not readable():
        return list(cases)
    share, first = config.modules, batch * len(cases)
    places = [n for n in range(len(cases)) if int((first + n + 1) * share) > int((first + n) * share)]
    made = list(cases)
    for place in places:
        if cases[place].refusal is None and cases[place].derivation is None:
            turn = int((first + place) * share)
            made[place] = module_case(seed, batch, place, turn, cases[place]) or cases[place]
    return made


@cache
def readable() -> bool:
    """Whether modules can be read here."""
    try:
        bindings.mlir()
    except MissingDependency:
        return False
    return True


def module_case(seed: int, batch: int, place: int, turn: int, case: Case) -> Case | None:
    """The module that takes the place of `case`; None if the reader refuses it.

    Parameters
    ----------
    turn
        How many modules come before it in the campaign: each begins with the next statement of the table.
    """
    stream = hashlib.shake_256(f"tenferro-ref module {seed} {batch} {place}".encode()).digest(_BYTES)
    choices = Choices(stream)
    names = list(STATEMENTS)
    offset = int.from_bytes(hashlib.sha256(f"module {seed}".encode()).digest()[:4], "big")
    return decode(choices, names[(offset + turn) % len(names)], case)


def decode(choices: Choices, name: str, case: Case) -> Case | None:
    """The module whose first statement has that name; None if the reader refuses it."""
    draft, begun = _begun(choices, REGIMES(choices), case)
    draft.pool += [v for v in begun if v.shape]
    shown = list(_grown(draft, name))
    results = [*begun[: _RESULTS - len(shown)], *shown[-_RESULTS:]]
    code = draft.module(results)
    arguments = [*(case.inputs if begun else ()), *_drawn(draft)]
    try:
        with defects_in("the reader of StableHLO"):
            source = signature(code, "module")
            loaded = load(code, "module", evaluate=evaluate, inputs=arguments)
    except TenferroError:
        return None
    return case_of(loaded, source, arguments)


def _begun(choices: Choices, regime: Regime, case: Case) -> tuple[Draft, list[SsaValue]]:
    """A module that begins with a program, and the results of that; an empty one if the program cannot stand there."""
    draft, program = Draft(choices, regime), case.program
    long = len(program.instructions) > _LONGEST or any(a.size > MOST for a in case.inputs)
    if long or choices.chance(25) or decomposing(program):  # decompositions are judged in stages of the program
        return draft, []
    try:
        with defects_in("the emitter of StableHLO"):
            return draft, lower_into(draft, LoweringView.of(program, case.shapes))
    except TenferroError:
        return Draft(choices, regime), []


def _grown(draft: Draft, name: str) -> Iterator[SsaValue]:
    """The results of the statements, and of what reads them; each is a result of the module."""
    names = list(STATEMENTS)
    for number in range(1 + draft.choices.pick(3)):
        made = STATEMENTS[name if not number else draft.choices.choose(names)](draft)
        values = [made] if isinstance(made, SsaValue) else list(made)
        draft.pool += [v for v in values if v.shape]
        yield from values
        if values[-1].shape and draft.choices.chance(60):
            draft.pool.append(value := read(draft, values[-1]))
            yield value


def _drawn(draft: Draft) -> list[Array]:
    """The values of the arguments that were drawn here, in order."""
    return [array_of(draft.recipes[p.name], p.dtype, p.shape) for p in draft.parameters if p.name in draft.recipes]
