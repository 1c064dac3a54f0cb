"""Mutants made by rule, as `rules.toml` lists them: sites of `rewrite`, and which of them change no meaning.

The file is written by `python -m fuzz.mutants.select`; only the explanations in it are by hand.
"""

from __future__ import annotations

import tomllib
from functools import cache, partial
from pathlib import Path

from fuzz.mutants.mutant import Mutant
from fuzz.mutants.rewrite import Site, patched
from tenferro_ref.errors import FormatError
from tenferro_ref.files import read_text

RULES_FILE = Path(__file__).with_name("rules.toml")

#: What the first words of a module's name, or of a function's, stand for.
PLACES = {
    "tenferro_ref.compiler": "compiler",
    "tenferro_ref.program": "program",
    "tenferro_ref.runtime.kernels": "kernels",
    "tenferro_ref.runtime.segment": "segmentation",
    "tenferro_ref.runtime.fusion": "fusion",
    "tenferro_ref.runtime.semiring": "semirings",
    "tenferro_ref.runtime.run.Run.release": "reclaim",
    "tenferro_ref.runtime.run.Run.outputs": "reclaim",
    "tenferro_ref.runtime.run._own": "reclaim",
    "tenferro_ref.runtime.run._poison": "reclaim",
    "tenferro_ref.runtime.run._materialize": "layout",
    "tenferro_ref.runtime": "executor",
    "tenferro_ref.extensions": "extensions",
    "tenferro_ref.stablehlo.loader": "loader",
    "tenferro_ref.stablehlo": "emitter",
    "tenferro_ref.tensor": "layout",
    "tenferro_ref.pjrt": "transfer",
    "oracle.enclosure.stacked": "stacks",
    "oracle.enclosure": "enclosure",
    "oracle.compare.compare_stacked": "stacks",
    "oracle.compare": "comparison",
    "oracle.ulp": "comparison",
    "oracle.judge.Reference": "stacks",
    "oracle.judge.Stack": "stacks",
    "oracle.judge._chosen": "stacks",
    "oracle.judge.prepare": "stacks",
    "oracle.judge._enclose": "stacks",
    "oracle.judge.judge_many": "stacks",
    "oracle.judge._settle": "stacks",
    "oracle.judge": "verdicts",
}


def place(site: Site) -> str:
    """The part of the system that a site belongs to."""
    where = f"{site.module}.{site.function}"
    if site.rule == "layout" and not site.module.startswith("tenferro_ref.pjrt"):
        return "layout"
    return next(name for prefix, name in PLACES.items() if where.startswith(prefix))


def mutant_at(site: Site, equivalent: str = "") -> Mutant:
    """The mutant of a site."""
    return Mutant(
        site.name, place(site), f"{site.before}  becomes  {site.after}", partial(patched, site),
        in_worker=place(site) == "transfer", equivalent=equivalent, site=site,
    )  # fmt: skip


@cache
def load(path: Path = RULES_FILE) -> tuple[tuple[Site, str], ...]:
    """Sites, each with the reason why it is equivalent ("" if it is a fault).

    Raises
    ------
    FormatError
        Unreadable, not TOML, or an entry with missing or unknown keys.
    """
    try:
        content = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(where=str(path), detail=f"not TOML: {error}") from None
    entries = []
    for i, entry in enumerate(content.get("mutant", [])):
        equivalent = entry.pop("equivalent", "")
        try:
            entries.append((Site(**entry), equivalent))
        except TypeError as error:
            raise FormatError(where=f"{path}: mutant[{i}]", detail=str(error)) from None
    return tuple(entries)


def mutants() -> tuple[Mutant, ...]:
    """The mutants of the rules file."""
    return tuple(mutant_at(site, equivalent) for site, equivalent in load())


__all__ = ["PLACES", "RULES_FILE", "load", "mutant_at", "mutants", "place"]
