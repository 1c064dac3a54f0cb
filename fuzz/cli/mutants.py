"""`mutants`: the seeded faults, and whether the harness sees them."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from fuzz.mutants import Hunter, Kill, Mutant, catalogue, drawn, find
from fuzz.mutants.laws import checkout
from fuzz.mutants.looks import BY_LAWS
from tenferro_ref.children import own_environment
from tenferro_ref.console import (
    CountRange,
    RealRange,
    draw_seed,
    json_option,
    print_json,
    progress_bar,
    say,
    seed_option,
    split,
)
from tenferro_ref.errors import UsageError, WorkerDied
from tenferro_ref.files import destination, write_atomically

_place_option = click.option("--place", "places", multiple=True, metavar="PLACE", help="Only faults of this part.")


@click.group()
def mutants() -> None:
    """Seeded faults: does the harness find each of them?"""


@mutants.command("list")
@_place_option
@json_option
def list_(places: tuple[str, ...], as_json: bool) -> None:
    """List the seeded faults; those that change no meaning with the reason."""
    for mutant in _chosen((), places):
        if as_json:
            print_json(_listing(mutant))
            continue
        notes = {"equivalent": mutant.equivalent, "unsettled": mutant.unsettled, "needs a checkout": _lacking(mutant)}
        said = "".join(f"  ({note}: {why})" for note, why in notes.items() if why)
        click.echo(f"{mutant.name:24} {mutant.place:9} {mutant.about}{said}")


@mutants.command()
@click.argument("names", nargs=-1)
@_place_option
@click.option("--sample", type=CountRange(1), default=200, show_default=True, metavar="N",
              help="So many, drawn by the seed, where none is named.")  # fmt: skip
@click.option("--executors", default="", metavar="LIST",
              help="Judge with these executors, and no law; chosen by the faults' places if left out.")  # fmt: skip
@click.option("--programs", type=CountRange(1), default=500, show_default=True,
              help="Programs to look at before the laws are asked.")  # fmt: skip
@click.option("--reduce", "reduce_seconds", type=RealRange(0), default=0.0, metavar="SECONDS",
              help="Shrink what each was killed by for at most so long.")  # fmt: skip
@click.option("--out", metavar="FILE", help="Write what became of them there, for `report --mutants`.")
@click.option("--jobs", type=CountRange(1), default=1, show_default=True, help="Processes that hunt at once.")
@seed_option
@json_option
def run(
    names: tuple[str, ...], places: tuple[str, ...], sample: int, executors: str, programs: int,
    reduce_seconds: float, jobs: int, out: str | None, seed: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Switch faults on, each alone, and hunt them; exit status 1 if one survives.

    Each is hunted with programs, then with the laws, then with the unit tests of its module, until one of them sees it. Changes that are listed as equivalent or unsettled are left out unless they are named. Faults of the oracle itself are hunted with
    the laws in tests/laws, which only a source checkout has.
    """
    chosen = draw_seed(seed)
    targets = _chosen(names, places) if names else drawn(chosen, sample, _known(places))
    lacking = [m for m in targets if _lacking(m) and not executors]
    if lacking and (names or len(lacking) == len(targets)):
        raise UsageError(detail=f"{lacking[0].name} is hunted with {_lacking(lacking[0])}: run it from a checkout")
    targets = [m for m in targets if m not in lacking]
    who = split(executors) if executors else ()
    if not as_json:
        click.echo(f"seed {chosen}")
        if lacking:
            click.echo(f"{len(lacking)} faults of the oracle are left out: they are hunted with {_lacking(lacking[0])}")
    survived = 0
    kept: list[dict[str, Any]] = []
    _keep(out, kept)
    if jobs == 1:
        records = _hunt(targets, who, chosen, programs, reduce_seconds)
    else:
        options = ["--seed", chosen, "--programs", programs, "--reduce", reduce_seconds]
        options += ["--executors", executors] if executors else []
        records = _share(targets, min(jobs, len(targets)), [str(o) for o in options])
    with progress_bar("hunting mutants", len(targets)) as update:
        for done, record in enumerate(records, 1):
            update(done, len(targets), "hunting mutants")
            survived += not record["killed"]
            kept.append(record)
            _keep(out, kept)
            if as_json:
                print_json(record)
            else:
                say(_words(record))
    if not as_json:
        click.echo(f"{len(targets) - survived} of {len(targets)} killed; again with --seed {chosen}")
    return 1 if survived else 0


def _lacking(mutant: Mutant) -> str:
    """What hunting it needs that is not here, "" for nothing."""
    return "the laws in tests/laws" if mutant.place in BY_LAWS and checkout() is None else ""


def _keep(out: str | None, records: Sequence[dict[str, Any]]) -> None:
    """Write what there is so far: a hunt takes hours, and a file that cannot be written is known at once."""
    if out:
        write_atomically(destination(out), "".join(json.dumps(record) + "\n" for record in records))


def _listing(mutant: Mutant) -> dict[str, Any]:
    return {
        "name": mutant.name, "place": mutant.place, "about": mutant.about,
        "equivalent": mutant.equivalent, "unsettled": mutant.unsettled,
    }  # fmt: skip


def _known(places: Sequence[str]) -> Sequence[str]:
    """The places, if there are such."""
    known = dict.fromkeys(m.place for m in catalogue())
    unknown = sorted({*places} - {*known})
    if unknown:
        raise UsageError(detail=f"no seeded fault is in {unknown[0]!r}; they are in {', '.join(known)}")
    return places


def _chosen(names: Sequence[str], places: Sequence[str]) -> list[Mutant]:
    """The named faults, or all, those that are not hunted too."""
    found = [find(name) for name in names] or list(catalogue())
    wanted = _known(places)
    found = [m for m in found if not wanted or m.place in wanted]
    if not found:
        raise UsageError(detail="none of the named faults is in the named places")
    return found


def _hunt(
    targets: Sequence[Mutant], executors: Sequence[str], seed: int, programs: int, reduce_seconds: float
) -> Iterator[dict[str, Any]]:
    with Hunter(seed, executors, max_programs=programs) as hunter:
        for mutant in targets:
            yield _record(hunter.hunt(mutant, reduce_seconds=reduce_seconds), reduced=reduce_seconds > 0)


def _record(kill: Kill, *, reduced: bool) -> dict[str, Any]:
    return {
        "name": kill.mutant.name,
        "place": kill.mutant.place,
        "equivalent": bool(kill.mutant.equivalent),
        "killed": kill.killed,
        "programs": kill.programs,
        "entered": kill.entered,
        "changed": kill.changed,
        "by": kill.executor,
        "reason": kill.reason,
        "original_instructions": kill.original_instructions,
        "instructions": len(kill.case.primal.instructions) if reduced and kill.case else None,
        "seconds": round(kill.seconds, 2),
    }


def _words(record: dict[str, Any]) -> str:
    if not record["killed"]:
        counts = f"{record['entered']} entered the changed code, {record['changed']} looked different"
        said = f"{record['programs']} programs saw nothing; {counts}" if record["programs"] else "no test fails"
        return f"SURVIVED  {record['name']}: {said}"
    if not record["programs"]:
        return f"killed    {record['name']}: by the {record['by']} {record['reason']}"
    size = record["instructions"]
    small = "" if size is None else f", {record['original_instructions']} -> {size} instructions"
    return f"killed    {record['name']}: after {record['programs']} programs by {record['by']}{small}"


def _share(targets: Sequence[Mutant], jobs: int, options: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Records of `jobs` processes of this same command, each with its part of the faults, as they come."""
    # by place, and dealt in turn: programs look alike for the faults of one place, and some places take longer
    dealt = sorted(targets, key=lambda m: m.place)
    command = [sys.executable, "-m", "tenferro_ref", "mutants", "run", "--json", *options]
    with selectors.DefaultSelector() as selector:
        children = [
            subprocess.Popen(
                [*command, *(m.name for m in dealt[i::jobs])], stdout=subprocess.PIPE, text=True, env=own_environment()
            )
            for i in range(jobs)
        ]
        try:
            for child in children:
                selector.register(child.stdout, selectors.EVENT_READ, child)  # type: ignore[arg-type]
            while selector.get_map():
                for key, _ in selector.select():
                    line = key.fileobj.readline()  # type: ignore[union-attr]
                    if line:
                        yield json.loads(line)
                    else:
                        selector.unregister(key.fileobj)
                        _ended(key.data)
        finally:
            for child in children:
                child.kill()
                child.wait()
                if child.stdout is not None:
                    child.stdout.close()


def _ended(child: subprocess.Popen[str]) -> None:
    """A process that ends otherwise than with a result has said why on standard error.

    Raises
    ------
    WorkerDied
        It has.
    """
    status = child.wait()
    if status not in (0, 1):
        raise WorkerDied(worker="of `mutants run`", how=f"exit status {status}", stderr_tail="")
