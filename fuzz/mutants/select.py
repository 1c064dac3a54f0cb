"""`python -m fuzz.mutants.select`: choose sites for `rules.toml` and say which of them survive.

Sites of a module are taken in the order of a hash, so that nobody picks the easy ones, until the module has its share of
those that change a meaning: a change that only makes Python raise is not a semantic fault and is passed over, as are functions that no
program enters (host ops without a StableHLO form) and what the loader does for modules that this package never writes: unit
tests are about them. Those that the file has already come first, and its explanations are kept. What survives is said, and
not written: a person has to say in the file why it changes nothing (`equivalent = "..."`), to mend the generator or a
witness, or to list it in `docs/mutants.md` as open.
"""

from __future__ import annotations

import hashlib
import sys

import click

from fuzz.mutants.by_rule import RULES_FILE, load, mutant_at, place
from fuzz.mutants.hunt import Hunter
from fuzz.mutants.rewrite import Site, sites
from tenferro_ref.files import write_atomically

#: Modules, and how many mutants of each are in the catalogue.
SHARES = {
    "tenferro_ref.compiler.dot_dimension_sorter": 2,
    "tenferro_ref.compiler.transpose_folding": 6,
    "tenferro_ref.compiler.dot_decomposer": 16,
    "tenferro_ref.compiler.layout_simplifier": 6,
    "tenferro_ref.compiler.dead_code_elimination": 2,
    "tenferro_ref.program.program": 4,
    "tenferro_ref.runtime.segment": 20,
    "tenferro_ref.runtime.run": 18,
    "tenferro_ref.runtime.fusion": 8,
    "tenferro_ref.runtime.kernels.elementwise": 10,
    "tenferro_ref.runtime.kernels.structural": 12,
    "tenferro_ref.runtime.kernels.reduction": 10,
    "tenferro_ref.runtime.kernels.indexing": 16,
    "tenferro_ref.runtime.kernels.contraction": 5,
    "tenferro_ref.runtime.semiring.algebra": 5,
    "tenferro_ref.runtime.semiring.backend": 7,
    "tenferro_ref.runtime.semiring.core": 4,
    "tenferro_ref.extensions.einsum": 10,
    "tenferro_ref.stablehlo.emit.elementwise": 5,
    "tenferro_ref.stablehlo.emit.structural": 12,
    "tenferro_ref.stablehlo.emit.indexing": 12,
    "tenferro_ref.stablehlo.emit.contraction": 6,
    "tenferro_ref.stablehlo.emit.policy": 3,
    "tenferro_ref.stablehlo.writer": 8,
    "tenferro_ref.stablehlo.loader.rows": 6,
    "tenferro_ref.stablehlo.loader.indexing": 5,
    "tenferro_ref.stablehlo.loader.reductions": 3,
    "tenferro_ref.pjrt.transfer": 22,
    "tenferro_ref.tensor": 6,
    "oracle.compare": 9,
    "oracle.ulp": 4,
    "oracle.judge": 0,
    "oracle.enclosure.sums": 10,
    "oracle.enclosure.arithmetic": 134,
    "oracle.enclosure.value": 37,
    "oracle.enclosure.stacked": 0,
}
#: Places of which every site is taken, whatever the share of their modules.
WHOLE = frozenset({"stacks", "verdicts"})
#: Functions that no value and no verdict depends on: they make words (the first line), or decide on errors alone.
LEFT_OUT = frozenset({
    "_width", "_sample", "_words", "_kind", "_bit_kind", "interval_words", "show_spec",
    "check_inputs", "verify", "dtype_of_element",
})  # fmt: skip
#: What a reason says where the change only made Python raise.
_RAISING = ("raises", "in the native executor:", "in the native compiler:", "in the rules:")


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
    if "'" not in text and "\n" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@click.command()
@click.option("--programs", default=2000, show_default=True, help="A mutant that lives through this many survives.")
@click.option("--seed", default=1, show_default=True)
@click.option("--module", "modules", multiple=True, help="Only these modules; entries of the others stay.")
@click.option("--check", is_flag=True, help="Only modules with an entry that the source no longer has.")
def main(programs: int, seed: int, modules: tuple[str, ...], check: bool) -> None:
    """Write rules.toml anew."""
    known = dict(load())
    if check:
        modules = tuple(m for m in SHARES if not {s for s in known if s.module == m} <= set(sites(m)))
    for module in modules or (() if check else SHARES):
        chosen: dict[Site, str] = {}
        with Hunter(seed, max_programs=programs) as hunter:
            for site in sorted(sites(module), key=lambda s: (s not in known, place(s) not in WHOLE, _order(s))):
                enough = sum(not why and place(s) not in WHOLE for s, why in chosen.items()) >= SHARES[module]
                if enough and site not in known and place(site) not in WHOLE:
                    break
                if site.function.rpartition(".")[2] in LEFT_OUT:
                    continue
                if known.get(site):
                    chosen[site] = known[site]
                    continue
                kill = hunter.hunt(mutant_at(site))
                unread = not kill.changed and place(site) == "loader"
                loud = any(f" {words} " in f" {kill.reason} " for words in _RAISING) or kill.reason.startswith(
                    "WorkerDied"
                )
                if loud or not kill.entered or unread:
                    continue
                if kill.killed:
                    chosen[site] = ""
                verdict = f"killed by {kill.executor} after {kill.programs}" if kill.killed else "SURVIVES"
                counts = f"{kill.entered} entered, {kill.changed} changed, {kill.seconds:.1f} s"
                print(f"{site.name}: {verdict} ({counts}): {site.before} -> {site.after}", file=sys.stderr, flush=True)
        others = {site: why for site, why in dict(load.__wrapped__()).items() if site.module != module}
        _write({**others, **chosen})


def _write(entries: dict[Site, str]) -> None:
    ordered = sorted(entries.items(), key=lambda e: (e[0].module, e[0].function, e[0].rule, e[0].before, e[0].nth))
    head = "# Written by `python -m fuzz.mutants.select`; the explanations of equivalent mutants are by hand.\n\n"
    write_atomically(RULES_FILE, head + "\n".join(_entry(site, why) for site, why in ordered))


if __name__ == "__main__":
    main()
