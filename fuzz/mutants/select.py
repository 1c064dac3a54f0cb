"""`python -m fuzz.mutants.select`: choose sites for `rules.toml` and say which of them survive.

Sites of a module are taken in the order of a hash, so that nobody picks the easy ones, until the module has its share of
those that change a meaning: a change that only makes Python raise is not a semantic fault and is passed over. What survives
is written with `equivalent = "?"`: a person has to say why it changes nothing, or mend the generator or the oracle.
Explanations that the file already has are kept.
"""

from __future__ import annotations

import hashlib
import sys
from functools import partial

import click

from fuzz.mutants.by_rule import RULES_FILE, load, place
from fuzz.mutants.hunt import hunt
from fuzz.mutants.mutant import Mutant
from fuzz.mutants.rewrite import Site, patched, sites
from tenferro_ref.files import write_atomically

#: Modules, and how many mutants of each are in the catalogue.
SHARES = {
    "tenferro_ref.compiler.dot_dimension_sorter": 6,
    "tenferro_ref.compiler.transpose_folding": 8,
    "tenferro_ref.compiler.dot_decomposer": 20,
    "tenferro_ref.compiler.dead_code_elimination": 3,
    "tenferro_ref.program.program": 8,
    "tenferro_ref.runtime.segment": 16,
    "tenferro_ref.runtime.run": 16,
    "tenferro_ref.runtime.fusion": 12,
    "tenferro_ref.runtime.kernels.elementwise": 18,
    "tenferro_ref.runtime.kernels.structural": 18,
    "tenferro_ref.runtime.kernels.reduction": 14,
    "tenferro_ref.runtime.kernels.indexing": 26,
    "tenferro_ref.runtime.kernels.contraction": 6,
    "tenferro_ref.stablehlo.emit.elementwise": 6,
    "tenferro_ref.stablehlo.emit.structural": 12,
    "tenferro_ref.stablehlo.emit.indexing": 10,
    "tenferro_ref.stablehlo.emit.contraction": 6,
    "tenferro_ref.stablehlo.writer": 10,
    "tenferro_ref.pjrt.transfer": 5,
    "oracle.compare": 14,
    "oracle.enclosure.sums": 8,
}
#: Executors that see a fault of a place; the native ones where nothing is said.
EXECUTORS = {"emitter": ["pjrt:xla081@fast"], "layout": ["pjrt:xla081@fast"]}
NATIVE = ["native-unsegmented", "native-nopasses", "native-fused"]


def _order(site: Site) -> str:
    return hashlib.sha256(site.name.encode()).hexdigest()


def _entry(site: Site, equivalent: str) -> str:
    fields = {
        "module": site.module, "function": site.function, "rule": site.rule, "before": site.before, "after": site.after,
    }  # fmt: skip
    lines = ["[[mutant]]", *(f"{key} = {_quoted(value)}" for key, value in fields.items())]
    if site.nth:
        lines.append(f"nth = {site.nth}")
    if equivalent:
        lines.append(f"equivalent = {_quoted(equivalent)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@click.command()
@click.option("--programs", default=2000, show_default=True, help="A mutant that lives through this many survives.")
@click.option("--seed", default=1, show_default=True)
@click.option("--module", "modules", multiple=True, help="Only these modules; entries of the others stay.")
def main(programs: int, seed: int, modules: tuple[str, ...]) -> None:
    """Write rules.toml anew."""
    known = dict(load())
    entries = [(site, why) for site, why in known.items() if modules and site.module not in modules]
    for module in modules or SHARES:
        kept = 0
        for site in sorted(sites(module), key=_order):
            if kept == SHARES[module]:
                break
            where = place(module)
            mutant = Mutant(site.name, where, "", partial(patched, site), in_worker=where == "layout")
            kill = hunt(mutant, EXECUTORS.get(where, NATIVE), seed=seed, max_programs=programs, reduce_seconds=0)
            if " raises " in f" {kill.reason}":
                continue
            kept += 1
            why = "" if kill.killed else known.get(site, "") or "?"
            entries.append((site, why))
            verdict = f"killed by {kill.executor} after {kill.programs}" if kill.killed else "SURVIVES"
            print(f"{site.name}: {verdict}: {site.before} -> {site.after}", file=sys.stderr, flush=True)
        _write(entries)


def _write(entries: list[tuple[Site, str]]) -> None:
    ordered = sorted(entries, key=lambda e: (e[0].module, e[0].function, e[0].rule, e[0].before, e[0].nth))
    head = "# Written by `python -m fuzz.mutants.select`; the explanations of equivalent mutants are by hand.\n\n"
    write_atomically(RULES_FILE, head + "\n".join(_entry(site, why) for site, why in ordered))


if __name__ == "__main__":
    main()
