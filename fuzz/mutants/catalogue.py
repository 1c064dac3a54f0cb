"""The catalogue of seeded faults: those written by hand, and a share of the sites that rules find in the source.

Nothing here lists the sites: they are read from the source each time. A site is in the catalogue if its own hash is below
the share of its module, so that an edit elsewhere changes nothing about it. What people know of sites is in
`equivalents.toml`: which of them change no meaning, and why.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from fuzz.mutants.by_hand import BY_HAND
from fuzz.mutants.mutant import Mutant
from fuzz.mutants.rewrite import Site, patched, sites
from tenferro_ref.errors import FormatError, UsageError
from tenferro_ref.files import read_text

EQUIVALENTS = Path(__file__).with_name("equivalents.toml")
#: Beginning of the reason of a change that nothing has shown to have a meaning, and nothing to have none.
UNSETTLED = "unsettled: "

#: Modules that take part: the place that a fault in them breaks, and how many of a hundred of their sites are taken.
MODULES: dict[str, tuple[str, int]] = {
    "tenferro_ref.compiler.dot_dimension_sorter": ("compiler", 30),
    "tenferro_ref.compiler.transpose_folding": ("compiler", 30),
    "tenferro_ref.compiler.dot_decomposer": ("compiler", 30),
    "tenferro_ref.compiler.layout_simplifier": ("compiler", 30),
    "tenferro_ref.compiler.dead_code_elimination": ("compiler", 30),
    "tenferro_ref.program.program": ("program", 30),
    "tenferro_ref.runtime.segment": ("segmentation", 40),
    "tenferro_ref.runtime.run": ("executor", 25),
    "tenferro_ref.runtime.fusion": ("fusion", 15),
    "tenferro_ref.runtime.kernels.elementwise": ("kernels", 15),
    "tenferro_ref.runtime.kernels.structural": ("kernels", 15),
    "tenferro_ref.runtime.kernels.reduction": ("kernels", 15),
    "tenferro_ref.runtime.kernels.indexing": ("kernels", 15),
    "tenferro_ref.runtime.kernels.contraction": ("kernels", 30),
    "tenferro_ref.runtime.semiring.algebra": ("semirings", 15),
    "tenferro_ref.runtime.semiring.backend": ("semirings", 15),
    "tenferro_ref.runtime.semiring.core": ("semirings", 15),
    "tenferro_ref.extensions.einsum": ("extensions", 15),
    "tenferro_ref.stablehlo.emit.elementwise": ("emitter", 25),
    "tenferro_ref.stablehlo.emit.structural": ("emitter", 25),
    "tenferro_ref.stablehlo.emit.indexing": ("emitter", 25),
    "tenferro_ref.stablehlo.emit.contraction": ("emitter", 25),
    "tenferro_ref.stablehlo.emit.policy": ("emitter", 25),
    "tenferro_ref.stablehlo.writer": ("emitter", 20),
    "tenferro_ref.stablehlo.loader.rows": ("loader", 10),
    "tenferro_ref.stablehlo.loader.indexing": ("loader", 8),
    "tenferro_ref.stablehlo.loader.reductions": ("loader", 8),
    "tenferro_ref.pjrt.transfer": ("transfer", 50),
    "tenferro_ref.tensor": ("layout", 30),
    "oracle.compare": ("comparison", 35),
    "oracle.ulp": ("comparison", 20),
    "oracle.judge": ("verdicts", 50),
    "oracle.enclosure.sums": ("enclosure", 3),
    "oracle.enclosure.arithmetic": ("enclosure", 20),
    "oracle.enclosure.bounds": ("enclosure", 20),
    "oracle.enclosure.freedoms.contraction": ("enclosure", 20),
    "oracle.enclosure.freedoms.flush": ("enclosure", 20),
    "oracle.enclosure.freedoms.gathering": ("enclosure", 20),
    "oracle.enclosure.freedoms.merging": ("enclosure", 20),
    "oracle.enclosure.freedoms.reciprocals": ("enclosure", 20),
    "oracle.enclosure.freedoms.zeros": ("enclosure", 20),
    "oracle.enclosure.origin": ("enclosure", 20),
    "oracle.enclosure.value": ("enclosure", 20),
    "oracle.enclosure.sets": ("sets", 30),
    "oracle.reference": ("sets", 50),
}
#: Functions that belong elsewhere than their module, by how `module.function` begins.
ELSEWHERE = {
    "tenferro_ref.runtime.run.Run.release": "reclaim",
    "tenferro_ref.runtime.run.Run.outputs": "reclaim",
    "tenferro_ref.runtime.run._own": "reclaim",
    "tenferro_ref.runtime.run._poison": "reclaim",
}
#: Functions without faults, by name or with their module: those that make words and plots, that decide on errors alone, or only
#: on how much is done at once; and those that no program enters: files, and modules that this package never writes.
LEFT_OUT = frozenset({
    "_width", "_sample", "_spread", "_words", "_kind", "_bit_kind", "interval_words", "show_spec",
    "check_inputs", "verify", "dtype_of_element",
    "sets_at_once",
    "_read_npy", "load_arrays", "save_npz",
    "tenferro_ref.stablehlo.loader.indexing._last", "_('reduce_window')", "_extremum_with_index",
})  # fmt: skip


def place(site: Site) -> str:
    """The part of the system that a site belongs to."""
    where = f"{site.module}.{site.function}"
    usual = MODULES[site.module][0]
    if site.rule == "layout" and usual in ("executor", "kernels"):
        return "layout"
    return next((name for prefix, name in ELSEWHERE.items() if where.startswith(prefix)), usual)


def left_out(site: Site) -> bool:
    """The site is in one of the functions of `LEFT_OUT`."""
    return not LEFT_OUT.isdisjoint((site.function.rpartition(".")[2], f"{site.module}.{site.function}"))


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
    """All sites of the modules that take part, by name; modules that are not there are passed over."""
    found: dict[str, Site] = {}
    for module in MODULES:
        try:
            found |= {s.name: s for s in sites(module) if not left_out(s)}
        except LookupError:  # a test says so
            continue
    return found


@cache
def catalogue() -> tuple[Mutant, ...]:
    """The seeded faults, and the changes that are known to have no meaning."""
    made = ((s, mutant_at(s)) for s in every_site().values())
    return (*BY_HAND, *(m for s, m in made if not m.hunted or s.order < MODULES[s.module][1] / 100))


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
    if name not in every_site():
        raise UsageError(detail=f"unknown mutant {name!r}; `tenferro-ref mutants list` shows all")
    return mutant_at(every_site()[name])


__all__ = [
    "ELSEWHERE",
    "EQUIVALENTS",
    "LEFT_OUT",
    "MODULES",
    "UNSETTLED",
    "catalogue",
    "equivalents",
    "every_site",
    "find",
    "place",
]
