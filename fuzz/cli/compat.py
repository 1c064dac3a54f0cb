"""`compat`: which versions of StableHLO ops can be written at, and which of them plugins take."""

from __future__ import annotations

import dataclasses

import click

from fuzz.compat import Compatibility, Taken, compatibility
from oracle.peers import PjrtExecutor, Pool
from tenferro_ref.console import json_option, print_json, print_table, say, split
from tenferro_ref.errors import UsageError
from tenferro_ref.pjrt import discover


@click.command()
@click.option(
    "--executors",
    metavar="LIST",
    help="Plugins in lanes, as pjrt:xla081@fast; default: every CPU plugin in the lane fast.",
)
@json_option
def compat(executors: str | None, as_json: bool) -> int:
    """Say which versions of StableHLO each op can be written at, and which of them plugins take.

    A plugin must take every version that it declares, with the results that it has for the text: else the exit status is 1.
    """
    names = split(executors) if executors else [f"pjrt:{p.name}@fast" for p in discover() if p.platform in ("cpu", "")]
    pool = Pool()
    try:
        chosen = [pool.make(name) for name in names]
        plugins = [executor for executor in chosen if isinstance(executor, PjrtExecutor)]
        if len(plugins) < len(chosen):
            raise UsageError(detail="compat asks plugins: pjrt:PATH_OR_PACKAGE[@LANE]")
        found = compatibility(plugins)
    finally:
        pool.close()
    if as_json:
        print_json(dataclasses.asdict(found) | {"holds": found.holds})
    else:
        _print(found)
    return 0 if found.holds else 1


def _print(found: Compatibility) -> None:
    by_version: dict[str, list[str]] = {}
    for op, version in found.oldest.items():
        by_version.setdefault(version or "no form", []).append(op)
    print_table(("written from", "ops"), [[version, ", ".join(names)] for version, names in by_version.items()])
    print_table(
        ("plugin", "declares", "takes all of", "not all of"),
        [[name, _range([t for t in several if t.declared]), _range([t for t in several if not t.failures]),
          ", ".join(t.version for t in several if t.failures) or "-"] for name, several in found.plugins.items()],
    )  # fmt: skip
    for name, several in found.plugins.items():
        for taken in several:
            for op, why in taken.failures.items():
                say(f"{name}: {taken.version}: {op}: {why}")


def _range(several: list[Taken]) -> str:
    return f"{several[0].version} to {several[-1].version}" if several else "-"
