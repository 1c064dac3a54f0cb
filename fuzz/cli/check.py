"""`check`: programs through every executor, a verdict a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from fuzz.checking import Checked, Judged
from fuzz.checking import check as check_subject
from fuzz.checking.rows import Row, missing_row, notes, row, table
from fuzz.checking.subject import Inputs, Subject, file_subjects, invalid_subject
from oracle.attribution import instructions
from oracle.enclosure import MODELS
from oracle.peers import DERIVATIVES, OTHERS, Executor, Peer, PjrtExecutor, Pool
from tenferro_ref.console import (
    draw_seed,
    json_option,
    print_json,
    print_table,
    say,
    seed_option,
    split,
    transform_option,
)
from tenferro_ref.errors import TenferroError, UsageError
from tenferro_ref.escape import line
from tenferro_ref.tensor import save_npz

#: Lanes of each plugin that `all` takes: a disagreement that is in one and not in another says already what makes it.
LANES = ("parity", "defaults", "no-algsimp", "level0")


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--inputs", metavar="NPZ", help="Inputs in0, in1, ...; drawn from the seed if left out.")
@click.option("--save-inputs", metavar="DIR", help="Write the inputs that were drawn there, a file for --inputs each.")
@click.option("--executors", default="all", metavar="LIST", help="Names separated by commas; default: all.")
@click.option(
    "--invalid",
    is_flag=True,
    help="FILES (JSON) are invalid programs: an executor agrees if it raises the error that the rules call for.",
)
@click.option(
    "--bisect",
    is_flag=True,
    help="Where a plugin disagrees, compute its instructions by our kernels, one at a time: which of them "
    "makes the disagreement go away?",
)
@click.option(
    "--written",
    is_flag=True,
    help="Give executors the program that a StableHLO module is read as, not the module itself.",
)
@click.option(
    "--model", type=click.Choice(sorted(MODELS)), help="Hold other people's executors to this arithmetic model; with `ieee` "
    "one that flushes, contracts or rewrites is wrong. Default: each has its own."
)  # fmt: skip
@click.option(
    "--bundle",
    metavar="DIR",
    help="Reduce each of FILES that an executor gets wrong, and write it as a bundle there.",
)
@transform_option
@seed_option
@json_option
def check(
    files: tuple[str, ...], inputs: str | None, save_inputs: str | None, executors: str, invalid: bool, bisect: bool,
    written: bool, model: str | None, bundle: str | None, transform: str | None, seed: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Run each of FILES on every executor and print a verdict a line.

    A StableHLO module is given unchanged to those that take StableHLO. A file may also be a JAX function,
    `package.module:function`, with --inputs.
    """
    names = split(executors)
    _check_options(invalid, transform, inputs, save_inputs, bundle)
    if bisect:
        _check_bisection(invalid, names)
    source = Inputs(draw_seed(seed), inputs)
    if not as_json and inputs is None:
        click.echo(f"seed {source.seed}")
    drawn = None if inputs else source.seed
    pool = Pool()
    disagreement = False
    try:
        subjects = []
        for file in files:
            with _about(file):
                subjects.append(
                    [invalid_subject(file, source)]
                    if invalid
                    else file_subjects(file, source, pool.reader, transform=transform, written=written)
                )
        if save_inputs is not None:
            for path in _save(Path(save_inputs), subjects):
                click.echo(f"inputs: {line(path)}", err=True)
        others = OTHERS if transform is None else (*OTHERS, *DERIVATIVES)
        selection = pool.select(names, lanes=LANES, others=others)
        for file, several in zip(files, subjects, strict=True):
            if not as_json:
                _introduce(file, several[0])
            with _about(file):
                answers = [check_subject(s, selection.executors, pool, model) for s in several]
            first = next((one for one in answers if one.disagrees), None)
            if bundle is not None and first is not None:
                from fuzz.checking.bundles import write_bundles  # which imports all that reduces

                for folder in write_bundles(Path(bundle), first, selection.executors, pool):
                    click.echo(f"bundle: {line(str(folder))}", err=True)
            checked = Checked.together(answers)
            disagreement = disagreement or checked.disagrees
            rows = [row(file, judged, drawn) for judged in checked.answers]
            if bisect:
                named = {executor.name: executor for executor in selection.executors}
                for found, judged in zip(rows, checked.answers, strict=True):
                    found |= _bisected(named.get(judged.answer.executor), judged, checked.subject)
            rows += [missing_row(file, info.name, info.reason, drawn) for info in selection.missing]
            _print(rows, as_json)
    finally:
        pool.close()
    return 1 if disagreement else 0


def _check_options(
    invalid: bool, transform: str | None, inputs: str | None, save_inputs: str | None, bundle: str | None
) -> None:
    """Refuse options that do not go together, before anything runs."""
    if invalid and transform is not None:
        raise UsageError(detail="--invalid and --transform do not go together: what breaks a rule has no derivative")
    if save_inputs is not None and inputs is not None:
        raise UsageError(detail="--save-inputs writes what is drawn, and with --inputs nothing is")
    if bundle is not None and Path(bundle).exists() and not Path(bundle).is_dir():
        raise UsageError(detail=f"--bundle {bundle}: not a folder")


def _check_bisection(invalid: bool, names: Sequence[str]) -> None:
    """Refuse `--bisect` where nothing can be bisected."""
    if invalid:
        raise UsageError(detail="--invalid and --bisect do not go together: an invalid program gives no wrong numbers")
    if not any(name == "all" or Peer.parse(name).family == "pjrt" for name in names):
        raise UsageError(
            detail=f"--bisect bisects programs of PJRT plugins, of which --executors {','.join(names)} has none"
        )


@contextmanager
def _about(file: str) -> Iterator[None]:
    """Errors of the block that name neither a place nor the file get it for their place."""
    try:
        yield
    except TenferroError as error:
        if not error.place and file not in str(error):
            error.place = file
        raise


def _introduce(file: str, subject: Subject) -> None:
    """What the table does not show of a subject."""
    if subject.unread is not None:
        refused = (
            "no enclosures, since it is not read as a program" if subject.source else "no executor can be given it"
        )
        say(f"{file}: {refused}: {subject.unread}")
    if subject.case is not None and subject.case.program.symbols:
        say(f"{file}: inputs {subject.reads}")


def _print(rows: Sequence[Row], as_json: bool) -> None:
    if as_json:
        for found in rows:
            print_json(found)
    else:
        print_table(*table(rows))
        for words in notes(rows):
            say(words)


def _save(folder: Path, subjects: Sequence[Sequence[Subject]]) -> Iterator[str]:
    """Write the inputs that were drawn, with names that follow those of the programs; gives the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, several in enumerate(subjects):
        for subject in several:
            if subject.drawn is None:
                continue
            name = (Path(subject.name).stem or "program") + (f"-{number}" if len(subjects) > 1 else "")
            path = folder / (f"{name}-{subject.inputs}.npz" if len(several) > 1 else f"{name}.npz")
            save_npz(path, {f"in{i}": array for i, array in enumerate(subject.drawn)})
            yield str(path)


def _bisected(executor: Executor | None, judged: Judged, subject: Subject) -> dict[str, object]:
    """Which instructions of a plugin that disagrees are at fault, by what our kernels make of them inside its program."""
    case = subject.case
    if case is None or not isinstance(executor, PjrtExecutor) or not judged.answer.verdict.is_disagreement:
        return {}
    numbers, ops = instructions(executor, case), case.program.instructions
    named = ", ".join(f"{n} ({ops[n].op.name})" for n in numbers) or "none alone"
    return {
        "instructions": list(numbers),
        "bisected": f"{executor.name}: right when our kernel computes instruction {named}",
    }
