"""`golden`: programs with inputs, outputs and enclosures as files that another test suite can read; `--check` reads them back.

A set is a folder: `index.json`, and a folder a case with `program.json`, `program.txt`, `inputs.npz` (`in0`, ...) and, if
the program has a result, `outputs.npz` (`out0`, ...) and `enclosure.npz` (`lo0`, `hi0`, `nan0`, `pos_zero0`,
`neg_zero0`, ...). What the index says of an expected error is its kind and facts. docs/reference/programs.md describes it all.
"""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from fuzz.cli.golden_cases import curated
from fuzz.generate.batches import generate
from fuzz.records import encode, from_json
from oracle.case import Case
from oracle.compare import compare, compare_bits
from oracle.enclosure import MODELS, enclose
from oracle.enclosure.files import load_enclosures, save_enclosures
from oracle.peers import Execution, NativeExecutor, attempt
from tenferro_ref import __version__
from tenferro_ref.console import CountRange, draw_seed, json_option, print_json, progress_bar, say, seed_option
from tenferro_ref.errors import FormatError, OutputError, TenferroError, UnsupportedOp, UsageError
from tenferro_ref.files import read_text, write_atomically
from tenferro_ref.program import load, parse, print_program
from tenferro_ref.program.json_form import dumps
from tenferro_ref.tensor import load_npz, save_npz

VERSION = 1
DEFAULT_PROGRAMS = 100
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One case of a set.

    Attributes
    ----------
    title
        What a hand-written case shows; the ops of a generated one.
    fingerprint
        Of program and input bits.
    error
        The typed error that the program ends with; None if it has a result.
    no_enclosure
        Why there is no `enclosure.npz`; "" if there is one.
    """

    folder: str
    title: str
    fingerprint: str
    error: dict[str, Any] | None
    no_enclosure: str


@dataclass(frozen=True, slots=True)
class Index:
    """`index.json`."""

    tenferro_golden: int
    seed: int
    programs: int
    model: str
    versions: tuple[tuple[str, str], ...]
    cases: tuple[Entry, ...]


@click.command()
@click.option("--out", metavar="DIR", help="Where the set goes; one that is there already is replaced as a whole.")
@click.option("--programs", type=CountRange(0), default=DEFAULT_PROGRAMS, show_default=True, help="Generated programs.")
@click.option(
    "--model", type=click.Choice(sorted(MODELS)), default="numpy", show_default=True, help="Of the enclosures."
)
@click.option("--check", "checked", metavar="DIR", help="Run a set natively and compare.")
@seed_option
@json_option
def golden(out: str | None, programs: int, model: str, checked: str | None, seed: int | None, as_json: bool) -> int:
    """Write golden vectors, or check that they still hold."""
    if (out is None) == (checked is None):
        raise UsageError(detail="golden needs either --out DIR or --check DIR")
    if checked is not None:
        return _check(Path(checked), as_json)
    chosen = draw_seed(seed)
    index = write_golden(Path(str(out)), chosen, programs, model)
    words = {"seed": chosen, "cases": len(index.cases), "out": str(out)}
    if as_json:
        print_json(words)
    else:
        say(f"{words['cases']} cases in {out} (seed {chosen})")
    return 0


# --- writing ----------------------------------------------------------------------------------------------------------


def write_golden(folder: Path, seed: int, programs: int, model: str = "numpy") -> Index:
    """Write a set; the same arguments give the same bytes on one machine. Nothing half-written is ever seen at `folder`.

    Raises
    ------
    UsageError
        `folder` is there and holds something else.
    OutputError
        Something cannot be written.
    """
    _check_replaceable(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp") as scratch:
            new = Path(scratch) / "set"
            new.mkdir()
            total = sum(1 for _ in curated()) + programs
            with progress_bar("golden vectors", total) as update:
                entries = []
                for number, (title, case) in enumerate(_cases(seed, programs)):
                    entries.append(_write_case(new, number, title, case, model))
                    update(number + 1, total, "golden vectors")
            index = Index(VERSION, seed, programs, model, _versions(), tuple(entries))
            write_atomically(new / "index.json", json.dumps(encode(index), indent=1, allow_nan=False) + "\n")
            if folder.exists():
                os.replace(folder, Path(scratch) / "old")
            os.replace(new, folder)
    except OSError as error:
        raise OutputError(path=str(folder), detail=error.strerror or str(error)) from None
    return index


def _check_replaceable(folder: Path) -> None:
    """Only an empty folder, or a golden set and nothing beside it, is replaced."""
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise UsageError(detail=f"{folder}: is there and no folder; give another --out")
    present = {path.name for path in folder.iterdir()}
    if not present:
        return
    try:
        index = read_index(folder)
    except FormatError:
        raise UsageError(detail=f"{folder}: is there and holds no golden set; give another --out") from None
    strangers = sorted(present - {"index.json"} - {entry.folder for entry in index.cases})
    if strangers:
        detail = f"holds {strangers[0]}, which is no part of a golden set; give another --out"
        raise UsageError(detail=f"{folder}: {detail}")


def _versions() -> tuple[tuple[str, str], ...]:
    return (("tenferro-ref", __version__), ("NumPy", np.__version__), ("Python", platform.python_version()))


def _cases(seed: int, programs: int) -> Iterator[tuple[str, Case]]:
    """The hand-written cases, then generated ones."""
    yield from curated()
    for batch in range(-(-programs // _BATCH)):
        for case in generate(seed, batch, min(_BATCH, programs - batch * _BATCH)):
            ops = dict.fromkeys(ins.op.name for ins in case.program.instructions)
            yield ", ".join(ops), case


def _write_case(root: Path, number: int, title: str, case: Case, model: str) -> Entry:
    name = f"{number:05d}-{case.program.name}" if case.program.name else f"{number:05d}"
    folder = root / re.sub(r"[^0-9A-Za-z.-]+", "-", name)
    write_atomically(folder / "program.json", dumps(case.program))
    write_atomically(folder / "program.txt", print_program(case.program))
    save_npz(folder / "inputs.npz", {f"in{i}": a for i, a in enumerate(case.inputs)})
    result = attempt(NativeExecutor(), case)
    error, reason = None, ""
    if isinstance(result, TenferroError):
        error, reason = result.to_json(), "the program ends with an error"
    else:
        save_npz(folder / "outputs.npz", {f"out{i}": a for i, a in enumerate(result.outputs)})
        try:
            enclosed = enclose(case.program, case.inputs, MODELS[model])
        except UnsupportedOp as unsupported:
            reason = str(unsupported)
        else:
            save_enclosures(folder / "enclosure.npz", enclosed)
    return Entry(folder.name, title, case.fingerprint, error, reason)


# --- reading and checking ---------------------------------------------------------------------------------------------


def read_index(folder: Path) -> Index:
    """The index of a set.

    Raises
    ------
    FormatError
        It is missing, or not what a set of this version has.
    """
    path = folder / "index.json"
    index = from_json(Index, read_text(path), str(path))
    if index.tenferro_golden != VERSION:
        raise FormatError(where=str(path), detail=f"a set of version {index.tenferro_golden}; this reads {VERSION}")
    for entry in index.cases:
        if Path(entry.folder).name != entry.folder or entry.folder in ("", ".", ".."):
            raise FormatError(where=str(path), detail=f"{entry.folder!r} is no folder of the set")
    return index


def read_case(folder: Path) -> Case:
    """Program and inputs of one case, the two forms of the program agreeing.

    Raises
    ------
    TenferroError
        A file is missing or malformed.
    """
    program = load(folder / "program.json")
    if parse(read_text(folder / "program.txt"), str(folder / "program.txt")) != program:
        raise FormatError(where=str(folder), detail="program.txt is another program than program.json")
    graph = program.to_graph()
    return Case.of(graph, load_npz(folder / "inputs.npz", "in", graph.input_types))


def check_case(folder: Path, entry: Entry) -> str:
    """What is wrong with a case natively; "" if nothing.

    Results must have the recorded bits, or be in the recorded enclosures.

    Raises
    ------
    TenferroError
        A file of the case is missing or malformed.
    """
    case = read_case(folder)
    if case.fingerprint != entry.fingerprint:
        raise FormatError(where=str(folder), detail="program and inputs are not those of the index")
    result = attempt(NativeExecutor(), case)
    if entry.error is not None:
        got = result.to_json() if isinstance(result, TenferroError) else {"kind": "a result"}
        differs = [key for key in ("kind", "op", "axis") if got.get(key) != entry.error.get(key)]
        return ", ".join(f"{key} {got.get(key)}, recorded {entry.error.get(key)}" for key in differs)
    types = case.program.slot_types
    outputs = load_npz(folder / "outputs.npz", "out", [types[slot] for slot in case.program.output_slots])
    if not isinstance(result, Execution):
        return f"{result.kind}: {result}"
    if entry.no_enclosure:
        comparison = compare_bits(outputs, result.outputs)
    else:
        enclosures = load_enclosures(folder / "enclosure.npz", outputs)
        recorded = compare(enclosures, None, outputs, outputs)
        if recorded.outside:
            raise FormatError(where=str(folder), detail="the recorded outputs are not in the recorded enclosures")
        comparison = compare(enclosures, None, result.outputs, outputs)
    if not comparison.outside:
        return ""
    place = f"output {comparison.worst_output}{list(comparison.worst_index or ())}"
    return f"{place}: {comparison.observed} is not in {comparison.expected} ({comparison.outside} of {comparison.elements})"


def _check(folder: Path, as_json: bool) -> int:
    index = read_index(folder)
    failed = 0
    with progress_bar("checking golden vectors", len(index.cases)) as update:
        for number, entry in enumerate(index.cases):
            wrong = check_case(folder / entry.folder, entry)
            failed += bool(wrong)
            if as_json:
                print_json({"case": entry.folder, "title": entry.title, "holds": not wrong, "reason": wrong})
            elif wrong:
                say(f"{entry.folder}: {wrong}")
            update(number, len(index.cases), "checking golden vectors")
    if not as_json:
        click.echo(f"{len(index.cases)} cases: " + (f"{failed} do not hold" if failed else "all hold"))
    return 1 if failed else 0
