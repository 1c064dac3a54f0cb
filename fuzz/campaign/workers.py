"""Campaigns in several processes over one store: the supervisor, and the worker's side `python -m fuzz.campaign.workers`.

Workers take batches from the store and write their answers into it; the supervisor replaces those that die. It does nothing
else, so that a campaign survives the death of any process: whoever resumes finds all that was committed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fuzz.campaign.work import Progress, Worksite, check_generator, work
from fuzz.store import Lock, Store, Stream
from oracle.peers import Executor, PjrtExecutor, Pool
from tenferro_ref import children
from tenferro_ref.errors import FormatError, TenferroError, UsageError, WorkerDied
from tenferro_ref.isolation import wire

#: Seconds between two looks at the workers.
_POLL = 0.1
#: Deaths without any progress in the store, after which there is no point in going on.
_HOPELESS = 25
#: The worker's exit status when it says on standard error, in one line of JSON, which typed error stopped it.
_TYPED = 3
_TAIL = 4000
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Tick:
    """What the supervisor tells its caller at every look: how far it is, the workers that live, deaths so far."""

    progress: Progress
    pids: tuple[int, ...]
    deaths: int


@dataclass(frozen=True, eq=False)
class _Child:
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    owner: str

    def last_words(self) -> str:
        return children.tail(self.stderr, _TAIL).decode("utf-8", "replace")


def run_workers(
    path: str | Path,
    stream: Stream,
    workers: int,
    *,
    lock: Lock,
    bundles: Path | None = None,
    tick: Callable[[Tick], None] = lambda _: None,
    threads: int | None = None,
    allowed: Collection[str] = (),
) -> int:
    """Work on a stream until there is no more to do; gives the number of workers that died on the way.

    Each worker runs `threads` executors at a time; by default, together as many as there are cores.

    Parameters
    ----------
    allowed
        As in `Pool`: executors that the stream may name though they run a command or load a file.

    Raises
    ------
    TenferroError
        What stopped a worker for a reason that another one would meet as well: a full disk, a missing plugin.
    WorkerDied
        Workers die again and again and nothing gets done.
    UsageError
        This version generates other programs than the campaign began with.
    """
    with Store(path) as store:
        store.database.check()
        check_generator(store, stream)
        store.release()  # nobody else works here: the lock says so
        crew = _Crew(store, stream, lock, bundles, threads or max(1, (os.cpu_count() or 1) // workers), allowed)
        try:
            crew.start(workers)
            while crew.children:
                time.sleep(_POLL)
                crew.look()
                tick(crew.tick())
        finally:
            crew.end()
        return crew.deaths


class _Crew:
    """The workers of one supervisor."""

    def __init__(
        self, store: Store, stream: Stream, lock: Lock, bundles: Path | None, threads: int, allowed: Collection[str]
    ) -> None:
        self.store, self.stream, self.lock, self.bundles, self.threads = store, stream, lock, bundles, threads
        self.allowed = allowed
        self.children: list[_Child] = []
        self.deaths = self._started = self._in_vain = 0
        self._seen: tuple[object, ...] = ()
        self._clock = time.monotonic()

    def start(self, count: int) -> None:
        for _ in range(count):
            self._started += 1
            self.children.append(self._spawn(f"{os.getpid()}-{self._started}"))

    def _spawn(self, owner: str) -> _Child:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        arguments = [
            self.store.path,
            self.stream.id,
            owner,
            os.getpid(),
            self.threads,
            self.bundles or "",
            *self.allowed,
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.campaign.workers", *map(str, arguments)],
            pass_fds=[self.lock.descriptor],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=children.own_environment(),
        )
        return _Child(process, stderr, owner)

    def look(self) -> None:
        """Count the time, replace the dead."""
        now = time.monotonic()
        self.store.add_elapsed(self.stream.id, now - self._clock)
        self._clock = now
        for child in self.children:
            children.keep_short(child.stderr)
        for child in [c for c in self.children if c.process.poll() is not None]:
            self.children.remove(child)
            with child.stderr:
                self._bury(child)

    def _bury(self, child: _Child) -> None:
        code = child.process.returncode
        if code == 0:
            return
        if code == _TYPED:
            raise _unpack(child.last_words())
        self.store.release(child.owner)
        self.deaths += 1
        seen = (self.store.done(self.stream.id), self.store.kin_counts(self.stream.id))
        self._in_vain = self._in_vain + 1 if seen == self._seen else 1
        self._seen = seen
        if self._in_vain > _HOPELESS:
            how = children.ending(code)
            raise WorkerDied(
                worker="of the campaign", how=f"{how}, {self._in_vain} times", stderr_tail=child.last_words()
            )
        self.start(1)

    def tick(self) -> Tick:
        stream = self.stream
        done = self.store.done(stream.id)[0]
        progress = Progress("check", done, stream.plan.programs, self.store.suspects(stream.id))
        return Tick(progress, tuple(c.process.pid for c in self.children), self.deaths)

    def end(self) -> None:
        for child in self.children:
            child.process.kill()
        for child in self.children:
            child.process.wait()
            child.stderr.close()
        if self.children:
            # what they held is free for whoever resumes; if this fails, resuming does it
            with contextlib.suppress(TenferroError):
                self.store.release()
        self.children.clear()


def _unpack(words: str) -> TenferroError:
    """The typed error in the last line that a worker wrote."""
    line = (words.strip().splitlines() or [""])[-1]
    try:
        return wire.unpack_error(json.loads(line))
    except (ValueError, KeyError, RecursionError, FormatError):
        return WorkerDied(worker="of the campaign", how=f"exit status {_TYPED}", stderr_tail=words)


# --- the worker's side ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _pool(allowed: Collection[str]) -> Iterator[Pool]:
    pool = Pool(allowed=allowed)
    try:
        yield pool
    finally:
        pool.close()


def main(path: str, stream_id: str, owner: str, parent: str, threads: str, bundles: str, *allowed: str) -> int:
    """Work on a stream until there is no more to do."""
    # the supervisor's death is ours: a later one must find nobody at work on its batches
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        return 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's business
    try:
        with Store(path) as store, _pool(allowed) as pool:
            stream = store.stream(int(stream_id))
            executors = [pool.recorded(name, path) for name in stream.available]
            _check_same(stream, executors)
            site = Worksite(
                store, stream, executors, pool, owner=owner, threads=int(threads),
                bundles=Path(bundles) if bundles else None, keeps_time=False,
            )  # fmt: skip
            work(site, reduce_early=True)
    except TenferroError as error:
        print(json.dumps(wire.pack_error(error)), file=sys.stderr)
        return _TYPED
    return 0


def _check_same(stream: Stream, executors: Sequence[Executor]) -> None:
    """Refuse to mix the answers of two builds in one campaign; a plugin's file is looked at before it is loaded."""
    for info, executor in zip((i for i in stream.executors if i.available), executors, strict=True):
        known = dict(info.facts).get("sha256")
        plugin = executor.plugin if isinstance(executor, PjrtExecutor) else None
        if known != (plugin.sha256() if plugin and known else dict(executor.info().facts).get("sha256")):
            raise UsageError(detail=f"{info.name} is another file than when the campaign began; begin a new campaign")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
