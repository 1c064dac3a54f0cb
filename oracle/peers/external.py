"""A command under test: `COMMAND PROGRAM.json INPUTS.npz OUTPUTS.npz` (FORMATS 3).

Exit status 0 with the outputs written, or 3 with one JSON line that says the typed refusal; anything else is a crash.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar

from oracle.case import Case
from oracle.peers.base import Execution, Executor
from oracle.peers.errors import EngineFault
from oracle.peers.peer import Peer
from tenferro_ref import children, keeper
from tenferro_ref.errors import (
    FormatError,
    LoweringError,
    MissingDependency,
    OutputError,
    TenferroError,
    UsageError,
    WorkerDied,
)
from tenferro_ref.escape import is_identifier
from tenferro_ref.isolation import wire
from tenferro_ref.ops import TensorType
from tenferro_ref.program import dumps
from tenferro_ref.tensor import load_npz, save_npz, type_of

REFUSED = 3
#: Bytes at the end of standard error that are read: a refusal is looked for in them, and fewer are quoted.
_STDERR_READ, _STDERR_TAIL = 1 << 16, 4000
#: Bytes of outputs, on the disk, past which a command is ended.
_OUTPUT_BYTES = 4 << 30
#: Seconds between two looks at a command that runs.
_POLL = 0.05


@dataclass(eq=False)
class ForeignRefusal(LoweringError):
    """A refusal of a kind that is none of ours, or that lacks facts that ours has; known by its own `kind`."""

    op: str
    name: str
    message: str
    axis: int | None
    template: ClassVar[str] = "{message}"

    @property
    def kind(self) -> str:
        return self.name


@dataclass(frozen=True)
class ExternalExecutor(Executor):
    """A command; one process a program, ended after `request_seconds`. Held to the model of the native executor."""

    command: str
    request_seconds: float = 60.0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(Peer("external", build=self.command)))

    @property
    def arguments(self) -> list[str]:
        """The command's words, the first resolved to a file.

        Raises
        ------
        UsageError
            No word, or an unfinished quotation.
        MissingDependency
            No such program.
        """
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise UsageError(detail=f"executor {self.name!r}: {error}") from None
        if not words:
            raise UsageError(detail=f"executor {self.name!r}: no command")
        program = shutil.which(words[0])
        if program is None:
            raise MissingDependency(name=words[0], remedy="no such program, or not executable")
        return [program, *words[1:]]

    def open(self) -> None:
        self.arguments  # noqa: B018 - says what is missing

    def facts(self) -> Iterator[tuple[str, str]]:
        file = Path(self.arguments[0])
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise MissingDependency(name=str(file), remedy=error.strerror or str(error)) from None
        yield from (("command", self.command), ("file", str(file)), ("sha256", digest))

    def run(self, case: Case) -> Execution:
        try:
            return self._run(case)
        except OSError as error:
            raise OutputError(path=error.filename or "temporary files", detail=error.strerror or str(error)) from None

    def _run(self, case: Case) -> Execution:
        start = time.perf_counter()
        with keeper.folder("tenferro-") as folder:
            program, inputs, outputs = (f"{folder}/{name}" for name in ("program.json", "inputs.npz", "outputs.npz"))
            Path(program).write_text(dumps(case.program), "utf-8")
            save_npz(inputs, {f"in{i}": a for i, a in enumerate(case.inputs)})
            status, stderr = self._end([*self.arguments, program, inputs, outputs], f"{folder}/stderr")
            if status == REFUSED:
                raise self._refusal(stderr)
            if status:
                raise self._died(children.ending(status), stderr)
            try:
                arrays = load_npz(outputs, "out", _due(case))
            except FormatError as error:
                raise EngineFault(engine=self.name, detail=f"exit status 0, but {error.detail}") from None
        return Execution(tuple(arrays), {"execute": time.perf_counter() - start})

    def _end(self, command: list[str], log: str) -> tuple[int, bytes]:
        """Exit status and standard error of the command; what it started ends with it when it is stopped."""
        with open(log, "wb+") as stderr:  # a file, since a pipe may be kept open by what the command has started
            try:
                process = keeper.start(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
                    env=children.environment(),
                )  # fmt: skip
            except OSError as error:
                raise EngineFault(engine=self.name, detail=f"cannot be run: {error.strerror or error}") from None
            try:
                stopped = self._watch(process, stderr, Path(command[-1]))
            finally:
                status = keeper.stop(process)
            words = children.tail(stderr, _STDERR_READ)
        if stopped:
            raise self._died(stopped, words)
        return status, words

    def _watch(self, process: subprocess.Popen[bytes], stderr: IO[bytes], outputs: Path) -> str:
        """Wait for the command; why it has to be stopped, "" if it has ended by itself."""
        deadline = time.monotonic() + self.request_seconds
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, min(_POLL, deadline - time.monotonic())))
            if _on_disk(outputs) > _OUTPUT_BYTES:
                return f"outputs beyond {_OUTPUT_BYTES >> 20} MiB"
            if process.returncode is not None:
                return ""
            if children.interrupted.is_set():
                return "interrupted"
            if time.monotonic() >= deadline:
                return f"timeout after {self.request_seconds:g} s"
            children.keep_short(stderr)

    def _died(self, how: str, stderr: bytes) -> WorkerDied:
        tail = stderr[-_STDERR_TAIL:].decode("utf-8", "replace")
        return WorkerDied(worker=self.name, how=how, stderr_tail=tail)

    def _refusal(self, stderr: bytes) -> TenferroError:
        """The error of the last line of standard error that has one: a fault if it is malformed, a crash if there is none."""
        for line in reversed(stderr.decode("utf-8", "replace").splitlines()):
            try:
                record = json.loads(line)["error"]
                record["kind"]
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
            try:
                return _decoded(record)
            except FormatError as error:
                return EngineFault(engine=self.name, detail=f"malformed refusal: {error}")
        return self._died(f"exit status {REFUSED} without a line of JSON that says why", stderr)


def _due(case: Case) -> list[TensorType] | None:
    """Types of the outputs, if all of them are known."""
    try:
        types = case.program.at(tuple(map(type_of, case.inputs))).types
        return [types[slot] for slot in case.program.output_slots]
    except (TenferroError, KeyError):
        return None


def _decoded(record: dict[str, Any]) -> TenferroError:
    """The same error of our taxonomy, if the record has its facts; else a foreign one.

    Raises
    ------
    FormatError
        The kind is no identifier, or something has another type than FORMATS 3 says.
    """
    kind, op, message, axis = (record.get(name) for name in ("kind", "op", "message", "axis"))
    if not is_identifier(kind):
        raise FormatError(where="kind", detail="must be an identifier: letters, digits and underscores")
    for name, value, types in (("op", op, str), ("message", message, str), ("axis", axis, int)):
        if value is not None and (not isinstance(value, types) or isinstance(value, bool)):
            raise FormatError(where=name, detail=f"is of type {type(value).__name__}")
    facts = {k: v for k, v in record.items() if k not in ("kind", "message")}
    try:
        error = wire.unpack_error({"kind": kind, "facts": facts})
    except KeyError:
        error = ForeignRefusal(op or "", str(kind), message or "", axis)
    # that our own disk is full is for us to notice
    return ForeignRefusal("", str(kind), str(error), axis) if isinstance(error, OutputError) else error


def _on_disk(file: Path) -> int:
    """Bytes that a file takes, 0 if it is not there."""
    try:
        return file.stat().st_blocks * 512
    except OSError:
        return 0
