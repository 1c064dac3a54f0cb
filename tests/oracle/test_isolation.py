"""Workers: native code that aborts, crashes, hangs or grows ends as a typed error, and the next request works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from oracle.isolation import Worker, WorkerSpec, wire
from tenferro_ref.dtype import DType
from tenferro_ref.errors import PjrtCall, PluginLoad, ShapeMismatch, WorkerDied
from tenferro_ref.pjrt import PluginRef

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
        assert w.deaths == death


@pytest.mark.parametrize("mode", ["compile_hang", "execute_hang", "never_ready"])
def test_a_hang_ends_at_the_time_limit(worker: MakeWorker, mode: str) -> None:
    w = worker(mode, request_seconds=0.5)
    start = time.monotonic()
    with pytest.raises(WorkerDied, match=r"timeout after 0\.5 s"):
        w.request(request())
    assert time.monotonic() - start < 10


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


@pytest.mark.parametrize("mode", ["wrong_shape", "wrong_dtype", "fewer_outputs", "announce_shape"])
def test_a_plugin_that_breaks_the_contract_is_a_typed_error(worker: MakeWorker, mode: str) -> None:
    with pytest.raises(PjrtCall):
        worker(mode).request(request())


def test_a_plugin_that_cannot_be_loaded_is_the_loaders_error(tmp_path: Path) -> None:
    with Worker("absent", WorkerSpec(PluginRef("absent", str(tmp_path / "no.so"), "test"))) as w:  # noqa: SIM117
        with pytest.raises(PluginLoad, match=r"no\.so"):
            w.request(request())


@pytest.mark.parametrize("dtype", list(DType))
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
