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
from fuzz.generate.modules.statements import ALONE, STATEMENTS, read
from fuzz.generate.values.recipes import REGIMES
from oracle.case import Case
from oracle.given_case import case_of
from oracle.staged import decomposing
from oracle.unmade import read as read_module
from oracle.unmade import unread
from tenferro_ref.errors import MissingDependency, TenferroError, defects_in
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import lower_into
from tenferro_ref.stablehlo.loader import bindings, signature
from tenferro_ref.stablehlo.writer import SsaValue
from tenferro_ref.tensor import Array

#: Instructions that a program may have to begin a module.
_LONGEST = 8
#: Bytes that decide on one module.
_BYTES = 1024
#: Statements that a module has, at most.
_STATEMENTS = 7
#: How often a statement is among those that come after the first where that is not once: operations with many attributes.
_OFTEN = {
    "convolution": 3, "convolution in groups": 2, "gather": 3, "scatter": 3, "dot_general": 3, "reduce_window": 3, "while": 2, "select_and_scatter": 2,
    "fft": 2, "triangular_solve": 2, "rng_bit_generator THREE_FRY": 2,
}  # fmt: skip
#: Results of the program that a module begins with, at most.
_BEGUN = 3


def with_modules(seed: int, batch: int, config: Config, cases: Sequence[Case]) -> list[Case]:
    """The cases of a batch, some of them replaced by modules: which, and by what, depends on seed, batch and place alone.

    Invalid programs and derivatives stay: a module that is due in the place of one takes the next one that is free, so that each
    statement has its turn. All stay where MLIR is not installed.
    """
    if not config.modules or not readable():
        return list(cases)
    share, first = config.modules, batch * len(cases)
    made, free = list(cases), [case.refusal is None and case.derivation is None for case in cases]
    for due in (n for n in range(len(cases)) if int((first + n + 1) * share) > int((first + n) * share)):
        place = next((n for n in (*range(due, len(cases)), *range(due)) if free[n]), None)
        if place is not None:
            free[place] = False
            made[place] = module_case(seed, batch, place, int((first + due) * share), cases[place])
    return made


@cache
def readable() -> bool:
    """Whether modules can be read here."""
    try:
        bindings.mlir()
    except MissingDependency:
        return False
    return True


def module_case(seed: int, batch: int, place: int, turn: int, case: Case) -> Case:
    """The module that takes the place of `case`.

    Parameters
    ----------
    turn
        How many modules come before it in the campaign: each begins with the next statement of the table.
    """
    stream = hashlib.shake_256(f"tenferro-ref module {seed} {batch} {place}".encode()).digest(_BYTES)
    return decode(Choices(stream), in_turn(seed, turn), case)


def in_turn(seed: int, turn: int) -> list[str]:
    """The statement whose turn it is, and none to six others, which come in turn as well.

    Statements of `ALONE` are by themselves.
    """
    names, joined = list(STATEMENTS), _joined()
    offset = int.from_bytes(hashlib.sha256(f"module {seed}".encode()).digest()[:4], "big")
    first = names[(offset + turn) % len(names)]
    if first in ALONE:
        return [first]
    rounds, more = divmod(turn, _STATEMENTS)
    before = rounds * sum(range(_STATEMENTS)) + sum(range(more))
    return [first, *(joined[(offset + before + i) % len(joined)] for i in range(more))]


@cache
def _joined() -> tuple[str, ...]:
    """Those that come after the first, in an order that looks random, since neighbours in the table are alike."""
    names = [name for name in STATEMENTS if name not in ALONE for _ in range(_OFTEN.get(name, 1))]
    numbered = [f"{number} {name}" for number, name in enumerate(names)]
    order = sorted(range(len(names)), key=lambda number: hashlib.sha256(numbered[number].encode()).digest())
    return tuple(names[number] for number in order)


def decode(choices: Choices, statements: Sequence[str], case: Case) -> Case:
    """The module with statements of these names, `unmade` if the reader refuses it.

    `case` itself, if the text is no StableHLO and begins with what the emitter wrote of it: that may be the emitter's fault, which
    executors that are given the program show.

    Raises
    ------
    TenferroError
        What a statement writes is no StableHLO.
    """
    draft, begun = _begun(choices, REGIMES(choices), case)
    draft.pool += [v for v in begun if v.shape]
    shown = list(_grown(draft, statements))
    code = draft.module([*begun[:_BEGUN], *shown])
    arguments = [*(case.inputs if begun else ()), *_drawn(draft)]
    try:
        with defects_in("the reader of StableHLO"):
            source = signature(code, "module")
    except TenferroError:
        if begun:
            return case
        raise
    try:
        return case_of(read_module(source, arguments), source, arguments)
    except TenferroError:
        return unread(source, arguments)


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


def _grown(draft: Draft, statements: Sequence[str]) -> Iterator[SsaValue]:
    """The results of the statements, and of what reads them; each is a result of the module."""
    for name in statements:
        made = STATEMENTS[name](draft)
        values = [made] if isinstance(made, SsaValue) else list(made)
        draft.pool += [v for v in values if v.shape and v.name not in draft.unread]
        yield from values
        if values[-1].shape and values[-1].name not in draft.unread and draft.choices.chance(60):
            draft.pool.append(value := read(draft, values[-1]))
            yield value


def _drawn(draft: Draft) -> list[Array]:
    """The values of the arguments that were drawn here, in order."""
    return [draft.values[p.name] for p in draft.parameters if p.name in draft.values]
