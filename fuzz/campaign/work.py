"""A campaign: claim batches, judge every executor on each program, locate what disagrees, reduce it, record it all.

`work` is the only loop: `parity` runs it here and reduces in several processes over a file, `fuzz run` runs it in those
(`fuzz.campaign.workers`). Executors that share a worker process run in one thread; while the workers compile, the main thread
generates and evaluates the next batch. Nothing here prints. The answers to one batch are in `judging`, reduction is in
`reducing`.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from fuzz.campaign import judging, reducing
from fuzz.campaign.guide import is_open
from fuzz.campaign.judging import OpenBatch
from fuzz.campaign.recorded import recorded
from fuzz.campaign.worksite import Report, Worksite
from fuzz.generate.settings import config_of
from fuzz.records import Campaign
from fuzz.store import MEMORY, Plan, Store, Stream
from oracle.peers import Pool, Selection
from tenferro_ref import __version__, children

#: A batch that was taken so often without one answer is run a program at a time.
_CLAIMS = 2
#: Batches that wait for their turn while one is compiled: what takes longer in one is made up for by another.
_AHEAD = 2
#: Seconds between two looks at whether the results are there that a batch of a guided campaign depends on.
_WAIT = 0.05
#: Objects made between two garbage collections; with Python's 700 they take a tenth of a campaign's time.
_ALLOCATIONS = 100_000
#: Priority of a campaign beside the workers of its plugins.
_NICE = 10
#: A batch, and who is at work on it.
_Pending: TypeAlias = tuple[OpenBatch, list[Future[None]]]


def run_campaign(
    plan: Plan,
    selection: Selection,
    pool: Pool,
    progress: Report | None = None,
    *,
    threads: int = 1,
    bundles: Path | None = None,
    path: str | Path = MEMORY,
    reduce: Callable[[Worksite], None] = reducing.reduce_all,
) -> Campaign:
    """Run a campaign to its end, or until a KeyboardInterrupt, in this process.

    Parameters
    ----------
    path
        Its store, which is made if it is not there.
    threads
        Executors that run at a time.
    bundles
        Folder for the bundles of findings; None for none.
    reduce
        Reduces what disagrees when all is checked.

    Returns
    -------
    Campaign
        What a report shows, `interrupted` if it did not come to its end; the programs depend on `plan.seed` alone.
    """
    with Store(path, create=True) as store:
        stream = begin(store, plan, selection)
        site = Worksite(
            store,
            stream,
            selection.executors,
            pool,
            threads=threads,
            bundles=bundles,
            confirms=False,
            progress=progress,
        )
        interrupted = False
        try:
            work(site, alone=True, reduce=reduce)
        except KeyboardInterrupt:
            interrupted = True
        return replace(recorded(store, [store.stream(stream.id)]), interrupted=interrupted)


def begin(store: Store, plan: Plan, selection: Selection) -> Stream:
    """Write down a new campaign, or a shard of one."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    infos = (*(e.info() for e in selection.executors), *selection.missing)
    return store.begin(plan, infos, environment(), started)


def work(site: Worksite, *, alone: bool, reduce: Callable[[Worksite], None] = reducing.reduce_all) -> None:
    """Take batches until there are none, and reduce what disagrees.

    Parameters
    ----------
    alone
        This process is the whole campaign, which is not resumed: disagreements are reduced when all is checked, and when it
        is interrupted, the answers that there are are counted. Else disagreements are reduced at once.
    reduce
        Reduces what is left when there are no more batches.
    """
    pending: list[_Pending] = []
    batches = _batches(site, pending)
    first = list(islice(batches, 1))
    for executor in site.executors if first else ():  # reducing starts those that it needs
        executor.open()  # in this thread: the kernel ends a worker process with the thread that started it
    with _one_of_many(), _threads(site) as threads:
        try:
            for batch in chain(first, batches):
                if batch.held.claims > _CLAIMS:
                    _finish_all(site, pending)  # if this process ends now, it must be because of this batch
                    judging.judge_alone(site, batch)
                    _finish(site, [(batch, [])])
                    continue
                judging.prepare_references(site, batch)
                submitted = [threads.submit(judging.judge_group, site, group, batch) for group in batch.groups]
                pending.append((batch, submitted))
                if len(pending) > _AHEAD:
                    _finish(site, pending)
                    if not alone:
                        reducing.reduce_some(site)
            _finish_all(site, pending)
            reduce(site)
        except KeyboardInterrupt:
            if alone:
                for batch, _ in pending:
                    if site.store.holds(batch.held, site.owner):  # the first may have been sealed just now
                        judging.seal_answered(site, batch)
            raise
        finally:
            site.lap("check")
            site.flush()


@contextlib.contextmanager
def _threads(site: Worksite) -> Iterator[ThreadPoolExecutor]:
    """Threads for the groups of executors; an interruption ends what they wait for."""
    with ThreadPoolExecutor(max_workers=max(1, min(site.threads, len(site.groups)))) as threads:
        try:
            yield threads
        except KeyboardInterrupt:
            children.interrupted.set()
            threads.shutdown(cancel_futures=True)
            children.interrupted.clear()
            raise


def reduce_rest(site: Worksite) -> None:
    """Reduce what disagrees and is not reduced yet."""
    for executor in site.executors:
        executor.open()
    with _one_of_many():
        reducing.reduce_all(site)
    site.flush()


def _batches(site: Worksite, pending: list[_Pending]) -> Iterator[OpenBatch]:
    guided = config_of(site.stream.plan.generate).guided
    while held := site.store.claim(site.stream.id, site.owner):
        while guided and not is_open(site.store, site.stream, held.number):
            _finish_all(site, pending)  # others may wait for these
            time.sleep(_WAIT)
        site.lap("check")
        batch = judging.open_batch(site, held)
        site.lap("generate")
        yield batch


def _finish_all(site: Worksite, pending: list[_Pending]) -> None:
    while pending:
        _finish(site, pending)


def _finish(site: Worksite, pending: list[_Pending]) -> None:
    """Wait for the answers to the first batch, count them, locate what disagrees, seal the batch."""
    batch, answers = pending[0]
    for future in answers:
        future.result()
    judging.seal(site, batch)
    del pending[0]
    site.lap("check")
    site.flush()
    site.report("check")


@contextlib.contextmanager
def _one_of_many() -> Iterator[None]:
    """Settings of a process that shares the machine with as many others as there are cores.

    BLAS has one thread: matrices are small, and a second thread would spin for a while after each product. Garbage is
    collected rarely: the thousands of objects of a batch refer to each other in no circle. Plugins that compile on every
    core go first: the next batch can be prepared while they do not.
    """
    usual, priority = gc.get_threshold(), os.getpriority(os.PRIO_PROCESS, 0)
    gc.set_threshold(_ALLOCATIONS, *usual[1:])
    os.setpriority(os.PRIO_PROCESS, 0, max(priority, _NICE))  # of this thread, and those that it starts
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        gc.set_threshold(*usual)
        with contextlib.suppress(PermissionError):  # only root may go back
            os.setpriority(os.PRIO_PROCESS, 0, priority)


def environment() -> tuple[tuple[str, str], ...]:
    """Versions and machine, for reports and bundles."""
    return (
        ("tenferro-ref", __version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("processor", _processor()),
        ("cores", str(os.cpu_count())),
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"
