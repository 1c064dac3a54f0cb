"""Campaigns in several processes over one store: the crew, and the worker's side `python -m fuzz.campaign.workers`.

Workers take batches from the store and write their answers into it; the supervisor replaces those that die.
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
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fuzz.campaign.supervisor import Crew, Tick, supervise
from fuzz.campaign.work import work
from fuzz.campaign.worksite import Worksite
from fuzz.store import Lock, Store, Stream
from oracle.peers import Executor, PjrtExecutor, Pool
from tenferro_ref import children
from tenferro_ref.errors import FormatError, TenferroError, UsageError, WorkerDied
from tenferro_ref.isolation import wire

#: Deaths without any progress in the store, after which there is no point in going on.
_HOPELESS = 25
#: The worker's exit status when it says on standard error, in one line of JSON, which typed error stopped it.
_TYPED = 3
#: The worker's argument by which it runs each bundle in a clean interpreter.
_CONFIRMS = "confirms"
_TAIL = 4000
_PR_SET_PDEATHSIG = 1


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
    confirms: bool = True,
) -> int:
    """Work on a stream until there is no more to do; gives the number of workers that died on the way.

    Each worker runs `threads` executors at a time; by default, together as many as there are cores.

    Parameters
    ----------
    allowed
        As in `Pool`: executors that the stream may name though they run a command or load a file.
    confirms
        Whether each bundle is run in a clean interpreter.

    Raises
    ------
    TenferroError
        What stopped a worker for a reason that another one would meet as well: a full disk, a missing plugin.
    WorkerDied
        Workers die again and again and nothing gets done.
    UsageError
        This version generates other programs than the campaign began with.
    """
    each = threads or max(1, (os.cpu_count() or 1) // workers)
    options = [str(each), str(bundles or ""), _CONFIRMS if confirms else "", *allowed]
    return supervise(path, stream, lambda store: _Processes(store, stream, lock, workers, options), tick)


def reduce_in_workers(site: Worksite, workers: int, lock: Lock) -> None:
    """Reduce the disagreements of a campaign that this process has checked, in processes of their own (`reduce` of `run_campaign`).

    Parameters
    ----------
    workers
        How many processes at most; no more than there are groups of disagreements.

    Raises
    ------
    TenferroError
        As `run_workers`.
    """
    groups = site.store.group_counts(site.stream.id)[1]
    if not groups:
        return
    for executor in site.executors:
        executor.close()  # those who reduce have processes of their own
    site.lap("check")
    run_workers(
        site.store.path, site.stream, min(workers, groups), lock=lock, bundles=site.bundles, confirms=site.confirms,
        allowed=[executor.name for executor in site.executors], tick=lambda _: site.report("reduce"),
    )  # fmt: skip
    site.skip_lap()


@dataclass(frozen=True, eq=False)
class _Child:
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    owner: str

    def last_words(self) -> str:
        return children.tail(self.stderr, _TAIL).decode("utf-8", "replace")


class _Processes(Crew):
    """Worker processes on this machine; `options` are the last arguments of `main`."""

    def __init__(self, store: Store, stream: Stream, lock: Lock, workers: int, options: Sequence[str]) -> None:
        super().__init__(store, stream)
        self.lock, self.options = lock, options
        self.children: list[_Child] = []
        self._started, self._vacant = 0, workers
        self._starting: set[str] = set()

    @property
    def slots(self) -> int:
        return len(self.children)

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(child.process.pid for child in self.children)

    def keep_busy(self) -> bool:
        # as many start at a time as there are cores: of 64 on two cores none would do anything for minutes
        if self._vacant:
            self._starting &= {child.owner for child in self.children} - self.store.owners(self.stream.id)
        for _ in range(min(self._vacant, (os.cpu_count() or 1) - len(self._starting))):
            self._started, self._vacant = self._started + 1, self._vacant - 1
            child = self._spawn(f"{os.getpid()}-{self._started}")
            self._starting.add(child.owner)
            self.children.append(child)
        return bool(self.children)

    def _spawn(self, owner: str) -> _Child:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        arguments = [self.store.path, self.stream.id, owner, os.getpid(), *self.options]
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
        for child in self.children:
            children.keep_short(child.stderr)
        for child in [c for c in self.children if c.process.poll() is not None]:
            self.children.remove(child)
            with child.stderr:
                self._ended(child)

    def _ended(self, child: _Child) -> None:
        code = child.process.returncode
        if code == 0:  # there is no more to begin with
            self._vacant = 0
            return
        if code == _TYPED:
            raise _unpack(child.last_words())
        self.store.release(child.owner)
        self.deaths += 1
        if (times := self.died_in_vain()) > _HOPELESS:
            how = children.ending(code)
            raise WorkerDied(worker="of the campaign", how=f"{how}, {times} times", stderr_tail=child.last_words())
        self._vacant += 1

    def end(self) -> None:
        for child in self.children:
            child.process.kill()
        for child in self.children:
            child.process.wait()
            child.stderr.close()
        self.children.clear()


def _unpack(words: str) -> TenferroError:
    """The typed error in the last line that a worker wrote."""
    line = (words.strip().splitlines() or [""])[-1]
    try:
        return wire.unpack_error(json.loads(line))
    except (ValueError, KeyError, RecursionError, FormatError):
        return WorkerDied(worker="of the campaign", how=f"exit status {_TYPED}", stderr_tail=words)


# --- the worker's side ------------------------------------------------------------------------------------------------


def main(
    path: str, stream_id: str, owner: str, parent: str, threads: str, bundles: str, confirms: str, *allowed: str
) -> int:
    """Work on a stream until there is no more to do."""
    # if the supervisor dies, so must this process: a later supervisor must find no worker on its batches
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        return 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's business
    try:
        with Store(path) as store, contextlib.closing(Pool(allowed=allowed)) as pool:
            stream = store.stream(int(stream_id))
            executors = [pool.recorded(name, path) for name in stream.available]
            _check_same(stream, executors)
            site = Worksite(
                store, stream, executors, pool, owner=owner, threads=int(threads),
                bundles=Path(bundles) if bundles else None, confirms=confirms == _CONFIRMS, keeps_time=False,
            )  # fmt: skip
            work(site, alone=False)
    except TenferroError as error:
        print(json.dumps(wire.pack_error(error)), file=sys.stderr)
        return _TYPED
    return 0


def _check_same(stream: Stream, executors: Sequence[Executor]) -> None:
    """Refuse to mix the answers of two builds in one campaign; a plugin's file is hashed before it is loaded."""
    for info, executor in zip((i for i in stream.executors if i.available), executors, strict=True):
        before = dict(info.facts).get("sha256")
        plugin = executor.plugin if isinstance(executor, PjrtExecutor) else None
        if before != (plugin.sha256() if plugin and before else dict(executor.info().facts).get("sha256")):
            raise UsageError(detail=f"{info.name} is another file than when the campaign began; begin a new campaign")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
