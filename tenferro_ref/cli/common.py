"""What the commands share: reading program files, parsing lists, progress on a terminal."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tenferro_ref.errors import FormatError, UsageError
from tenferro_ref.files import read_text
from tenferro_ref.program import ExecProgram, GraphProgram, loads, parse

seed_option = click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed; drawn and printed if left out.")
json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")


def draw_seed(seed: int | None) -> int:
    """The given seed or a fresh one."""
    return secrets.randbits(32) if seed is None else seed


def read_program(path: str) -> GraphProgram | ExecProgram:
    """A program file in JSON or text form, told apart by its content.

    Raises
    ------
    FormatError
        Unreadable, or neither form.
    """
    if path == "-":
        text, path = _standard_input(), "standard input"
    else:
        _refuse_stablehlo_bytecode(path)
        text = read_text(path)
    start = text.lstrip()
    if start.startswith("{"):
        return loads(text, path)
    if start.startswith(("graph", "exec", "//")):
        return parse(text, path)
    if start.startswith(("module", "#loc", "func.func")):
        raise FormatError(where=path, detail="StableHLO text: this version reads program JSON and the text form")
    raise FormatError(where=path, detail="neither program JSON nor the text form (graph ... / exec ...)")


def _refuse_stablehlo_bytecode(path: str) -> None:
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
    except (OSError, ValueError):
        return  # the text reader words it
    if magic == b"ML\xefR":
        raise FormatError(where=path, detail="StableHLO bytecode: this version reads program JSON and the text form")


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(where="standard input", detail="not text (not UTF-8)") from None


def read_graph(path: str) -> GraphProgram:
    """A program file as a graph; the metadata of an exec program is checked, then dropped."""
    program = read_program(path)
    return program.to_graph() if isinstance(program, ExecProgram) else program


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


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    click.echo(json.dumps(value))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output: folded to a terminal's width, whole lines elsewhere. Cells may hold rich markup."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=10_000)
    table = Table(box=None, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*row)
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
