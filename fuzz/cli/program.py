"""`fuzz program`: one program of a campaign, made again from the seed."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from fuzz.campaign.guide import is_open
from fuzz.campaign.programs import cases_of, drawn
from fuzz.generate.batches import check_settings
from fuzz.generate.settings import config_of
from fuzz.store import Plan, Store
from oracle.case import Case
from tenferro_ref.console import CountRange, generate_option, say
from tenferro_ref.errors import UsageError
from tenferro_ref.files import write_atomically
from tenferro_ref.program import print_program
from tenferro_ref.tensor import save_npz


@click.command()
@click.argument("number", type=CountRange(0))
@click.option("--seed", type=CountRange(0, 2**32 - 1), required=True, help="Of the campaign.")
@click.option("--input-sets", type=CountRange(1, 256), default=1, show_default=True, help="As the campaign had.")
@click.option("--store", metavar="STORE", help="Of a guided campaign: its programs follow from what it has shown.")
@click.option("--out", metavar="DIR", help="Write program.json, or module.mlir too, and inputs.npz there, for `check`.")
@generate_option
def program(
    number: int, seed: int, input_sets: int, store: str | None, out: str | None, generate: tuple[str, ...]
) -> None:
    """Print program NUMBER of a campaign with its inputs, made again from the seed.

    Reports name such numbers. They hold for one version of this program.
    """
    check_settings(generate)
    plan = Plan(seed, batch=Plan(seed).batch * input_sets, input_sets=input_sets, generate=generate)
    guided = config_of(generate).guided
    cases = _of_guided(plan, number // plan.batch, store) if guided else cases_of(plan, number // plan.batch)
    if number % plan.batch >= len(cases):
        raise UsageError(detail=f"{number}: batch {number // plan.batch} has {len(cases)} programs only")
    case = cases[number % plan.batch]
    if case.refusal is not None:
        say(f"// invalid: {case.refusal.fault}; it must raise {case.refusal}")
    module = None if case.source is None else case.source.text
    click.echo(module or print_program(case.program), nl=False)
    for index, array in enumerate(case.arguments):
        say(f"// in{index} = {np.array2string(array, separator=', ', floatmode='unique')}")
    if out is not None:
        write_atomically(Path(out) / "program.json", case.program_json)
        if module is not None:
            write_atomically(Path(out) / "module.mlir", module)
        save_npz(Path(out) / "inputs.npz", {f"in{i}": array for i, array in enumerate(case.arguments)})


def _of_guided(plan: Plan, batch: int, path: str | None) -> list[Case]:
    """The cases of a batch that follows from what the campaign has shown."""
    if path is None:
        raise UsageError(
            detail="generate guided=1: the programs follow from what the campaign has shown; name its --store"
        )
    with Store(path, readonly=True) as store:
        for stream in store.streams():
            told = stream.plan
            alike = (told.seed, told.input_sets, told.generate) == (plan.seed, plan.input_sets, plan.generate)
            if alike and batch % told.shards == told.shard and is_open(store, stream, batch):
                return drawn(store, stream, batch)
    raise UsageError(
        detail=f"{path}: no campaign of seed {plan.seed} and these settings has come as far as batch {batch}"
    )
