"""The catalogue of seeded faults: those written by hand, and every site that rules find in the source.

Nothing here lists the sites: they are read from the source each time. A run draws some of them by its seed, so that nobody can
tune to them. What people know of sites is in `equivalents.toml`: which of them change no meaning, and why.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from itertools import zip_longest
from pathlib import Path

from fuzz.mutants.by_hand import BY_HAND
from fuzz.mutants.mutant import Mutant
from fuzz.mutants.rewrite import Site, patched, sites
from tenferro_ref.errors import FormatError, UsageError
from tenferro_ref.files import read_text

EQUIVALENTS = Path(__file__).with_name("equivalents.toml")
#: Beginning of the reason of a change that nothing has shown to have a meaning, and nothing to have none.
UNSETTLED = "unsettled: "

#: Packages whose every function takes part.
PACKAGES = ("tenferro_ref", "oracle")
#: The part that a fault breaks, by how the name of its module begins; the longest beginning holds.
PLACES = {
    "tenferro_ref": "reference",
    "tenferro_ref.autodiff": "derivatives",
    "tenferro_ref.compiler": "compiler",
    "tenferro_ref.extensions": "extensions",
    "tenferro_ref.isolation": "transfer",
    "tenferro_ref.ops": "ops",
    "tenferro_ref.pjrt": "transfer",
    "tenferro_ref.program": "program",
    "tenferro_ref.runtime": "executor",
    "tenferro_ref.runtime.fusion": "fusion",
    "tenferro_ref.runtime.kernels": "kernels",
    "tenferro_ref.runtime.segment": "segmentation",
    "tenferro_ref.runtime.semiring": "semirings",
    "tenferro_ref.stablehlo": "emitter",
    "tenferro_ref.stablehlo.loader": "loader",
    "oracle": "verdicts",
    "oracle.compare": "comparison",
    "oracle.ulp": "comparison",
    "oracle.enclosure": "enclosure",
    "oracle.enclosure.sets": "sets",
    "oracle.peers.engines": "transfer",
    "oracle.reference": "sets",
}


def modules() -> tuple[str, ...]:
    """Every module of `PACKAGES`, in the order of their names; none is imported but packages."""
    found = []
    for package in PACKAGES:
        root = Path(import_module(package).__file__ or "").parent
        paths = (path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py"))
        found += [".".join(path.parts) for path in paths if path.name not in ("__init__", "__main__")]
    return tuple(sorted(found))


def place(site: Site) -> str:
    """The part of the system that a site belongs to."""
    return PLACES[max((start for start in PLACES if f"{site.module}.".startswith(f"{start}.")), key=len)]


@cache
def equivalents() -> Mapping[str, Mapping[str, str]]:
    """By module and `Site.key` the reason why a change has no meaning.

    Raises
    ------
    FormatError
        Unreadable, not TOML, or not tables of reasons.
    """
    try:
        content = tomllib.loads(read_text(EQUIVALENTS))
    except tomllib.TOMLDecodeError as error:
        raise FormatError(where=str(EQUIVALENTS), detail=f"not TOML: {error}") from None
    for module, reasons in content.items():
        if not isinstance(reasons, dict) or not all(isinstance(why, str) for why in reasons.values()):
            raise FormatError(where=f"{EQUIVALENTS}: {module}", detail="not a table of reasons")
    return content


def mutant_at(site: Site) -> Mutant:
    """The mutant of a site."""
    reason = equivalents().get(site.module, {}).get(site.key, "")
    unsettled = reason.startswith(UNSETTLED)
    return Mutant(
        site.name, place(site), f"{site.before}  becomes  {site.after}", partial(patched, site),
        in_worker=place(site) == "transfer", site=site,
        equivalent="" if unsettled else reason, unsettled=reason.removeprefix(UNSETTLED) if unsettled else "",
    )  # fmt: skip


@cache
def every_site() -> Mapping[str, Site]:
    """All sites of `modules`, by name."""
    return {site.name: site for module in modules() for site in sites(module)}


@cache
def catalogue() -> tuple[Mutant, ...]:
    """The seeded faults, and the changes that are known to have no meaning."""
    return (*BY_HAND, *map(mutant_at, every_site().values()))


def drawn(seed: int, count: int, places: Collection[str] = ()) -> list[Mutant]:
    """So many of the faults that are hunted, drawn by the seed, of all or of some places.

    Rules come in turn, so that the rare ones do too: a third of all sites are orders of arguments.
    """
    chance = random.Random(seed)  # noqa: S311
    by_rule: dict[str, list[Mutant]] = {}
    for mutant in catalogue():
        if mutant.hunted and (not places or mutant.place in places):
            by_rule.setdefault(mutant.site.rule if mutant.site else "", []).append(mutant)
    shuffled = [chance.sample(found, len(found)) for found in by_rule.values()]
    return [m for turn in zip_longest(*shuffled) for m in turn if m is not None][:count]


def find(name: str) -> Mutant:
    """The mutant of that name, which may be that of a site outside the catalogue.

    Raises
    ------
    UsageError
        There is none.
    """
    for mutant in BY_HAND:
        if mutant.name == name:
            return mutant
    parts = name.partition("/")[0].split(".")
    for end in range(len(parts) - 1, 0, -1):  # the module is read, and no other: each worker looks for its fault
        module = ".".join(parts[:end])
        with suppress(LookupError):
            for site in sites(module if parts[0] in PACKAGES else f"{PACKAGES[0]}.{module}"):
                if site.name == name:
                    return mutant_at(site)
    raise UsageError(detail=f"unknown mutant {name!r}; `tenferro-ref mutants list` shows all")


__all__ = [
    "EQUIVALENTS",
    "PACKAGES",
    "PLACES",
    "UNSETTLED",
    "catalogue",
    "drawn",
    "equivalents",
    "every_site",
    "find",
    "modules",
    "place",
]
