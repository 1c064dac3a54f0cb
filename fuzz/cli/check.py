"""`check`: programs through every executor, a verdict a line."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import click
from rich.text import Text

from fuzz.generate.values.inputs import random_inputs
from fuzz.records import encode
from oracle.attribution import builds
from oracle.case import Case, Derivation, Refusal
from oracle.judge import Reference, judge
from oracle.peers import DERIVATIVES, OTHERS, Executor, NativeExecutor, PjrtExecutor, Pool
from oracle.verdict import Answer, first_bad
from tenferro_ref.console import (
    draw_seed,
    json_option,
    print_json,
    print_table,
    read_graph,
    say,
    seed_option,
    split,
    transform_option,
    transformed,
)
from tenferro_ref.errors import FormatError, InvalidCompiledGraph, TenferroError, UsageError, ValidationError
from tenferro_ref.files import read_text
from tenferro_ref.program import GraphProgram, loads
from tenferro_ref.tensor import Array, load_npz, type_of

#: Lanes of each plugin that `all` takes: a disagreement that is in one and not in another says already what makes it.
LANES = ("parity", "defaults", "no-algsimp", "level0")


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--inputs", metavar="NPZ", help="Inputs in0, in1, ...; drawn from the seed if left out.")
@click.option("--executors", default="all", metavar="LIST", help="Names separated by commas; default: all.")
@click.option(
    "--invalid", is_flag=True, help="FILES break a rule: who raises another error than the rules say disagrees."
)
@transform_option
@seed_option
@json_option
def check(
    files: tuple[str, ...], inputs: str | None, executors: str, invalid: bool, transform: str | None, seed: int | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Run each of FILES on every executor and print a verdict a line."""
    chosen = draw_seed(seed)
    if invalid and transform is not None:
        raise UsageError(detail="--invalid and --transform do not go together: what breaks a rule has no derivative")
    cases = [
        _invalid_case(file, inputs, chosen) if invalid else _case(file, inputs, chosen, transform) for file in files
    ]
    pool = Pool()
    disagreement = False
    try:
        others = OTHERS if transform is None else (*OTHERS, *DERIVATIVES)
        selection = pool.select(split(executors), lanes=LANES, others=others)
        if not as_json and inputs is None:
            click.echo(f"seed {chosen}")
        for file, case in zip(files, cases, strict=True):
            if not as_json and case.program.symbols:
                say(f"{file}: inputs {', '.join(str(type_of(a)) for a in case.inputs)}")
            reference = Reference(case, NativeExecutor())
            answers = [judge(executor, reference) for executor in selection.executors]
            disagreement = disagreement or any(_disagrees(a, reference) for a in answers)
            first = _first_bad(selection.executors, answers, case, pool)
            rows = [_row(file, answer) | first.get(answer.executor, {}) for answer in answers]
            rows += [_missing(file, info.name, info.reason) for info in selection.missing]
            if as_json:
                for row in rows:
                    print_json(row)
            else:
                _print_table(rows)
                for line in dict.fromkeys(str(row["first_bad"]) for row in rows if "first_bad" in row):
                    say(line)
    finally:
        pool.close()
    return 1 if disagreement else 0


def _case(file: str, inputs: str | None, seed: int, transform: str | None) -> Case:
    """A case of a file; the arrays that a StableHLO module brings along follow the arguments, seeds of a derivative them."""
    program, bound = read_graph(file)
    arguments = len(program.input_slots) - len(bound)
    # where arrays are bound, only the arguments are differentiated: nothing else is known of such a derivative
    derivation = Derivation(program, (transform,)) if transform and not bound else None
    program = transformed(program, transform, arguments)
    if inputs is None:
        drawn = random_inputs(program, seed)
        arrays = [*drawn[:arguments], *bound, *drawn[arguments + len(bound) :]]
    else:
        arrays = _given(program, file, inputs, arguments, bound)
    return Case.of(program, arrays, derivation=derivation)


def _given(
    program: GraphProgram, file: str, inputs: str, arguments: int = 0, bound: tuple[Array, ...] = ()
) -> list[Array]:
    """The arrays of a file, with those that the program brings along behind its arguments."""
    arrays = load_npz(inputs, "in")
    arrays = [*arrays[:arguments], *bound, *arrays[arguments:]]
    try:
        program.check_inputs([type_of(a) for a in arrays])
    except InvalidCompiledGraph as error:
        raise FormatError(where=inputs, detail=f"does not fit {file}: {error.detail}") from None
    except TenferroError as error:
        raise FormatError(where=inputs, detail=f"does not fit {file}: {error}") from None
    return arrays


def _invalid_case(file: str, inputs: str | None, seed: int) -> Case:
    """A case of a program that has no text form and no StableHLO, since it breaks a rule; what it declares must be sound."""
    program = loads(read_text(file), file, infer=False)
    if program.kind != "graph":
        raise UsageError(detail=f"{file}: only graph programs can be invalid")
    try:
        program.slot_types  # noqa: B018 - infers
    except TenferroError as error:
        if error.place.startswith("$.inputs"):
            raise
        facts = error.facts()
        due = Refusal(f"{error.place}: {error.text()}", error.kind, facts.get("op"), facts.get("axis"))
        return Case.of(program, random_inputs(program, seed) if inputs is None else _given(program, file, inputs), due)
    raise UsageError(detail=f"{file}: breaks no rule; without --invalid its results are compared")


def _disagrees(answer: Answer, reference: Reference) -> bool:
    """Whether this answer makes the exit status 1: the reference's own typed refusal of values is what others are held to."""
    refused = isinstance(reference.execution, ValidationError) and answer.executor == reference.native.name
    return answer.verdict.is_disagreement and not refused


def _row(file: str, answer: Answer) -> dict[str, object]:
    comparison = answer.comparison
    decided = comparison.decided / comparison.elements if comparison.elements else None
    return {
        "program": file,
        "executor": answer.executor,
        "verdict": answer.verdict.value,
        "worst_ulp": comparison.worst_ulp,
        "decided": decided,
        "seconds": round(sum(answer.seconds.values()), 6),
        "reason": answer.reason,
        "comparison": {k: v for k, v in dataclasses.asdict(comparison).items() if k != "widths"},
        "phases": answer.seconds,
        "error": answer.error,
    }


def _first_bad(
    executors: Sequence[Executor], answers: Sequence[Answer], case: Case, pool: Pool
) -> dict[str, dict[str, object]]:
    """For each plugin that disagrees: which build of it began, in its lane. Each lane is asked once."""
    by_lane: dict[tuple[str, str], dict[str, object]] = {}
    found = {}
    for executor, answer in zip(executors, answers, strict=True):
        if isinstance(executor, PjrtExecutor) and answer.verdict.is_disagreement:
            key = (executor.plugin.platform or executor.name, executor.lane)
            if key not in by_lane:
                asked = builds(executor, case, pool)
                bad = f"lane {executor.lane}: first bad build {first_bad(asked) or 'none'}"
                said = f"{bad}: {', '.join(map(str, asked))}"
                by_lane[key] = {"first_bad": said, "builds": encode(asked)}
            found[executor.name] = by_lane[key]
    return found


def _missing(file: str, name: str, reason: str) -> dict[str, object]:
    return {
        "program": file, "executor": name, "verdict": "missing", "worst_ulp": None, "decided": None, "seconds": 0.0,
        "reason": reason,
    }  # fmt: skip


_STYLE = {"pass": "green", "mismatch": "bold red", "crash": "bold red", "timeout": "bold red", "error": "bold red"}


def _print_table(rows: list[dict[str, object]]) -> None:
    headers = ("program", "executor", "verdict", "worst ULP", "decided", "ms", "reason")
    print_table(headers, [_cells(row) for row in rows])


def _cells(row: dict[str, object]) -> list[str | Text]:
    verdict, ulp, decided, seconds = str(row["verdict"]), row["worst_ulp"], row["decided"], row["seconds"]
    return [
        " ".join(str(row["program"]).split()),
        " ".join(str(row["executor"]).split()),
        Text(verdict, _STYLE.get(verdict, "yellow")),
        f"{ulp:.3g}" if isinstance(ulp, float) else "",
        f"{decided:.0%}" if isinstance(decided, float) else "",
        f"{seconds * 1e3:.1f}" if isinstance(seconds, float) else "",
        " ".join(str(row["reason"]).split()),
    ]
