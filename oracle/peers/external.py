"""A command under test: `COMMAND PROGRAM.json INPUTS.npz OUTPUTS.npz`, or one that is kept running (FORMATS 3).

The first ends with exit status 0 and the outputs written, or 3 and one JSON line that says the typed refusal; anything else is a
crash. The second reads a program a line and answers with a line.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar

import msgspec
import numpy as np

from oracle.case import Case
from oracle.peers.base import Execution, Executor
from oracle.peers.errors import EngineFault
from oracle.peers.peer import Peer
from oracle.peers.served import Server
from tenferro_ref import children, keeper
from tenferro_ref.dtype import DType
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
from tenferro_ref.program.json_form import write_program
from tenferro_ref.tensor import Array, column_major, load_npz, save_npz, type_of

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
    """A command; one process a program, ended after `request_seconds`. Held to the model of the native executor.

    Attributes
    ----------
    command
        Its words, as in a shell; files that it names by a relative path get their whole path, since stores and bundles are
        read in other folders.
    """

    command: str
    request_seconds: float = 60.0
    name: str = field(init=False)
    variant: ClassVar[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", _whole_paths(self.command))
        object.__setattr__(self, "name", str(Peer("external", self.variant, self.command)))

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
                if not stat.S_ISREG(os.lstat(outputs).st_mode):  # opening a pipe waits for who writes into it
                    raise FormatError(where=outputs, detail="the outputs are no regular file")
                arrays = load_npz(outputs, "out", _due(case))
            except FileNotFoundError:
                raise EngineFault(engine=self.name, detail="exit status 0, but no outputs were written") from None
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


@dataclass(frozen=True)
class ServedExecutor(ExternalExecutor):
    """A command that is kept running: a line of JSON a program on standard input, a line back on standard output."""

    server: Server = field(init=False, compare=False, repr=False)
    variant: ClassVar[str] = "served"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "server", Server(self.name, ()))

    def run(self, case: Case) -> Execution:
        start = time.perf_counter()
        self.server.command = self.arguments
        request = {"program": write_program(case.program), "inputs": [_tensor(a) for a in case.inputs]}
        try:
            line = self.server.request(json.dumps(request, separators=(",", ":")).encode(), self.request_seconds)
        except OSError as error:
            raise EngineFault(engine=self.name, detail=f"cannot be run: {error.strerror or error}") from None
        outputs = self._answer(line)
        return Execution(outputs, {"execute": time.perf_counter() - start})

    def _answer(self, line: bytes) -> tuple[Array, ...]:
        """The outputs of a line; the typed refusal in it is raised, and what is neither is a fault of the engine."""
        try:
            answer = msgspec.json.decode(line, type=_Answer)
            if (answer.outputs is None) == (answer.error is None):
                raise FormatError(where="answer", detail="expected one of outputs and error")
            if answer.error is not None:
                raise _decoded(answer.error)
            return tuple(_array(tensor) for tensor in answer.outputs or ())
        except (msgspec.MsgspecError, FormatError, ValueError, RecursionError) as error:
            words = f"malformed answer: {error}: {line[:80].decode('utf-8', 'replace')}"
            raise EngineFault(engine=self.name, detail=words) from None

    def close(self) -> None:
        self.server.close()


class _Tensor(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: list[Annotated[int, msgspec.Meta(ge=0)]]
    data: str


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    outputs: list[_Tensor] | None = None
    error: dict[str, Any] | None = None


def _tensor(array: Array) -> dict[str, Any]:
    """The little-endian bytes of the elements in column-major order, as hexadecimal digits, with dtype and shape."""
    return {"dtype": DType.of(array).name, "shape": list(array.shape), "data": column_major(array).tobytes("F").hex()}


def _array(tensor: _Tensor) -> Array:
    if tensor.dtype not in DType.__members__:
        raise FormatError(where="dtype", detail=f"no dtype {tensor.dtype!r}")
    raw = bytes.fromhex(tensor.data)
    if tensor.dtype == DType.Bool.name and raw.strip(b"\0\1"):
        raise FormatError(where="data", detail="a byte of a Bool is neither 0 nor 1")
    flat = np.frombuffer(raw, DType[tensor.dtype].numpy)
    return flat.reshape(tensor.shape, order="F")


def _whole_paths(command: str) -> str:
    """The command with whole paths for what names a file here; unchanged where nothing does."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command  # an unfinished quotation, which `arguments` names
    # a program without a separator is looked for on PATH, a file in an argument is one of this folder
    whole = [
        str(Path(w).absolute()) if (place or os.sep in w) and not Path(w).is_absolute() and os.path.isfile(w) else w
        for place, w in enumerate(words)
    ]
    return command if whole == words else shlex.join(whole)


def with_whole_paths(name: str) -> str:
    """The name, or pattern, of an executor as stores have it: that of a command has whole paths."""
    peer = Peer.parse(name)
    return str(replace(peer, build=_whole_paths(peer.build))) if peer.family == "external" else name


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
