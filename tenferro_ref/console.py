"""Shared by all commands: reading program files, parsing lists, tables, progress bars, finding the writer of reports."""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tenferro_ref.autodiff import jvp, vjp
from tenferro_ref.errors import FormatError, Internal, MissingDependency, UsageError, WorkerDied
from tenferro_ref.escape import line
from tenferro_ref.files import decode, read_bytes
from tenferro_ref.isolation import Worker, WorkerSpec, wire
from tenferro_ref.program import Program, loads, parse
from tenferro_ref.tensor import Array

seed_option = click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed; drawn and printed if left out.")
generate_option = click.option(
    "--generate",
    multiple=True,
    metavar="KEY=VALUE",
    help="What programs may contain: instructions=5-20, elements=64, rank=2, ops=Exp,Log, dtypes=F32,C64, symbolic=0, "
    "linalg=50, policies=0 (percentages), rare=Reverse:I32 (`python -m tools.opcodes`), invalid=1/8 (share of invalid "
    "programs). Repeatable.",
)
allow_option = click.option(
    "--allow-commands", is_flag=True, help="Run the commands and load the libraries that the file names."
)
transform_option = click.option(
    "--transform", type=click.Choice(["jvp", "vjp"]), help="Take the program's derivative instead: its inputs, then a tangent of "
    "each input (jvp) or a cotangent of each output (vjp)."
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")


def draw_seed(seed: int | None) -> int:
    """The seed of the command line, or a fresh one."""
    return secrets.randbits(32) if seed is None else seed


def read_source(path: str) -> tuple[Program, tuple[Array, ...]]:
    """A program file in JSON or text form, or a StableHLO module, told apart by content.

    The arrays are the values of the program's last inputs: those that a StableHLO module brings along.

    Raises
    ------
    FormatError
        Unreadable, or none of these forms.
    TenferroError
        What `tenferro_ref.stablehlo.load` raises.
    """
    data, path = (sys.stdin.buffer.read(), "standard input") if path == "-" else (read_bytes(path), path)
    if data.startswith(b"ML\xefR"):
        return _read_stablehlo(data, path)
    text = decode(data, path)
    start = re.sub(r"\A(\s|//.*)*", "", text)
    if start.startswith("{"):
        return loads(text, path), ()
    if start.startswith(("module", "func.func", "builtin.module", "#", "!", '"')):
        return _read_stablehlo(data, path)
    if start.startswith(("graph", "exec")):
        return parse(text, path), ()
    raise FormatError(
        where=path, detail="neither program JSON nor the text form (graph ... / exec ...) nor StableHLO (module ...)"
    )


def _read_stablehlo(data: bytes, path: str) -> tuple[Program, tuple[Array, ...]]:
    """Read in a worker: some hostile modules end the process that parses them."""
    with Worker("StableHLO reader", WorkerSpec("tenferro_ref.isolation.engines.reader")) as worker:
        worker.facts  # noqa: B018 - starts it, so that what is missing is not blamed on the file
        try:
            answer = worker.request({"source": data, "where": path})
        except WorkerDied as died:
            raise FormatError(where=path, detail=f"MLIR's parser does not survive this module ({died.how})") from None
    if "refusal" in answer:
        error = wire.unpack_error(answer["refusal"])
        error.place = answer["place"]
        raise error
    program = loads(answer["program"], path)
    if program.kind != "graph":
        raise Internal(detail="the reader gave no graph program")
    return program, tuple(map(wire.unpack, answer["bound"]))


def read_program(path: str) -> Program:
    """The program of a file; errors as `read_source`."""
    return read_source(path)[0]


def read_graph(path: str) -> tuple[Program, tuple[Array, ...]]:
    """A program file as a graph; the metadata of an exec program is checked, then dropped. Else as `read_source`."""
    program, bound = read_source(path)
    return program.to_graph(), bound


def transformed(program: Program, transform: str | None, arguments: int) -> Program:
    """The derivative that `--transform` asks for, in the first `arguments` inputs; the program itself if it asks for none.

    Raises
    ------
    UnsupportedAdRule
        An op has no rule for it.
    """
    if transform is None:
        return program
    active = range(arguments)
    return (jvp(program, active) if transform == "jvp" else vjp(program, active)).program


def parse_passes(text: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """`all`, `none`, or names separated by commas."""
    if text == "all":
        return default
    return () if text == "none" else split(text)


def split(text: str) -> tuple[str, ...]:
    """Names separated by commas.

    Raises
    ------
    UsageError
        There is none.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(detail=f"{text!r} names nothing")
    return names


def say(words: str) -> None:
    """One line on standard output, whatever somebody put into the words."""
    click.echo(line(words))


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    click.echo(json.dumps(value))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """A table on standard output: folded to a terminal's width, whole lines elsewhere. Words are shown as they are."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=10_000)
    table = Table(box=None, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(line(cell)) if isinstance(cell, str) else cell for cell in row))
    console.print(table)


def out_directory(path: str) -> Path:
    """A folder for results, made if it is not there.

    Raises
    ------
    UsageError
        It is there and no folder.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise UsageError(detail=f"{path}: not a folder")
    return folder


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Any]:
    """A bar on standard error if that is a terminal; yields `update(done, total, note)`."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(title, total=total)

        def update(done: int, whole: int | None, note: str) -> None:
            progress.update(task, completed=done, total=whole, description=note)

        yield update


def report_writer(name: str = "site") -> Callable[..., Path]:
    """The function that writes a report into a folder and gives its page: of a campaign, or of what else has the name.

    It is found by an entry point: the packages that run campaigns do not import the one that shows them.

    Raises
    ------
    MissingDependency
        No installed package brings one.
    """
    for entry in entry_points(group="tenferro_ref.report", name=name):
        writer: Callable[..., Path] = entry.load()
        return writer
    raise MissingDependency(name="a writer of reports", remedy="install this package again: pip install .")
