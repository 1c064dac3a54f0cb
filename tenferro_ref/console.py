"""Shared by all commands: reading program files, parsing lists, tables, progress bars, finding the writer of reports."""

from __future__ import annotations

import json
import math
import re
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tenferro_ref.autodiff import jvp, vjp
from tenferro_ref.errors import FormatError, InvalidCompiledGraph, MissingDependency, TenferroError, UsageError
from tenferro_ref.escape import line
from tenferro_ref.files import decode, destination, read_bytes
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.program import Program, loads, parse
from tenferro_ref.tensor import Array, save_npz, type_of

#: Seconds between two lines of progress where there is no terminal.
LINE_SECONDS = 10.0


class RealRange(click.FloatRange):
    """As `click.FloatRange`, and finite: NaN is in every range of click's."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{number} is not a finite number.", param, ctx)
        return number


class CountRange(click.IntRange):
    """As `click.IntRange`, and what every reader of JSON holds exactly."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number >= 2**53:
            self.fail(f"{number} is not below 2**53.", param, ctx)
        return number


seed_option = click.option("--seed", type=CountRange(0, 2**32 - 1), help="Seed; drawn and printed if left out.")


def _once_each(_: click.Context, __: click.Parameter, settings: tuple[str, ...]) -> tuple[str, ...]:
    """The settings, whose keys are all different: a second one would silently take the place of the first."""
    keys = [setting.partition("=")[0] for setting in settings]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise click.BadParameter(f"{twice[0]} is given {keys.count(twice[0])} times; give a key once, as ops=Exp,Log")
    return settings


generate_option = click.option(
    "--generate",
    multiple=True,
    callback=_once_each,
    metavar="KEY=VALUE",
    help="What programs may contain: instructions=5-20, elements=64, rank=2, ops=Exp,Log, dtypes=F32,C64, symbolic=0, "
    "folded=20, linalg=50, policies=0 (percentages), rare=Reverse:I32 (`python -m tools.opcodes`), derivatives=1/4, invalid=1/8, modules=1/8 (shares of "
    "derivative and invalid programs, and of modules with further operations), guided=1 (campaigns: follow what disagrees). Repeatable, each key once.",
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


def read_content(path: str) -> tuple[str | bytes, str]:
    """A file's content, bytes only of MLIR's binary forms, and what to call it in errors; "-" is standard input."""
    data, where = (sys.stdin.buffer.read(), "standard input") if path == "-" else (read_bytes(path), path)
    return (data if data.startswith(_BINARY) else decode(data, where)), where


def is_stablehlo(content: str | bytes) -> bool:
    """Whether this is a StableHLO module, by how it starts."""
    return isinstance(content, bytes) or _start(content).startswith(_MODULE)


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
    content, where = read_content(path)
    if isinstance(content, bytes) or is_stablehlo(content):
        with Reader() as reader:
            loaded = reader.load(content, where)
        return loaded.program, loaded.bound
    return read_text_form(content, where), ()


def read_text_form(text: str, where: str) -> Program:
    """A program in JSON or text form.

    Raises
    ------
    FormatError
        It is neither, or not well formed.
    """
    start = _start(text)
    if start.startswith("{"):
        return loads(text, where)
    if start.startswith(("graph", "exec")):
        return parse(text, where)
    raise FormatError(
        where=where, detail="neither program JSON nor the text form (graph ... / exec ...) nor StableHLO (module ...)"
    )


_COMMENT = re.compile(r"\s*+(?://.*+)?")
_BINARY = b"ML\xefR"
_MODULE = ("module", "func.func", "builtin.module", "#", "!", '"')


def _start(text: str) -> str:
    """The text without the comments and blanks that it begins with."""
    at = 0  # one match for each comment: a single pattern for all of them keeps every step of the way in memory
    while (found := _COMMENT.match(text, at)) is not None and found.end() > at:
        at = found.end()
    return text[at:]


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


#: Digits of a size: any extent has fewer.
_DIGITS = 18


def parse_sizes(text: str) -> dict[str, int]:
    """Sizes by name, of `n=10,m=3`.

    Raises
    ------
    UsageError
        An entry is no name with a size.
    """
    sizes: dict[str, int] = {}
    for entry in split(text):
        name, _, size = entry.partition("=")
        if not name or not size:
            raise UsageError(detail=f"--sizes {text!r}: expected NAME=SIZE, separated by commas, as in n=10,m=3")
        if not size.isdecimal() or len(size) > _DIGITS:
            raise UsageError(detail=f"--sizes {text!r}: {name} is {size}, not a number from 0 to {10**_DIGITS - 1}")
        if name in sizes:
            raise UsageError(detail=f"--sizes {text!r}: {name} has two sizes")
        sizes[name] = int(size)
    return sizes


def at_sizes(program: Program, sizes: str | None, file: str) -> Program:
    """The program at the sizes that `--sizes` gives.

    Raises
    ------
    UsageError
        The size of a symbolic extent is not given.
    """
    made = program if sizes is None else program.at_sizes(parse_sizes(sizes))
    if not all(type_.is_static for type_ in made.input_types):
        names = ",".join(f"{name}=SIZE" for _, name in program.symbols) or "NAME=SIZE"
        raise UsageError(detail=f"{file}: the sizes of its extents are not known; give --sizes {names}")
    return made


def fitting(
    program: Program, file: str, inputs: str, arrays: list[Array], arguments: int = 0, bound: Sequence[Array] = ()
) -> list[Array]:
    """The arrays of a file, with those that the program brings along behind its arguments.

    Raises
    ------
    FormatError
        They are not what the program takes; the file of the arrays is named, and that of the program.
    """
    arrays = [*arrays[:arguments], *bound, *arrays[arguments:]]
    try:
        program.check_inputs([type_of(a) for a in arrays])
    except InvalidCompiledGraph as error:
        raise FormatError(where=inputs, detail=f"does not fit {file}: {error.detail}") from None
    except TenferroError as error:
        raise FormatError(where=inputs, detail=f"does not fit {file}: {error}") from None
    return arrays


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


def save_or_print(outputs: Sequence[Array], out: str | None) -> None:
    """Outputs as out0, out1, ... of the file `out`; without one on standard output."""
    if out is not None:
        save_npz(destination(out), {f"out{i}": array for i, array in enumerate(outputs)})
        return
    for i, array in enumerate(outputs):
        click.echo(f"out{i}: {type_of(array)}")
        click.echo(np.array2string(array, floatmode="unique"))


def say(words: str) -> None:
    """One line on standard output, whatever somebody put into the words."""
    click.echo(line(words))


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    click.echo(json.dumps(value))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """A closed pipe is for the caller to handle: rich would end the process with status 1."""
        raise


def plain_table(headers: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    """A table without lines. Words are shown as they are."""
    table = Table(box=None, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(line(cell)) if isinstance(cell, str) else cell for cell in row))
    return table


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """A table on standard output: folded to a terminal's width, whole lines elsewhere."""
    console = _Console()
    if not console.is_terminal:
        console = _Console(width=10_000)
    console.print(plain_table(headers, rows))
    sys.stdout.flush()  # a reader at the other end of a pipe sees each table when it is there


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Any]:
    """Progress on standard error; yields `update(done, total, note)`.

    A bar with rate and time left on a terminal; elsewhere a line every `LINE_SECONDS`.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    shown, ended = Pace(title, total), threading.Event()

    def lines() -> None:
        while not ended.wait(LINE_SECONDS):
            print(line(str(shown)), file=sys.stderr, flush=True)

    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(title, total=total, rate="")

        def update(done: int, whole: int | None, note: str) -> None:
            shown.update(done, whole, note)
            progress.update(task, completed=done, total=whole, description=note, rate=shown.rate)

        if not console.is_terminal:
            threading.Thread(target=lines, daemon=True).start()
        try:
            yield update
        finally:
            ended.set()


class Pace:
    """How far something is, and how fast it goes since its total was last another one; `str` says it in a line."""

    def __init__(self, note: str, total: int | None) -> None:
        self.note, self.total, self.done = note, total, 0
        self.began: tuple[int, float] | None = None

    def update(self, done: int, total: int | None, note: str) -> None:
        """Note the state now."""
        if self.began is None or total != self.total:
            self.began = done, time.monotonic()
        self.done, self.total, self.note = done, total, note

    @property
    def _each(self) -> float:
        """Seconds for one, 0 where that is not known yet."""
        first, began = self.began or (0, 0.0)
        return (time.monotonic() - began) / (self.done - first) if self.done > first else 0.0

    @property
    def rate(self) -> str:
        return f"{1 / self._each:.1f}/s" if self._each else ""

    def __str__(self) -> str:
        """For instance "checking programs: 64 of 200, 3.2/s, about 42 s left"."""
        words = [f"{self.done}" if self.total is None else f"{self.done} of {self.total}", self.rate]
        if self._each and self.total is not None:
            words.append(f"about {self._each * (self.total - self.done):.0f} s left")
        return f"{self.note}: {', '.join(filter(None, words))}"


class ReportSite(Protocol):
    """What writes the report of a record; `reports.parity.SITE` is one, for campaigns."""

    def check(self, folder: Path) -> None:
        """Fail if a report could not be written into `folder`."""

    def write(self, record: Any, folder: Path) -> Path:
        """Write the report; gives its page."""


def report_site(folder: Path, name: str = "site") -> ReportSite:
    """The writer of reports, after it has looked whether it can write into `folder`.

    It is found by an entry point: the packages that run campaigns do not import the one that shows them.

    Raises
    ------
    MissingDependency
        No installed package brings one.
    UsageError, OutputError
        The report could not be written there.
    """
    for entry in entry_points(group="tenferro_ref.report", name=name):
        site: ReportSite = entry.load()
        site.check(folder)
        return site
    raise MissingDependency(name="a writer of reports", remedy="install this package again: pip install .")
