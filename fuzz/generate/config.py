"""What programs may contain: `Config`, also in words, and the ops that every layer of the reference handles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tenferro_ref.dtype import DType
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import BY_NAME, OPS, Extension, Op


@dataclass(frozen=True, slots=True)
class Config:
    """Limits and mix of generated programs.

    Attributes
    ----------
    ops
        Ops to use; None for those that have a strategy, a NumPy kernel and an enclosure.
    dtypes
        Dtypes of inputs and constants and targets of Convert; Bool also arises from Compare. An op uses those that it
        admits; integer Divide and Pow, which may fault, are left to programs whose policy says what they give then.
    min_instructions, max_instructions
        Length of a program, inclusive.
    usual_instructions
        Few programs are longer: 2 in 100 have up to 64 instructions, 1 in 200 has up to the most. Not heeded where it is
        not between the other two.
    max_elements
        Largest tensor. One program in a hundred comes near it, the others stay below `usual_elements`.
    max_rank, usual_rank
        Ranks above `usual_rank` are rare.
    dim_exprs
        Shapes of Reshape and BroadcastInDim now and then read extents from their operands.
    motifs
        Beside single ops also sequences that passes and compilers look for.
    anchors
        Bulk generation walks through all (op, dtype, op on its result) that there can be, one a program.
    symbolic
        Percentage of programs in which symbols stand for some extents of the inputs.
    linalg
        Percentage of programs with one or two ops of the linalg family, beside those of the motifs.
    policies
        Percentage of programs under another policy than the engine's.
    weights
        Factors on the chance of an op or motif, by name.
    rare
        Pairs of an op and a dtype that a fifth of the anchors begin with.
    invalid
        Share of the programs of a campaign in the place of which an invalid one is run; the generator itself makes none.
    """

    ops: tuple[type[Op], ...] | None = None
    dtypes: tuple[DType, ...] = tuple(DType)
    min_instructions: int = 1
    max_instructions: int = 200
    usual_instructions: int = 14
    max_elements: int = 20_000
    usual_elements: int = 1_500
    max_rank: int = 6
    usual_rank: int = 4
    max_outputs: int = 6
    dim_exprs: bool = True
    motifs: bool = True
    anchors: bool = True
    symbolic: float = 8
    linalg: float = 3
    policies: float = 5
    weights: tuple[tuple[str, float], ...] = ()
    rare: tuple[tuple[type[Op], DType], ...] = ()
    invalid: float = 1 / 32

    @property
    def vocabulary(self) -> frozenset[type[Op]]:
        """The ops in use."""
        return _vocabulary(self.ops)

    @property
    def usual(self) -> int:
        """Length that few programs exceed."""
        least, most = self.min_instructions, self.max_instructions
        return self.usual_instructions if least <= self.usual_instructions <= most else most


DEFAULT = Config()


@cache
def _vocabulary(ops: tuple[type[Op], ...] | None) -> frozenset[type[Op]]:
    return frozenset(default_ops() if ops is None else ops)


@cache
def default_ops() -> tuple[type[Op], ...]:
    """Ops with a row in every layer that a parity check goes through; the emitter may refuse."""
    # imported here: the generator itself knows nothing of kernels, emission and enclosures
    from fuzz.generate.ops.extensions import STRATEGY
    from oracle.enclosure import ENCLOSE
    from tenferro_ref.runtime import KERNELS

    # what a layer does with an extension is not in its table but in the families' own
    layers = {op: (STRATEGY,) if op is Extension else (STRATEGY, KERNELS, ENCLOSE) for op in OPS}
    return tuple(op for op, tables in layers.items() if all(op in table for table in tables))


# --- in words ---------------------------------------------------------------------------------------------------------


#: The largest number that may be said.
_MOST = 10**6


def _whole(text: str, least: int) -> int:
    if not (text.isdecimal() and least <= int(text) <= _MOST):
        raise ValueError(f"a number from {least} to {_MOST}")
    return int(text)


def _instructions(text: str) -> dict[str, Any]:
    least, dash, most = text.partition("-")
    first = _whole(least, 1)
    last = _whole(most, 1) if dash else first
    if last < first:
        raise ValueError("a last number that is not less than the first")
    return {"min_instructions": first, "max_instructions": last}


def _elements(text: str) -> dict[str, Any]:
    most = _whole(text, 1)
    return {"max_elements": most, "usual_elements": min(most, DEFAULT.usual_elements)}


def _rank(text: str) -> dict[str, Any]:
    most = _whole(text, 0)
    return {"max_rank": most, "usual_rank": min(most, DEFAULT.usual_rank)}


def _names(field: str, known: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if unknown := [name for name in text.split(",") if name not in known]:
            raise ValueError(f"names out of {', '.join(known)}; {unknown[0]!r} is none")
        return {field: tuple(known[name] for name in dict.fromkeys(text.split(",")))}

    return read


def _share(field: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if not (text.isdecimal() and int(text) <= 100):
            raise ValueError("a percentage, 0 to 100")
        return {field: float(text)}

    return read


def _rare(text: str) -> dict[str, Any]:
    pairs = [word.partition(":") for word in text.split(",")]
    if wrong := ["".join(p) for p in pairs if p[0] not in BY_NAME or p[2] not in DType.__members__]:
        raise ValueError(f"pairs like Reverse:I32; {wrong[0]!r} is none")
    return {"rare": tuple(dict.fromkeys((BY_NAME[op], DType[dtype]) for op, _, dtype in pairs))}


def _rate(text: str) -> dict[str, Any]:
    number = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(?:/([1-9]\d{0,8}))?", text, re.ASCII)
    rate = float(number[1]) / int(number[2] or 1) if number else 2.0
    if rate > 1:
        raise ValueError("a share, 0 to 1, like 0.05 or 1/32")
    return {"invalid": rate}


#: How each key of `from_words` is read.
WORDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "instructions": _instructions,
    "elements": _elements,
    "rank": _rank,
    "ops": _names("ops", BY_NAME),
    "dtypes": _names("dtypes", {dtype.name: dtype for dtype in DType}),
    "rare": _rare,
    **{field: _share(field) for field in ("symbolic", "linalg", "policies")},
    "invalid": _rate,
}


def from_words(words: Sequence[str]) -> Config:
    """The default configuration with what `words` change, each of the form `KEY=VALUE`.

    `instructions=10` or `instructions=5-20`, `elements=64`, `rank=2` (the most), `ops=Exp,Log`, `dtypes=F32,C64`, `symbolic=0`,
    `linalg=50`, `policies=0` (percentages of the programs), `rare=Reverse:I32,Add:Bool` (`python -m tools.opcodes` says which),
    `invalid=0` or `invalid=1/8` (the share of invalid programs).

    Raises
    ------
    UsageError
        A word that is none of these.
    """
    config = DEFAULT
    for word in words:
        key, given, text = word.partition("=")
        if not given or key not in WORDS:
            raise UsageError(detail=f"generate {word!r}: expected KEY=VALUE, with a key out of {', '.join(WORDS)}")
        try:
            config = replace(config, **WORDS[key](text))
        except ValueError as error:
            raise UsageError(detail=f"generate {word!r}: expected {error}") from None
    return config
