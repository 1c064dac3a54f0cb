"""A command that is kept running: one line of JSON a program on its standard input, one line back on its standard output (FORMATS 3)."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from oracle.peers.errors import EngineFault
from tenferro_ref import children, keeper
from tenferro_ref.errors import WorkerDied

#: Bytes of an answer past which the command is ended.
_ANSWER_BYTES = 1 << 30
#: Seconds between two looks at whether this process is being interrupted.
_POLL = 0.05
_STDERR_TAIL = 4000


@dataclass
class Server:
    """The process, started at the first request, and again after it has died."""

    name: str
    command: Sequence[str]
    _process: subprocess.Popen[bytes] | None = None
    _log: IO[bytes] | None = None

    def request(self, line: bytes, seconds: float) -> bytes:
        """Send a line, and give back the one that answers it.

        Raises
        ------
        WorkerDied
            It ended, was too slow, or answered without end; it is ended then with all that it has started.
        EngineFault
            It wrote more than the line that answers; it is ended, since nobody knows what its next line answers.
        OSError
            It cannot be started.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        reader, writer = process.stdout.fileno(), process.stdin.fileno()
        if select.select([reader], [], [], 0)[0] and os.read(reader, 1):
            raise self._said_too_much()
        deadline, unsent, parts, size = time.monotonic() + seconds, memoryview(line + b"\n"), list[bytes](), 0
        answered = False
        while unsent or not answered:
            if children.interrupted.is_set() or time.monotonic() >= deadline or size > _ANSWER_BYTES:
                how = (
                    f"timeout after {seconds:g} s"
                    if size <= _ANSWER_BYTES
                    else f"an answer beyond {_ANSWER_BYTES >> 20} MiB"
                )
                raise self._died("interrupted" if children.interrupted.is_set() else how)
            readable, writable, _ = select.select([reader], [writer] if unsent else [], [], _POLL)
            with contextlib.suppress(BlockingIOError, BrokenPipeError):
                if writable:
                    unsent = unsent[os.write(writer, unsent[: 1 << 16]) :]
            if readable:
                parts.append(os.read(reader, 1 << 16))
                size += len(parts[-1])
                answered = answered or b"\n" in parts[-1]
                if not parts[-1]:
                    raise self._died("")
            assert self._log is not None
            children.keep_short(self._log)
        answer, _, beyond = b"".join(parts).partition(b"\n")
        if beyond:
            raise self._said_too_much()
        return answer

    def close(self) -> None:
        """End it with all that it has started; a later request starts it anew."""
        process, log, self._process, self._log = self._process, self._log, None, None
        if process is not None:
            keeper.stop(process)
            for stream in filter(None, (process.stdin, process.stdout, log)):
                with contextlib.suppress(OSError):
                    stream.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
            self._process = keeper.start(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, bufsize=0,
                env=children.environment(),
            )  # fmt: skip
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        return self._process

    def _said_too_much(self) -> EngineFault:
        self.close()
        return EngineFault(engine=self.name, detail="standard output has more than one line for a program")

    def _died(self, how: str) -> WorkerDied:
        """The error that says how it ended: by itself if `how` is empty."""
        process = self._process
        assert process is not None
        if not how:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
            ended = process.returncode
            how = "standard output closed" if ended is None else children.ending(ended)
        assert self._log is not None
        tail = children.tail(self._log, _STDERR_TAIL).decode("utf-8", "replace")
        self.close()
        return WorkerDied(worker=self.name, how=how, stderr_tail=tail)
