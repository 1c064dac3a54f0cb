"""Settings: a `Config` as a user writes it, `KEY=VALUE` for each thing that differs from the default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fuzz.generate.config import CAMPAIGN, DEFAULT, Config
from tenferro_ref.dtype import DType
from tenferro_ref.errors import UsageError
from tenferro_ref.ops import BY_NAME

#: The largest number that a setting may have.
_MOST = 10**6
#: The most instructions: choosing operands for one looks at all before it, which takes seconds for so many.
_LONGEST = 5000


def _integer(text: str, least: int, most: int = _MOST, what: str = "a number from {} to {}") -> int:
    if not (text.isdecimal() and least <= int(text) <= most):
        raise ValueError(what.format(least, most))
    return int(text)


def _instructions(text: str) -> dict[str, Any]:
    first, _, last = text.partition("-")
    least = _integer(first, 1, _LONGEST)
    most = _integer(last, 1, _LONGEST) if "-" in text else least
    if most < least:
        raise ValueError("a last number that is not less than the first")
    return {"min_instructions": least, "max_instructions": most}


def _most(kind: str, least: int) -> Callable[[str], dict[str, Any]]:
    """Reads `max_KIND`; `usual_KIND` is never larger."""

    def read(text: str) -> dict[str, Any]:
        most = _integer(text, least)
        return {f"max_{kind}": most, f"usual_{kind}": min(most, getattr(DEFAULT, f"usual_{kind}"))}

    return read


def _names(field: str, known: Mapping[str, Any]) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        if unknown := [name for name in text.split(",") if name not in known]:
            raise ValueError(f"names out of {', '.join(known)}; {unknown[0]!r} is none")
        return {field: tuple(known[name] for name in dict.fromkeys(text.split(",")))}

    return read


def _percentage(field: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {field: float(_integer(text, 0, 100, "a percentage, 0 to 100"))}


def _rare(text: str) -> dict[str, Any]:
    pairs = [pair.partition(":") for pair in text.split(",")]
    if wrong := ["".join(p) for p in pairs if p[0] not in BY_NAME or p[2] not in DType.__members__]:
        raise ValueError(f"pairs like Reverse:I32; {wrong[0]!r} is none")
    return {"rare": tuple(dict.fromkeys((BY_NAME[op], DType[dtype]) for op, _, dtype in pairs))}


def _share(field: str) -> Callable[[str], dict[str, Any]]:
    def read(text: str) -> dict[str, Any]:
        number = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)(?:/([1-9]\d{0,8}))?", text, re.ASCII)
        share = float(number[1]) / int(number[2] or 1) if number else 2.0
        if share > 1:
            raise ValueError("a share, 0 to 1, like 0.05 or 1/32")
        return {field: share}

    return read


#: How the value of each key is read.
_READ: dict[str, Callable[[str], dict[str, Any]]] = {
    "instructions": _instructions,
    "elements": _most("elements", 1),
    "rank": _most("rank", 0),
    "ops": _names("ops", BY_NAME),
    "dtypes": _names("dtypes", DType.__members__),
    "rare": _rare,
    "guided": lambda text: {"guided": bool(_integer(text, 0, 1))},
    **{field: _percentage(field) for field in ("symbolic", "folded", "linalg", "policies")},
    **{field: _share(field) for field in ("derivatives", "invalid", "modules")},
}


#: Where one of these is chosen there are derivatives and modules only if they are asked for: both have other ops and more of them.
_NARROWER = frozenset({"ops", "dtypes", "instructions", "elements", "rank"})


def config_of(settings: Sequence[str]) -> Config:
    """The configuration of a campaign with the given settings, each of the form `KEY=VALUE`.

    `instructions=10` or `instructions=5-20`, `elements=64`, `rank=2` (the most), `ops=Exp,Log`, `dtypes=F32,C64`, `symbolic=0`,
    `folded=20`, `linalg=50`, `policies=0` (percentages of the programs), `rare=Reverse:I32,Add:Bool` (`python -m tools.opcodes` lists
    such pairs), `derivatives=1/4` (the share of derivative programs), `invalid=0` or `invalid=1/8` (that of invalid ones), `modules=1/8`
    (that of StableHLO modules with operations that programs lack), `guided=1` (what a campaign's batches contain, and who compiles
    them, follows what has shown disagreements).

    Raises
    ------
    UsageError
        A setting that is none of these.
    """
    config = CAMPAIGN if _NARROWER.isdisjoint(setting.partition("=")[0] for setting in settings) else DEFAULT
    for setting in settings:
        key, _, text = setting.partition("=")
        if "=" not in setting or key not in _READ:
            raise UsageError(detail=f"generate {setting!r}: expected KEY=VALUE, with a key out of {', '.join(_READ)}")
        try:
            config = replace(config, **_READ[key](text))
        except ValueError as error:
            raise UsageError(detail=f"generate {setting!r}: expected {error}") from None
    return config
