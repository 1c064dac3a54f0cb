"""`mutants`: the seeded faults, and whether the harness sees them."""

from __future__ import annotations

import click

from fuzz.mutants import CATALOGUE, find, hunt
from tenferro_ref.cli.common import draw_seed, json_option, print_json, progress_bar, seed_option, split


@click.group()
def mutants() -> None:
    """Seeded faults: does the harness find each of them?"""


@mutants.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the seeded faults."""
    for mutant in CATALOGUE:
        if as_json:
            print_json({"name": mutant.name, "place": mutant.place, "about": mutant.about})
        else:
            click.echo(f"{mutant.name:24} {mutant.place:9} {mutant.about}")


@mutants.command()
@click.argument("names", nargs=-1)
@click.option("--executors", default="all", show_default=True, metavar="LIST")
@click.option("--programs", type=click.IntRange(1), default=2000, show_default=True, help="Give up after this many.")
@seed_option
@json_option
def run(names: tuple[str, ...], executors: str, programs: int, seed: int | None, as_json: bool) -> int:
    """Switch each fault on alone and hunt it; exit status 1 if one survives."""
    chosen = draw_seed(seed)
    targets = [find(name) for name in names] or list(CATALOGUE)
    if not as_json:
        click.echo(f"seed {chosen}")
    survived = 0
    with progress_bar("hunting mutants", len(targets)) as update:
        for done, mutant in enumerate(targets):
            update(done, len(targets), f"hunting {mutant.name}")
            kill = hunt(mutant, split(executors), seed=chosen, max_programs=programs)
            survived += not kill.killed
            size = len(kill.case.program.instructions) if kill.case else None
            if as_json:
                print_json(
                    {
                        "name": mutant.name, "killed": kill.killed, "programs": kill.programs, "by": kill.executor,
                        "instructions": size, "reason": kill.reason,
                    }
                )  # fmt: skip
            elif kill.killed:
                click.echo(
                    f"killed    {mutant.name}: after {kill.programs} programs by {kill.executor}, "
                    f"{kill.original_instructions} -> {size} instructions"
                )
            else:
                click.echo(f"SURVIVED  {mutant.name}: {kill.programs} programs saw nothing")
    if not as_json:
        click.echo(f"{len(targets) - survived} of {len(targets)} killed; again with --seed {chosen}")
    return 1 if survived else 0
