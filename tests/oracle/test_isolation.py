"""Workers: native code that aborts, crashes, hangs or grows ends as a typed error, and the next request works."""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, PjrtExecutor
from oracle.verdict import Verdict
from tenferro_ref import ops
from tenferro_ref.dims import InputDim
from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import (
    OutputError,
    PjrtCall,
    PluginLoad,
    ResourceExhausted,
    ShapeMismatch,
    WorkerDied,
)
from tenferro_ref.isolation import Worker, WorkerSpec, wire
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.program import GraphBuilder
from tests.fake_plugin.build import build_plain_library, c_compiler, write_text_library

CODE = """module {
  func.func @main(%arg0: tensor<2x3xf64>) -> tensor<2x3xf64> {
    return %arg0 : tensor<2x3xf64>
  }
}
"""
X = np.asfortranarray(np.arange(6.0).reshape(2, 3))
MakeWorker = Callable[..., Worker]


def request(x: np.ndarray = X) -> wire.Message:
    spec = [["F64", [2, 3]]]
    return {"code": CODE, "options": {}, "parameters": spec, "results": spec, "input_sets": [[wire.pack(x)]]}


@pytest.fixture
def worker(fake_library: Path) -> Iterator[MakeWorker]:
    made: list[Worker] = []

    def make(mode: str = "", **spec: float) -> Worker:
        ref = PluginRef("fake", str(fake_library), "test", environment={"FAKE_PJRT_MODE": mode})
        made.append(Worker("fake", WorkerSpec(ref, **spec)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_worker_answers_and_keeps_its_process(worker: MakeWorker) -> None:
    w = worker()
    (outputs,) = w.request(request())["output_sets"]
    pid = w.pid
    assert np.array_equal(wire.unpack(outputs[0]), X)
    w.request(request())
    assert w.pid == pid
    assert w.facts["platform"]


@pytest.mark.parametrize(
    ("mode", "signal"),
    [
        ("compile_abort", "SIGABRT"),
        ("compile_segv", "SIGSEGV"),
        ("execute_abort", "SIGABRT"),
        ("execute_segv", "SIGSEGV"),
    ],
)
def test_a_crash_is_reported_with_its_signal_and_the_worker_is_replaced(
    worker: MakeWorker, mode: str, signal: str
) -> None:
    w = worker(mode)
    for death in (1, 2):
        with pytest.raises(WorkerDied) as caught:
            w.request(request())
        assert caught.value.how == f"signal {signal}"
        assert f"the fake plugin was asked for {mode}" in caught.value.stderr_tail.splitlines()
        assert w.deaths == death


def test_a_crash_is_told_from_a_hang_where_something_that_it_started_goes_on(worker: MakeWorker) -> None:
    w = worker("forks_and_ends")
    with pytest.raises(WorkerDied) as caught:
        w.request(request())
    assert caught.value.how == "signal SIGSEGV"


def test_a_worker_outlives_the_thread_that_started_it(worker: MakeWorker) -> None:
    w = worker()
    with ThreadPoolExecutor(1) as thread:
        facts = thread.submit(lambda: w.facts).result()
    assert facts["platform"] == "fake"  # and no attribute of that name
    assert w.request(request())["output_sets"]
    assert w.deaths == 0


def test_a_worker_that_another_thread_closes_is_a_typed_error(worker: MakeWorker) -> None:
    w = worker("execute_hang")
    assert w.facts
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(lambda: w.request(request()))
        while answer.running() and not w._lock.locked():
            time.sleep(0.01)
        w.close()
        with pytest.raises(WorkerDied):
            answer.result(timeout=30)


@pytest.mark.parametrize("mode", ["compile_hang", "execute_hang", "never_ready"])
def test_a_hang_ends_at_the_time_limit(worker: MakeWorker, mode: str) -> None:
    w = worker(mode, request_seconds=0.5)
    start = time.monotonic()
    with pytest.raises(WorkerDied, match=r"timeout after 0\.5 s"):
        w.request(request())
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        ("initialize_abort", "signal SIGABRT"),
        ("initialize_segv", "signal SIGSEGV"),
        ("initialize_hang", "timeout after 6 s"),
    ],
)
def test_a_plugin_that_does_not_survive_its_loading(worker: MakeWorker, mode: str, how: str) -> None:
    w = worker(mode, start_seconds=6.0 if "hang" in mode else 60.0)
    with pytest.raises(WorkerDied) as caught:
        w.request(request())
    assert caught.value.how == how
    assert f"asked for {mode}" in caught.value.stderr_tail


@pytest.mark.parametrize(
    "mode", ["null_table", "short_table:20", "major_version", "initialize_error:14", "client_error:9"]
)
def test_a_plugin_that_cannot_be_used_is_the_clients_error(worker: MakeWorker, mode: str) -> None:
    w = worker(mode)
    with pytest.raises(PjrtCall):
        w.request(request())
    assert w.deaths == 0


def test_a_leak_ends_at_the_memory_limit(worker: MakeWorker) -> None:
    w = worker("leak:64", memory_bytes=512 << 20)
    message = request()
    message["input_sets"] *= 100
    with pytest.raises(WorkerDied, match="memory beyond 512 MiB"):
        w.request(message)


def test_a_typed_error_keeps_the_worker_alive(worker: MakeWorker) -> None:
    w = worker("compile_error")
    for _ in range(2):
        with pytest.raises(PjrtCall, match="PJRT_Client_Compile"):
            w.request(request())
    assert w.deaths == 0


# --- the socket -------------------------------------------------------------------------------------------------------


@pytest.fixture
def odd() -> Iterator[Worker]:
    """A worker that serves `tests.oracle.odd_engine`."""
    with Worker("odd", WorkerSpec("tests.oracle.odd_engine", request_seconds=2.0)) as made:
        yield made


def test_a_stopped_worker_that_reads_nothing_ends_at_the_time_limit(odd: Worker) -> None:
    data = bytes(10 << 20)  # more than a socket holds
    assert odd.request({"then": "answer", "data": data}) == {"size": len(data)}
    assert odd.pid is not None
    os.kill(odd.pid, signal.SIGSTOP)
    start = time.monotonic()
    with pytest.raises(WorkerDied, match=r"timeout after 2 s"):
        odd.request({"then": "answer", "data": data})
    assert 1.5 < time.monotonic() - start < 15
    assert odd.request({"then": "answer"}) == {"size": 0}


@pytest.mark.parametrize(
    ("written", "then", "how"),
    [
        (b"\0\0\0", "hang", "timeout after 1 s"),  # a part of the length
        (struct.pack(">Q", 100) + b"abc", "hang", "timeout after 1 s"),  # a part of the message
        (struct.pack(">Q", 100) + b"abc", "hide", "its socket closed"),
        (b"WARNING: something", "hang", "its length is"),
        (struct.pack(">Q", 3) + b"\xc1\xc1\xc1", "hang", "not msgpack"),
        (struct.pack(">Q", 1) + b"\x01", "hang", "a int, expected a map"),
        (struct.pack(">Q", 6) + b"\x81\xa1a\x93\x91\x91", "hang", "not msgpack"),
        (struct.pack(">Q", 1) + b"\x80", "hang", "cannot be read: 'output_sets'"),
        (struct.pack(">Q", 8) + b"\x81\xa5error\x01", "hang", "cannot be read"),
    ],
)
def test_what_is_no_message_is_a_dead_worker(
    odd: Worker, monkeypatch: pytest.MonkeyPatch, written: bytes, then: str, how: str
) -> None:
    monkeypatch.setattr("tenferro_ref.isolation.process._END_SECONDS", 0.5)
    odd.spec = replace(odd.spec, request_seconds=1.0)
    with pytest.raises(WorkerDied, match=how):
        odd.request({"then": then, "write": written}, wire.output_sets)
    assert odd.deaths == 1


def test_an_interrupted_request_leaves_no_answer_behind(odd: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    odd.request({"then": "answer"})
    monkeypatch.setattr(odd, "_resident", interrupt)
    with pytest.raises(KeyboardInterrupt):
        odd.request({"then": "answer", "data": b"one"})
    monkeypatch.undo()
    assert odd.request({"then": "answer"}) == {"size": 0}


@pytest.mark.parametrize("spare", range(-1, 3))
def test_a_worker_that_cannot_be_started_is_a_typed_error(worker: MakeWorker, spare: int) -> None:
    """By file descriptors that remain: for its log, for the connection, for the pipes of a new process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    starved = worker()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1 + spare, hard))
    try:
        with pytest.raises((OutputError, ResourceExhausted), match="Too many open files"):
            starved.request(request())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    starved.request(request())


@pytest.mark.parametrize("mode", ["wrong_shape", "wrong_dtype", "fewer_outputs", "announce_shape"])
def test_a_plugin_that_breaks_the_contract_is_a_typed_error(worker: MakeWorker, mode: str) -> None:
    with pytest.raises(PjrtCall):
        worker(mode).request(request())


@pytest.mark.parametrize("make", [lambda folder: folder / "no.so", build_plain_library, write_text_library])
def test_a_plugin_that_cannot_be_loaded_is_the_loaders_error(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    if c_compiler() is None:
        pytest.skip("no C compiler to build a library with")
    file = make(tmp_path)
    with (
        Worker("odd", WorkerSpec(PluginRef("odd", str(file), "test"))) as w,
        pytest.raises(PluginLoad, match=file.name),
    ):
        w.request(request())


@pytest.mark.nightly
def test_every_misbehaviour_has_its_verdict(fake_library: Path) -> None:
    """The plugin as an executor of a program that copies, so that what it gives by default is right."""
    b = GraphBuilder()
    case = Case.of(b.build(b.apply(ops.Transpose((0, 1)), b.input("F64", (2, 3)))), [X])
    reference = Reference(case, NativeExecutor())
    found = {}
    for mode in VERDICTS:
        ref = PluginRef("fake", str(fake_library), "test", environment={"FAKE_PJRT_MODE": mode})
        with Worker("fake", WorkerSpec(ref, request_seconds=1.0 if mode == "never_ready" else 30.0)) as w:
            found[mode] = judge(PjrtExecutor("pjrt:fake", w, plugin=ref, reader=Reader()), reference).verdict
    assert found == VERDICTS


VERDICTS = {
    "": Verdict.PASS,
    "offset": Verdict.MISMATCH,
    "wrong_shape": Verdict.ERROR,
    "wrong_dtype": Verdict.ERROR,
    "fewer_outputs": Verdict.ERROR,
    "compile_error:12": Verdict.UNSUPPORTED,
    "execute_error:13": Verdict.ERROR,
    "event_error:8": Verdict.ERROR,
    "execute_abort": Verdict.CRASH,
    "never_ready": Verdict.TIMEOUT,
}


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_arrays_travel_unchanged(dtype: DType, shape: tuple[int, ...]) -> None:
    x = np.asfortranarray(np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype.numpy))
    x = x.reshape(shape, order="F")
    y = wire.unpack(wire.pack(x))
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    assert y.tobytes("F") == x.tobytes("F")


def test_errors_travel_with_kind_and_facts() -> None:
    error = ShapeMismatch(op="Add", lhs=(2, 3), rhs=(3,))
    back = wire.unpack_error(wire.pack_error(error))
    assert type(back) is ShapeMismatch
    assert back.facts() == error.facts()


def test_facts_that_are_no_plain_values_cross_the_wire_as_words() -> None:
    error = ShapeMismatch("Add", (InputDim(0, 0),), (2**70,))
    assert wire.pack_error(error)["facts"]["rhs"] == [str(2**70)]
    here, there = socket.socketpair()
    with here, there:
        wire.Channel(here).send({"error": wire.pack_error(error), "where": "x\udcff.mlir"})
        assert wire.Channel(there).receive()["where"] == "x\udcff.mlir"
