"""Campaigns on a real cluster of two processes on this machine, as a user runs them; one is killed on the way."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzz.campaign import cluster
from fuzz.campaign.audit import audit
from fuzz.campaign.recorded import recorded
from fuzz.records import Campaign
from fuzz.store import Store, Stream
from tenferro_ref.errors import UsageError
from tests.e2e.command import Run, assert_one_line_error
from tests.fuzz.test_campaign_commands import NATIVE, fuzz
from tests.libraries import module_or_skip
from tools.torture import _differences

pytestmark = pytest.mark.once


def local_cluster(workers: int = 2, *, processes: bool = True) -> Any:
    """Workers of one thread each."""
    return module_or_skip("distributed").LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=processes,
        protocol="tcp",
        dashboard_address=":0",
        silence_logs="CRITICAL",
    )


@contextlib.contextmanager
def in_mid_run(store: Path, act: Callable[[], object]) -> Iterator[None]:
    """Does something as soon as a part has come back to the store and another one is still out."""

    def wait() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with contextlib.suppress(sqlite3.OperationalError):  # not there yet
                with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as base:
                    (done, out) = base.execute("SELECT count(nullif(digest, '')), count(*) FROM batch").fetchone()
                if 0 < done < out:
                    act()
                    return
            time.sleep(0.02)

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


#: Three parts for two workers: one of them has the third when the first comes back.
PROGRAMS = 96
SIMPLE = ("--generate", "derivatives=0", "--generate", "modules=0")
WHAT = ("--seed", 4, "--programs", PROGRAMS, *SIMPLE, *NATIVE)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """The same campaign, in peace."""
    path = tmp_path_factory.mktemp("whole") / "s.sqlite"
    assert fuzz("run", path, *WHAT, "--workers", 1).status == 0
    return sound(path)


def sound(path: Path) -> Campaign:
    with Store(path) as store:
        assert audit(store, regenerate=100) == []
        return recorded(store, store.shards())


def busy_process(found: Any) -> int:
    """The process of a worker that has a part at hand; another one's death would go unnoticed."""
    for _ in range(1000):
        busy = {state.address for state in found.scheduler.workers.values() if state.processing}
        for worker in found.workers.values():
            if worker.worker_address in busy:
                return int(worker.process.pid)
        time.sleep(0.02)
    raise TimeoutError("no worker has anything at hand")


def test_with_a_machine_lost_on_the_way_it_is_the_same_campaign(tmp_path: Path, whole: Campaign) -> None:
    store = tmp_path / "s.sqlite"
    with local_cluster() as found, in_mid_run(store, lambda: os.kill(busy_process(found), signal.SIGKILL)):
        run = fuzz("run", store, *WHAT, "--scheduler", found.scheduler_address, "--json")
    assert run.status == 0, run
    assert run.rows[0]["worker_deaths"] >= 1
    assert sound(store).programs == PROGRAMS
    assert _differences(sound(store), whole) == []


def without_progress(run: Run) -> Run:
    """A run of more than 10 s has said how far it is."""
    error = "\n".join(line for line in run.err.splitlines() if not line.startswith("checking programs ("))
    return replace(run, err=error)


@pytest.mark.nightly
def test_a_scheduler_that_goes_away_ends_the_run_and_loses_nothing(tmp_path: Path, whole: Campaign) -> None:
    store = tmp_path / "s.sqlite"
    with local_cluster() as found, in_mid_run(store, found.close):
        run = fuzz("run", store, *WHAT, "--scheduler", found.scheduler_address, "--json")
    assert_one_line_error(without_progress(run), 3, "the scheduler is gone", "fuzz resume")
    assert 0 < sound(store).programs < PROGRAMS
    assert fuzz("resume", store, "--workers", 1).status == 0
    assert _differences(sound(store), whole) == []


@pytest.mark.nightly
def test_findings_come_with_their_bundles(tmp_path: Path, fake_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKE_PJRT_MODE", raising=False)
    store = tmp_path / "s.sqlite"
    limits = ("--programs", 2, "--reduce-seconds", 1, "--max-findings", 1, "--no-fresh-venv")
    with local_cluster() as found:
        at = ("--scheduler", found.scheduler_address)
        run = fuzz("run", store, "--seed", 2, "--executors", f"pjrt:{fake_library}", *limits, *at, "--json")
        assert run.status == 1, run
        assert len(run.rows[0]["new"]) == 1
        (row,) = fuzz("findings", store, "--json").rows
        assert row["confirmed"] is True
        assert fuzz("replay", Path(f"{store}.findings") / row["id"], "--allow-commands").status == 1
    sound(store)


def test_bad_calls_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module_or_skip("distributed")
    store = tmp_path / "s.sqlite"
    for address in ("host:8786", "tcp://host", "tcp://host:port", "tcp://host:1/x", ""):
        assert_one_line_error(fuzz("run", store, *NATIVE, "--scheduler", address), 2, "tcp://host:8786")
    here = "tcp://127.0.0.1:9"
    assert_one_line_error(fuzz("run", store, *NATIVE, "--scheduler", here, "--workers", 2), 2, "--workers")
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.2)
    assert_one_line_error(fuzz("run", store, *NATIVE, "--scheduler", here), 3, here, "dask scheduler")
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert_one_line_error(fuzz("run", store, *NATIVE, "--scheduler", here), 3, "tenferro-ref[dask]")
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_UNMANNED_SECONDS", 0.5)
    with local_cluster(0) as found:
        run = fuzz("run", tmp_path / "s.sqlite", *WHAT, "--scheduler", found.scheduler_address)
    assert_one_line_error(run, 3, "no worker", f"dask worker {found.scheduler_address}", "fuzz resume")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("__version__", "0.0.0", "not 0.0.0"), ("check_generator", "refuses", "generates other programs from seed 4")],
)
def test_a_machine_that_is_not_like_this_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    def refuses(store: Store, stream: Stream) -> None:
        if store.done(stream.id)[0]:
            raise UsageError(detail="other programs")

    monkeypatch.setattr(cluster, name, refuses if value == "refuses" else value)
    store = tmp_path / "s.sqlite"
    with local_cluster(1, processes=name == "__version__") as found:  # this process's version, not the other's
        run = fuzz(
            "run", store, "--seed", 4, "--programs", 2, *NATIVE, "--scheduler", found.scheduler_address, "--json"
        )
    assert_one_line_error(without_progress(run), 3, f"machine {socket.gethostname()}", words)
    assert sound(store).programs == 0
