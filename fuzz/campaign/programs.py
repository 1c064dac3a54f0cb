"""Which programs a plan stands for: they follow from the seed, batch by batch."""

from __future__ import annotations

from functools import partial

from fuzz.campaign.guide import USUAL, draw_of, mixed
from fuzz.generate.faults import faults
from fuzz.generate.faults.batches import with_refusals
from fuzz.generate.input_sets import batch_of
from fuzz.generate.modules import with_modules
from fuzz.generate.settings import config_of
from fuzz.store import Plan, Store, Stream, digest
from oracle.case import Case
from tenferro_ref.errors import UsageError


def cases_of(plan: Plan, number: int, mix: str = USUAL) -> list[Case]:
    """The cases of one whole batch in a mix, whatever the limit on programs."""
    config = mixed(config_of(plan.generate), mix)
    valid = partial(batch_of, plan.seed, number, plan.batch, plan.input_sets, config)
    cases = with_refusals(plan.seed, number, plan.batch, config, valid)
    # a module is read for its inputs, so that it has one set
    return cases if plan.input_sets > 1 else with_modules(plan.seed, number, config, cases)


def faults_of(plan: Plan) -> dict[str, list[str]]:
    """The faults that invalid programs may have, by the kind of error that they raise."""
    config, names = config_of(plan.generate), dict[str, list[str]]()
    for fault in faults(config, late=True) if config.invalid else ():
        names.setdefault(fault.kind, []).append(fault.name)
    return names


def unlike_its_seed(store: Store, stream: Stream, limit: int) -> list[int]:
    """Those of the first `limit` sealed batches whose programs are not what this version generates."""
    rows = store.database.rows(
        tuple[int, int, str],
        "SELECT number, programs, digest FROM batch WHERE stream = ? AND digest <> '' ORDER BY number LIMIT ?",
        (stream.id, limit),
    )
    return [number for number, programs, mark in rows if digest(drawn(store, stream, number)[:programs]) != mark]


def drawn(store: Store, stream: Stream, number: int) -> list[Case]:
    """The cases of one whole batch of a stream, in the mix that follows from what it has shown, if it is guided."""
    return cases_of(stream.plan, number, draw_of(store, stream, number).mix)


def check_generator(store: Store, stream: Stream) -> None:
    """Make the first sealed batch again.

    Raises
    ------
    UsageError
        This version generates other programs than the campaign began with.
    """
    if unlike_its_seed(store, stream, 1):
        detail = (
            f"{store.path}: this version generates other programs from seed {stream.plan.seed}; begin a new campaign"
        )
        raise UsageError(detail=detail)
