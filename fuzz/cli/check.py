"""`check`: programs through every executor, a verdict a line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click
from rich.text import Text

from fuzz.checking import Checked, Judged
from fuzz.checking import check as check_subject
from fuzz.checking.bundles import write_bundles
from fuzz.checking.subject import Inputs, Subject, file_subjects, invalid_subject
from fuzz.records import encode
from oracle.attribution import instructions
from oracle.enclosure import MODELS
from oracle.peers import DEFAULT_LANE, DERIVATIVES, OTHERS, Executor, Peer, PjrtExecutor, Pool
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
from tenferro_ref.errors import UsageError
from tenferro_ref.escape import line

#: Lanes of each plugin that `all` takes: a disagreement that is in one and not in another says already what makes it.
LANES = ("parity", "defaults", "no-algsimp", "level0")


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--inputs", metavar="NPZ", help="Inputs in0, in1, ...; drawn from the seed if left out.")
@click.option("--executors", default="all", metavar="LIST", help="Names separated by commas; default: all.")
@click.option(
    "--invalid", is_flag=True, help="FILES break a rule: who raises another error than the rules say disagrees."
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
    help="Reduce each StableHLO module that an executor gets wrong, and write it as a bundle there.",
)
@transform_option
@seed_option
@json_option
def check(
    files: tuple[str, ...], inputs: str | None, executors: str, invalid: bool, bisect: bool, written: bool,
    model: str | None, bundle: str | None, transform: str | None, seed: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Run each of FILES on every executor and print a verdict a line.

    A StableHLO module is given unchanged to those that take StableHLO. A file may also be a JAX function,
    `package.module:function`, with --inputs.
    """
    if invalid and transform is not None:
        raise UsageError(detail="--invalid and --transform do not go together: what breaks a rule has no derivative")
    source = Inputs(draw_seed(seed), inputs)
    pool = Pool()
    disagreement = False
    try:
        subjects = [
            [invalid_subject(file, source)]
            if invalid
            else file_subjects(file, source, pool.reader, transform=transform, written=written)
            for file in files
        ]
        others = OTHERS if transform is None else (*OTHERS, *DERIVATIVES)
        selection = pool.select(split(executors), lanes=LANES, others=others)
        if not as_json and inputs is None:
            click.echo(f"seed {source.seed}")
        for file, several in zip(files, subjects, strict=True):
            if not as_json:
                _introduce(file, several[0])
            answers = [check_subject(s, selection.executors, pool, model) for s in several]
            first = next((one for one in answers if one.disagrees), None)
            if bundle is not None and first is not None:
                for folder in write_bundles(Path(bundle), first, selection.executors, pool):
                    click.echo(f"bundle: {line(str(folder))}", err=True)
            checked = Checked.together(answers)
            disagreement = disagreement or checked.disagrees
            rows = [_row(file, judged) for judged in checked.answers]
            if bisect and not invalid:
                named = {executor.name: executor for executor in selection.executors}
                for row, judged in zip(rows, checked.answers, strict=True):
                    row |= _bisected(named.get(judged.answer.executor), judged, checked.subject)
            rows += [_missing(file, info.name, info.reason) for info in selection.missing]
            if as_json:
                for row in rows:
                    print_json(row)
            else:
                _print_table(rows)
                for said in ("first_bad", "bisected"):
                    for words in dict.fromkeys(str(row[said]) for row in rows if said in row):
                        say(words)
    finally:
        pool.close()
    return 1 if disagreement else 0


def _introduce(file: str, subject: Subject) -> None:
    """What the table does not show of a subject."""
    if subject.unread is not None:
        say(f"{file}: no enclosures, since it is not read as a program: {subject.unread}")
    if subject.case is not None and subject.case.program.symbols:
        say(f"{file}: inputs {subject.reads}")


def _row(file: str, judged: Judged) -> dict[str, object]:
    answer, comparison = judged.answer, judged.answer.comparison
    proved = judged.evidence in ("proved", "bits")
    decided, tight = (
        count / comparison.elements if comparison.elements and proved else None
        for count in (comparison.decided, comparison.tight)
    )
    row: dict[str, object] = {
        "program": file,
        "executor": answer.executor,
        "verdict": answer.verdict.value,
        "evidence": judged.evidence,
        "worst_ulp": comparison.worst_ulp,
        "decided": decided,
        "tight": tight,
        "beyond_ieee": judged.beyond,
        "seconds": round(sum(answer.seconds.values()), 6),
        "reason": "; ".join(filter(None, (answer.reason, judged.written))),
        "comparison": {k: v for k, v in dataclasses.asdict(comparison).items() if k != "widths"},
        "phases": answer.seconds,
        "error": answer.error,
    }
    if judged.written:
        row["written"] = judged.written
    if judged.builds:
        lane = Peer.parse(answer.executor).lane or DEFAULT_LANE
        row |= {"first_bad": f"lane {lane}: {judged.first_bad}", "builds": encode(judged.builds)}
    return row


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


def _missing(file: str, name: str, reason: str) -> dict[str, object]:
    return {
        "program": file, "executor": name, "verdict": "missing", "evidence": "none", "worst_ulp": None, "decided": None, "tight": None,
        "beyond_ieee": {}, "seconds": 0.0, "reason": reason,
    }  # fmt: skip


_STYLE = {"pass": "green", "mismatch": "bold red", "crash": "bold red", "timeout": "bold red", "error": "bold red"}


def _print_table(rows: list[dict[str, object]]) -> None:
    headers = ("program", "executor", "verdict", "worst ULP", "decided", "tight", "beyond IEEE", "ms", "reason")
    cells = [_cells(row) for row in rows]
    shown = [i for i, name in enumerate(headers) if name != "beyond IEEE" or any(line[i] for line in cells)]
    print_table([headers[i] for i in shown], [[line[i] for i in shown] for line in cells])


def _cells(row: dict[str, object]) -> list[str | Text]:
    verdict, ulp, decided, seconds = str(row["verdict"]), row["worst_ulp"], row["decided"], row["seconds"]
    beyond = row["beyond_ieee"]
    basis = f"{decided:.0%}" if isinstance(decided, float) else ""
    return [
        " ".join(str(row["program"]).split()),
        " ".join(str(row["executor"]).split()),
        Text(verdict, _STYLE.get(verdict, "yellow")),
        f"{ulp:.3g}" if isinstance(ulp, float) else "",
        "interpreter" if row["evidence"] == "interpreter" else basis,
        f"{row['tight']:.0%}" if isinstance(row["tight"], float) else "",
        ", ".join(f"{name} {count}" for name, count in beyond.items()) if isinstance(beyond, dict) else "",
        f"{seconds * 1e3:.1f}" if isinstance(seconds, float) else "",
        " ".join(str(row["reason"]).split()),
    ]
