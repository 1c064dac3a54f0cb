"""Campaigns on a `dask.distributed` cluster: the crew, and the task that a worker of the cluster runs.

The supervisor alone writes to the store. It claims batches, a few at a time, and groups of disagreements to reduce; each leaves
as a store of its own (`fuzz.store.parts`) and comes back done. On the machine that takes it the part is an ordinary
campaign of one process (`fuzz.campaign.workers`), so that no plugin is ever loaded into a process of the cluster. A part that is
lost with its machine is run again elsewhere: its programs follow from the seed. Only `str`, `bytes` and `int` cross.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import logging
import os
import re
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from fuzz.campaign.errors import ClusterFault
from fuzz.campaign.programs import check_generator
from fuzz.campaign.supervisor import Crew, Tick, supervise
from fuzz.campaign.workers import run_workers
from fuzz.generate.settings import config_of
from fuzz.store import Batch, Lock, Store, Stream
from fuzz.store.parts import absorb, cut_batches, cut_group
from tenferro_ref import __version__
from tenferro_ref.errors import MissingDependency, TenferroError, UsageError
from tenferro_ref.files import write_atomically

#: Seconds between two counts of the cluster's workers, and without any worker before the campaign ends.
_COUNT_SECONDS, _UNMANNED_SECONDS = 1.0, 60.0
#: Seconds for the scheduler to answer.
_CONNECT_SECONDS = 10
#: Batches that leave together at most: starting the executors must be little beside them.
_BATCHES = 16
#: Deaths without any progress in the store, after which there is no point in going on; each part was tried on several machines.
_HOPELESS = 5


@dataclass(frozen=True, eq=False)
class Cluster:
    """A scheduler that answers: its address, and dask's client of it."""

    address: str
    client: Any


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster at that address.

    Raises
    ------
    UsageError
        No address of a scheduler.
    MissingDependency
        `distributed` is not installed here.
    ClusterFault
        The scheduler cannot be reached.
    """
    if not re.fullmatch(r"[a-z]+://[^/\s]+:\d{1,5}", address):
        raise UsageError(detail=f"--scheduler {address}: must be the address of a dask scheduler, as tcp://host:8786")
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise MissingDependency.of_extra("dask", "dask", error) from None
    with _quiet("distributed", "distributed.client"):
        try:
            client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="tenferro-ref")
        except (OSError, ValueError) as error:
            detail = f"no scheduler answers ({error}); start one with `dask scheduler`"
            raise ClusterFault(where=address, detail=detail) from None
        with client:
            yield Cluster(address, client)


@contextlib.contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Keep these loggers off the terminal: typed errors say what went wrong."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def run_on_cluster(
    path: str | Path,
    stream: Stream,
    cluster: Cluster,
    *,
    bundles: Path | None = None,
    tick: Callable[[Tick], None] = lambda _: None,
) -> int:
    """Work on a stream until there is no more to do; gives the number of workers that died on the way.

    The caller holds the lock on the store. Executors must be the same on all machines: a worker that has another build ends
    the campaign.

    Raises
    ------
    ClusterFault
        The scheduler is gone, has no workers, or one of its machines cannot do its part.
    """
    return supervise(path, stream, lambda store: _Machines(cluster, store, stream, bundles), tick)


@dataclass(frozen=True, eq=False)
class _Errand:
    """A part that is out: the store that left, what for, and its result to come."""

    part: bytes
    reduces: bool
    future: Any


class _Machines(Crew):
    """The workers of a cluster, and the parts that they have."""

    def __init__(self, cluster: Cluster, store: Store, stream: Stream, bundles: Path | None) -> None:
        super().__init__(store, stream)
        if config_of(stream.plan.generate).guided:
            raise UsageError(
                detail="generate guided=1: a cluster's workers see no results of others; run it with --workers"
            )
        self.client, self.address, self.bundles = cluster.client, cluster.address, bundles
        self.owner = f"{os.getpid()}-cluster"
        self.out: list[_Errand] = []
        self._sent = 0
        self._left_over: Batch | None = None
        self._workers: dict[str, int] = {}
        self._counted = self._manned = time.monotonic()
        self._count_workers()

    @property
    def slots(self) -> int:
        return sum(self._workers.values())

    def keep_busy(self) -> bool:
        # a few more than can run: no worker waits for the next look, and a cluster that grows with its load sees some
        while len(self.out) < self.slots + max(1, self.slots // 4):
            reduces = sum(errand.reduces for errand in self.out) < max(1, self.slots // 2)
            part = self._group() if reduces else None
            reduces = part is not None
            part = part or self._batches()
            if part is None:
                break
            self._send(part, reduces)
        return bool(self.out)

    def _group(self) -> bytes | None:
        group = self.store.claim_group(self.stream.id, self.owner, self.stream.plan.max_findings)
        return None if group is None else cut_group(self.store, self.stream, group)

    def _batches(self) -> bytes | None:
        plan, batches = self.stream.plan, list[Batch]()
        share = _BATCHES
        if plan.programs is not None:  # every worker gets several parts, so that all end at about the same time
            share = max(1, min(share, plan.programs // (plan.batch * plan.shards * 4 * max(1, self.slots))))
        while len(batches) < share:
            batch, self._left_over = self._left_over or self.store.claim(self.stream.id, self.owner), None
            if batch is None:
                break
            if batches and batch.number != batches[-1].number + plan.shards:
                self._left_over = batch
                break
            batches.append(batch)
        return cut_batches(self.store, self.stream, batches) if batches else None

    def _send(self, part: bytes, reduces: bool) -> None:
        self._sent += 1
        key = f"tenferro-{self.stream.campaign}-{self.stream.plan.shard}-{self.owner}-{self._sent}"
        try:
            future = self.client.submit(work_on, part, __version__, int(self.bundles is not None), key=key, pure=False)
        except OSError as error:
            raise self._lost(error) from None
        self.out.append(_Errand(part, reduces, future))

    def look(self) -> None:
        """Take back what is done, send again what was lost, count the workers now and then."""
        for errand in [e for e in self.out if e.future.done()]:
            self.out.remove(errand)
            self._take(errand)
        if time.monotonic() - self._counted >= _COUNT_SECONDS:
            self._count_workers()

    def _take(self, errand: _Errand) -> None:
        status = errand.future.status
        if status not in ("finished", "error"):  # "cancelled", "lost"
            raise self._lost(status)
        try:
            if status == "finished":
                self._keep(errand.future.result())
                return
            error = errand.future.exception()
        except (OSError, asyncio.CancelledError, concurrent.futures.CancelledError) as gone:
            raise self._lost(gone) from None
        if type(error).__name__ != "KilledWorker":
            problem = f"a task failed: {type(error).__name__}: {error}"
            raise self._fault(f"{problem}; is tenferro-ref[dask] installed on every machine?")
        if self.died_in_vain() > _HOPELESS:
            raise self._fault(f"workers die again and again, and nothing gets done: {error}; `fuzz resume` goes on")
        self._send(errand.part, errand.reduces)

    def _keep(self, result: tuple[str, bytes, list[tuple[str, bytes]], str, int]) -> None:
        host, content, files, error, deaths = result
        self.deaths += deaths
        if error:
            raise self._fault(error, host)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "part.sqlite"
            path.write_bytes(content)
            with Store(path) as part:
                try:
                    check_generator(part, part.stream(1))
                except UsageError:
                    problem = f"it generates other programs from seed {self.stream.plan.seed} than this one"
                    raise self._fault(f"{problem}; install the same", host) from None
            absorb(self.store, self.stream, path, self.owner)
        for name, data in files:
            place = PurePosixPath(name)
            if self.bundles is not None and not place.is_absolute() and ".." not in place.parts:
                write_atomically(self.bundles / place, data)

    def _count_workers(self) -> None:
        try:
            there: dict[str, int] = self.client.nthreads()
        except OSError as error:
            raise self._lost(error) from None
        self.deaths += len(self._workers.keys() - there.keys())
        self._workers = there
        now = self._counted = time.monotonic()
        if there:
            self._manned = now
        elif now - self._manned > _UNMANNED_SECONDS:
            remedy = f"start some with `dask worker {self.address}`, then `fuzz resume`"
            raise self._fault(f"no worker for {_UNMANNED_SECONDS:.0f} s; {remedy}")

    def _lost(self, why: object) -> ClusterFault:
        return self._fault(f"the scheduler is gone ({why}); `fuzz resume` goes on")

    def _fault(self, detail: str, machine: str = "") -> ClusterFault:
        return ClusterFault(where=f"{self.address}, machine {machine}" if machine else self.address, detail=detail)

    def end(self) -> None:
        if self.out:
            with contextlib.suppress(OSError):
                self.client.cancel([errand.future for errand in self.out])
        self.out.clear()


# --- the task ---------------------------------------------------------------------------------------------------------


def work_on(part: bytes, version: str, with_bundles: int) -> tuple[str, bytes, list[tuple[str, bytes]], str, int]:
    """Work on a part of a campaign, in a process of its own and a folder that is gone afterwards.

    Returns
    -------
    The machine, the part when it is done, the files of its findings' bundles, the error that stopped it or "", and how many
    processes died of it.
    """
    host = socket.gethostname()
    if version != __version__:
        return host, b"", [], f"it has tenferro-ref {__version__}, not {version}; install the same", 0
    distributed = importlib.import_module("distributed")
    with tempfile.TemporaryDirectory(dir=distributed.get_worker().local_directory) as scratch:
        path, bundles = Path(scratch) / "part.sqlite", Path(scratch) / "bundles"
        path.write_bytes(part)
        try:
            with Lock(path) as lock, Store(path) as store:
                found, stream = bundles if with_bundles else None, store.stream(1)
                # `fuzz run` was given these executors by the user, so that their commands are allowed here, too
                allowed = stream.available
                deaths = run_workers(path, stream, 1, lock=lock, bundles=found, threads=1, allowed=allowed)
                content = store.database.connection.serialize()
        except TenferroError as error:
            return host, b"", [], str(error), 0
        files = [(f.relative_to(bundles).as_posix(), f.read_bytes()) for f in bundles.rglob("*") if f.is_file()]
        return host, content, files, "", deaths
