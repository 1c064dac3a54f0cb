"""The harness' side of a worker: start, request with a watchdog, report how it died, start again."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tenferro_ref import children, keeper
from tenferro_ref.errors import FormatError, OutputError, ResourceExhausted, TenferroError, WorkerDied
from tenferro_ref.isolation import wire
from tenferro_ref.pjrt import PluginRef

#: How often the watchdog looks at a silent worker, in seconds.
_POLL = 0.05
_STDERR_TAIL = 16_000
#: How long a process that has closed its socket may take to end.
_END_SECONDS = 10.0
#: Seconds for which the socket of a process that has ended is still read: an answer may be in it.
_REST_SECONDS = 0.5


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker serves and what it is allowed.

    Attributes
    ----------
    serves
        A PJRT plugin, or the full name of another engine's module (see `tenferro_ref.isolation.engine`).
    engine
        The engine's module that gets the plugin, where there is one.
    start_seconds, request_seconds
        Wall time for loading it and for one request; past it the worker is killed.
    memory_bytes
        Resident memory past which it is killed.
    preload
        `"module:function:argument"` that the worker calls before it serves, "" for nothing: how a seeded fault reaches it.
    """

    serves: PluginRef | str
    engine: str = "tenferro_ref.isolation.engines.pjrt"
    start_seconds: float = 60.0
    request_seconds: float = 60.0
    memory_bytes: int = 8 << 30
    preload: str = ""


def _log() -> IO[bytes]:
    """A file for a worker's standard error, which lives as long as the process.

    Raises
    ------
    OutputError
        There is no room for temporary files.
    """
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise OutputError(path="temporary files", detail=error.strerror or str(error)) from None


def _opening(spec: WorkerSpec) -> wire.Message:
    if isinstance(spec.serves, str):
        return {"engine": spec.serves, "settings": {}}
    return {"engine": spec.engine, "settings": asdict(spec.serves)}


class Worker:
    """One worker process; started at the first request, and again after it died.

    Parameters
    ----------
    name
        What it is called in errors.
    """

    def __init__(self, name: str, spec: WorkerSpec) -> None:
        self.name = name
        self.spec = spec
        self.deaths = 0
        self._lock = threading.Lock()  # one conversation at a time
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: wire.Channel | None = None
        self._stderr: IO[bytes] | None = None
        self._facts: dict[str, str] = {}

    @property
    def facts(self) -> Mapping[str, str]:
        """What the engine says of itself; starts the worker.

        Raises
        ------
        PluginLoad, PjrtCall
            The plugin cannot be loaded, or makes no client.
        MissingDependency
            The engine's library is not installed.
        WorkerDied
            The worker ended while loading it.
        OutputError, ResourceExhausted
            No process can be started.
        """
        with self._lock:
            self._ensure_started()
            return self._facts

    @property
    def pid(self) -> int | None:
        """Process id, None while no process runs."""
        return self._process.pid if self._process else None

    def request(self, message: wire.Message, read: Callable[[wire.Message], Any] = lambda answer: answer) -> Any:
        """Send one request and wait for its answer.

        Parameters
        ----------
        read
            Takes the answer apart; an answer that it cannot read ends the worker, too.

        Raises
        ------
        TenferroError
            The error that the worker met; as `facts`, where it has to be started.
        WorkerDied
            The worker ended, was closed by another thread, was out of time or memory, or its answer cannot be read; the next request
            starts a fresh one.
        """
        with self._lock:
            return self._exchange(self._ensure_started(), message, self.spec.request_seconds, read)

    def close(self) -> None:
        """End the process. A later request starts another."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            keeper.stop(self._process)
        if self._stderr is not None:
            self._stderr.close()
        self._process = self._channel = self._stderr = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ensure_started(self) -> wire.Channel:
        if self._channel is not None:
            return self._channel
        # XLA writes pages to standard error; what matters is its end, when the process dies
        self._stderr = _log()
        try:
            ours = self._spawn(self._stderr)
        except OSError as error:
            self.close()
            raise ResourceExhausted(
                where=f"worker {self.name}", detail=f"cannot be started: {error.strerror or error}"
            ) from None
        ours.settimeout(_POLL)
        self._channel = channel = wire.Channel(ours)
        try:
            opening = _opening(self.spec)
            self._facts = self._exchange(
                channel, opening, self.spec.start_seconds, lambda answer: dict(answer["facts"])
            )
        except TenferroError:
            self.close()
            raise
        return channel

    def _spawn(self, log: IO[bytes]) -> socket.socket:
        """Start the process; gives our end of the connection to it, or raises what `subprocess.Popen` does."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = keeper.start(
                    [sys.executable, "-m", "tenferro_ref.isolation.worker", str(theirs.fileno()), self.spec.preload],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    env=children.own_environment(),
                )
        except OSError:
            ours.close()
            raise
        return ours

    def _exchange(
        self, channel: wire.Channel, message: wire.Message, seconds: float, read: Callable[[wire.Message], Any]
    ) -> Any:
        deadline = time.monotonic() + seconds
        next_look, ended = 0.0, math.inf

        def watch() -> None:
            nonlocal next_look, ended
            if children.interrupted.is_set():
                raise self._died("interrupted")
            if (now := time.monotonic()) > deadline:
                raise self._died(f"timeout after {seconds:g} s")
            if now > next_look:
                next_look = now + _POLL
                if self._process is not None and self._process.poll() is not None:
                    ended = min(ended, now)
                if now > ended + _REST_SECONDS:  # what it has forked keeps the socket open
                    raise self._died("")
                if self._resident() > self.spec.memory_bytes:
                    raise self._died(f"memory beyond {self.spec.memory_bytes >> 20} MiB")
                if self._stderr is not None:
                    children.keep_short(self._stderr)

        try:
            channel.send(message, watch)
            answer = channel.receive(watch)
            error = wire.unpack_error(answer["error"]) if "error" in answer else None
            result = None if error else read(answer)
        except (EOFError, OSError):  # the other side is gone, or another thread has closed this one
            raise self._died("") from None
        except (FormatError, AttributeError, KeyError, TypeError, ValueError) as unreadable:
            raise self._died(f"its answer cannot be read: {unreadable}") from None
        except BaseException:  # an interrupt: what the worker answers later must not be taken for the next answer
            self.close()
            raise
        if error is not None:
            raise error
        return result

    def _resident(self) -> int:
        """Resident bytes of the worker; 0 where the system does not tell."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def _died(self, how: str) -> WorkerDied:
        """Put the dead worker away; `how` is empty if it closed the socket, usually by ending."""
        process, stderr = self._process, self._stderr
        tail = ""
        if process is not None:
            if not how:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    how = children.ending(process.wait(_END_SECONDS))
            keeper.stop(process)
        if stderr is not None:
            with contextlib.suppress(ValueError):  # another thread has closed it
                tail = children.tail(stderr, _STDERR_TAIL).decode("utf-8", "replace")
        self.deaths += 1
        self.close()
        return WorkerDied(worker=self.name, how=how or "its socket closed", stderr_tail=tail)
