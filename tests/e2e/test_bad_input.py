"""Bad input of every kind, through the real command line: one typed line, the right status, nothing half-written."""

from __future__ import annotations

import copy
import importlib
import io
import json
import os
import py_compile
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.command import ROOT, assert_one_line_error, in_this_process, tenferro_ref
from tests.fake_plugin.build import build_plain_library, write_text_library

pytestmark = pytest.mark.once


PROGRAM: dict[str, Any] = {
    "tenferro_program": 1,
    "kind": "graph",
    "inputs": [{"slot": 0, "dtype": "F64", "shape": [2, 3]}],
    "instructions": [{"op": "Transpose", "attrs": {"perm": [1, 0]}, "inputs": [0], "outputs": [1]}],
    "outputs": [1],
}


def broken(change: Callable[[dict[str, Any]], None]) -> str:
    program = copy.deepcopy(PROGRAM)
    change(program)
    return json.dumps(program)


def set_at(*path: Any, value: Any) -> str:
    def change(program: Any) -> None:
        for key in path[:-1]:
            program = program[key]
        program[path[-1]] = value

    return broken(change)


#: One of each way in which reading fails; `tests/program/test_program_malformed.py` has all of them.
BAD_PROGRAMS = {
    "empty": ("", "neither program JSON"),
    "stablehlo": ("module {\n}\n", "no function @main"),
    "unknown op": (
        set_at("instructions", 0, "op", value="Transmogrify"),
        "$.instructions[0].op: Invalid value 'Transmogrify'",
    ),
    "unknown key": (set_at("colour", value="red"), "colour"),
    "wrong type": (set_at("inputs", 0, "shape", value="2x3"), "$.inputs[0].shape"),
    "cyclic slot": (set_at("instructions", 0, "inputs", value=[1]), "read before it is written"),
    "huge rank": (set_at("inputs", 0, "shape", value=[1] * 100), "100 axes"),
    "deep nesting": ('{"tenferro_program": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    "bad text form": ("graph (%0: F64[2]) -> (%1) slots 2 {\n  %1 = Negate %0\n}\n", ":2"),
}


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_a_bad_program_is_one_line_and_status_2(tmp_path: Path, name: str) -> None:
    content, words = BAD_PROGRAMS[name]
    path = tmp_path / "program.json"
    path.write_text(content)
    run = tenferro_ref if name == "stablehlo" else in_this_process
    assert_one_line_error(run("show", path), 2, "program.json", words)


@pytest.mark.parametrize("command", ["check", "emit", "exec", "show"])
def test_every_reading_command_words_it_alike(tmp_path: Path, command: str) -> None:
    path = tmp_path / "program.json"
    path.write_text(set_at("instructions", 0, "op", value="Transmogrify"))
    extra = ["--inputs", tmp_path / "in.npz", "--out", tmp_path / "out.npz"] if command == "exec" else []
    assert_one_line_error(tenferro_ref(command, path, *extra), 2, "program.json", "Transmogrify")
    assert sorted(os.listdir(tmp_path)) == ["program.json"]


@pytest.mark.parametrize("make", ["absent", "directory", "binary", "bytecode"])
def test_an_unreadable_file(tmp_path: Path, make: str) -> None:
    path = tmp_path / "program.json"
    if make == "directory":
        path.mkdir()
    elif make != "absent":
        path.write_bytes(b"ML\xefR\x00\xff" if make == "bytecode" else bytes(range(128, 256)))
    assert_one_line_error(in_this_process("show", path), 2, "program.json")


def _pickled(path: Path) -> None:
    np.savez(path, in0=np.array([{"a": 1}], dtype=object))


def _truncated(path: Path) -> None:
    np.savez(path, in0=np.zeros((2, 3)))
    path.write_bytes(path.read_bytes()[:-40])


def _garbage(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 not a zip")


def _wrong_name(path: Path) -> None:
    np.savez(path, x=np.zeros((2, 3)))


def _wrong_shape(path: Path) -> None:
    np.savez(path, in0=np.zeros((3, 2)))


def _wrong_dtype(path: Path) -> None:
    np.savez(path, in0=np.zeros((2, 3), np.float32))


def _foreign_dtype(path: Path) -> None:
    np.savez(path, in0=np.zeros((2, 3), "longdouble"))


def _not_npy(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("in0.npy", "hello")


def _lying_header(path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": True, "shape": (1 << 20, 1 << 40)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("in0.npy", buffer.getvalue())


def _absent(path: Path) -> None:
    pass


@pytest.mark.parametrize(
    "make",
    [_pickled, _truncated, _garbage, _wrong_name, _wrong_shape, _wrong_dtype, _foreign_dtype, _not_npy, _lying_header,
     _absent],
)  # fmt: skip
def test_bad_inputs_are_one_line_and_status_2(tmp_path: Path, make: Callable[[Path], None]) -> None:
    program, inputs, out = tmp_path / "program.json", tmp_path / "in.npz", tmp_path / "out.npz"
    program.write_text(json.dumps(PROGRAM))
    make(inputs)
    assert_one_line_error(in_this_process("exec", program, "--inputs", inputs, "--out", out), 2)
    assert not out.exists()


def test_a_program_too_big_for_this_machine(tmp_path: Path) -> None:
    program, inputs, out = tmp_path / "program.json", tmp_path / "in.npz", tmp_path / "out.npz"
    content = copy.deepcopy(PROGRAM)
    content["inputs"][0]["shape"] = []
    content["instructions"] = [
        {"op": "BroadcastInDim", "attrs": {"shape": [2**20, 2**20, 2**10], "dims": []}, "inputs": [0], "outputs": [1]},
        {"op": "Negate", "inputs": [1], "outputs": [2]},
    ]
    content["outputs"] = [2]
    program.write_text(json.dumps(content))
    np.savez(inputs, in0=np.zeros(()))
    run = tenferro_ref("exec", program, "--inputs", inputs, "--out", out)
    assert run.status in (2, 3)
    assert len(run.err.splitlines()) == 1
    assert not out.exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """/dev/full refuses every byte; a folder that is a file cannot hold a report."""
    program, inputs = tmp_path / "program.json", tmp_path / "in.npz"
    program.write_text(json.dumps(PROGRAM))
    np.savez(inputs, in0=np.zeros((2, 3)))
    run = tenferro_ref("exec", program, "--inputs", inputs, "--out", "/dev/full/out.npz")
    assert_one_line_error(run, 3, "/dev/full")
    for unbuffered in ("", "1"):  # the disk refuses the flush at exit, or the first line
        with open("/dev/full", "wb") as full:
            command = [sys.executable, "-m", "tenferro_ref", "show", program]
            env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=ROOT, check=False, env=env)
        assert done.returncode == 3
        assert done.stderr.decode().splitlines() == ["error: output: No space left on device"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check"], "FILES"),
        (["no-such-command"], "no-such-command"),
        (["check", "p.json", "--executors", "quantum"], "quantum"),
        (["check", "p.json", "--executors", "native-without:Magic"], "Magic"),
        (["check", "p.json", "--executors", "pjrt:xla-cpu-pjrt@warp"], "warp"),
        (["check", "p.json", "--executors", ","], "names nothing"),
        (["check", "p.json", "--bisect", "--executors", "native,jax"], "--executors native,jax has none"),
        (["check", "p.json", "--bisect", "--invalid"], "do not go together"),
        (["check", "p.json", "--executors", "pjrt:"], "'pjrt:' names nothing behind the colon"),
        (["check", "p.json", "--executors", "pjrt:@parity"], "names nothing behind the colon"),
        (["check", "p.json", "--executors", "external:"], "names nothing behind the colon"),
        (["compile", "p.json", "--plugin", "", "--out", "x"], "the name of a plugin is empty"),
        (["conform", ""], "the name of a plugin is empty"),
        (["show", "p.json", "--after", "Magic"], "Magic"),
        (["exec", "p.json"], "--inputs"),
        (["exec", "p.json", "--inputs", "x", "--out", "y", "--passes", "Magic"], "Magic"),
        (["parity", "--seed", "-1"], "--seed"),
        (["parity", "--programs", "many"], "many"),
        (["fuzz", "run", "s.sqlite", "--programs", str(2**53)], "not below 2**53"),
        (["fuzz", "run", "s.sqlite", "--minutes", "nan"], "nan is not a finite number"),
        (["report", "s.sqlite", "--min-decided", "nan"], "nan is not a finite number"),
        (["conform", "xla081", "--seconds", "inf"], "inf is not a finite number"),
        (["mutants", "run", "no-such-mutant"], "no-such-mutant"),
        (["report", "no-such-store"], "no-such-store"),
    ],
)
def test_bad_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(PROGRAM))
    assert_one_line_error(in_this_process(*arguments), 2, words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json"]


def test_a_compiled_file_that_a_full_disk_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cut_short.py").write_text("ANSWER = 42\n" * 100)
    compiled = Path(py_compile.compile(str(tmp_path / "cut_short.py"), doraise=True))
    compiled.write_bytes(compiled.read_bytes()[:100])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(EntryPoint, "load", lambda _: importlib.import_module("cut_short"))
    assert_one_line_error(in_this_process("plugins"), 3, "cut short", "__pycache__")


def test_parity_into_a_file_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")
    assert_one_line_error(tenferro_ref("parity", "--out", tmp_path / "report"), 2, "not a folder")
    assert (tmp_path / "report").read_text() == "mine"


@pytest.mark.parametrize("state", ["unset", "empty", "absent", "not a library", "no symbol", "null table"])
def test_each_way_of_having_no_plugin(tmp_path: Path, state: str, fake_library: Path) -> None:
    """`check --executors pjrt` says each in one line, exit status 3."""
    program = tmp_path / "p.json"
    program.write_text(json.dumps(PROGRAM))
    env: dict[str, str | None] = {"FAKE_PJRT_MODE": "null_table"}
    env["TENFERRO_PJRT_PLUGIN"] = {
        "unset": lambda: None,
        "empty": lambda: "",
        "absent": lambda: str(tmp_path / "absent.so"),
        "not a library": lambda: str(write_text_library(tmp_path)),
        "no symbol": lambda: str(build_plain_library(tmp_path)),
        "null table": lambda: str(fake_library),
    }[state]()
    words = {
        "unset": "TENFERRO_PJRT_PLUGIN is unset",
        "empty": "TENFERRO_PJRT_PLUGIN is empty",
        "absent": "absent.so",
        "not a library": "cannot load",
        "no symbol": "GetPjrtApi",
        "null table": "GetPjrtApi",
    }[state]
    assert_one_line_error(tenferro_ref("check", program, "--executors", "pjrt", env=env), 3, words)
