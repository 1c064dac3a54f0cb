"""Executions that go on in the background: what returns at once, how an error that comes late reaches the caller, and callbacks."""

from __future__ import annotations

import gc
import sys
import threading
import time
from queue import SimpleQueue

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt import Buffer, Client, Executable, HandleState, TensorSpec
from tests.pjrt.conftest import MakeClient
from tests.pjrt.test_pjrt_contract import X, Y, compiled, live


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> float:
    """Every execution of the fake plugin takes that many seconds."""
    monkeypatch.setenv("FAKE_PJRT_DELAY", "300")
    return 0.3


def ready(buffer: Buffer) -> bool:
    with buffer.ready_event() as event:
        return event.ready()


def chain(executable: Executable, buffers: list[Buffer], length: int) -> list[Buffer]:
    for _ in range(length):
        buffers = executable.execute(buffers)
    return buffers


def test_results_come_before_their_contents(fake_client: MakeClient, slow: float) -> None:
    client = fake_client()
    executable, inputs = compiled(client), [client.put(X), client.put(Y)]
    start = time.monotonic()
    results = chain(executable, inputs, 3)
    assert time.monotonic() - start < slow
    assert [ready(buffer) for buffer in results] == [False, False]
    np.testing.assert_array_equal(results[0].numpy(), X)
    assert time.monotonic() - start >= 3 * slow
    results[1].wait()
    assert [ready(buffer) for buffer in results] == [True, True]


def test_waiting_with_a_deadline(fake_client: MakeClient, slow: float) -> None:
    client = fake_client()
    (result, _) = compiled(client).execute([client.put(X), client.put(Y)])
    with pytest.raises(PjrtCall, match="not ready after") as caught:
        result.wait(0.01)
    assert caught.value.code == "DEADLINE_EXCEEDED"
    result.wait(60)


def test_a_late_error_reaches_the_reader_of_what_comes_of_it(
    fake_client: MakeClient, slow: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = fake_client("event_error:15")
    executable, inputs = compiled(client), [client.put(X), client.put(Y)]
    before = live(client)
    failed = executable.execute(inputs)
    monkeypatch.setenv("FAKE_PJRT_MODE", "")  # later executions go well, and know nothing of the error
    later = chain(executable, failed, 2)
    for buffer in (*failed, *later):
        for use in (buffer.numpy, buffer.wait, buffer.numpy):
            with pytest.raises(PjrtCall, match="asked to fail later") as caught:
                use()
            assert (caught.value.call, caught.value.code) == ("PJRT_LoadedExecutable_Execute", "DATA_LOSS")
    # what comes of other buffers is not concerned
    np.testing.assert_array_equal(executable.execute(inputs)[0].numpy(), X)
    del failed, later, buffer, use, caught
    gc.collect()
    assert live(client) == before


def test_only_executions_under_way_are_remembered(fake_client: MakeClient) -> None:
    client = fake_client()
    executable, buffers = compiled(client), [client.put(X), client.put(Y)]
    buffers = chain(executable, buffers, 50)
    assert len(buffers[0].executions) == 1
    buffers[0].numpy()
    assert buffers[0].executions == ()


def test_closing_a_client_while_a_program_runs(fake_client: MakeClient, slow: float) -> None:
    client = fake_client()
    results = chain(compiled(client), [client.put(X), client.put(Y)], 2)
    client.close()
    assert {buffer.state for buffer in results} == {HandleState.CLOSED}
    assert live(client) == 0
    for use in (results[0].numpy, results[0].wait):
        with pytest.raises(PjrtCall, match="is closed"):
            use()


@pytest.mark.parametrize(("mode", "code"), [("", None), ("event_error:8", "RESOURCE_EXHAUSTED")])
def test_callbacks(fake_client: MakeClient, slow: float, mode: str, code: str | None) -> None:
    client = fake_client(mode)
    before = live(client)
    came: SimpleQueue[tuple[PjrtCall | None, bool]] = SimpleQueue()
    here = threading.get_ident()
    results = compiled(client).execute([client.put(X), client.put(Y)])
    (event,) = results[0].executions
    for _ in range(3):
        event.on_ready(lambda error: came.put((error, threading.get_ident() == here)))
    event.close()  # the plugin still calls
    assert came.empty()
    for _ in range(3):
        error, same_thread = came.get(timeout=60)
        assert (None if error is None else error.code) == code
        assert not same_thread
    results.clear()
    gc.collect()
    assert live(client) == before


def test_a_callback_that_raises_is_reported_and_harms_nobody(
    fake_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: SimpleQueue[str] = SimpleQueue()
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.put(str(args.exc_value)))

    def callback(error: PjrtCall | None) -> None:
        raise RuntimeError("from a callback")

    with fake_client().put(X) as buffer, buffer.ready_event() as event:
        event.on_ready(callback)
        assert seen.get(timeout=60) == "from a callback"
        assert event.ready()


# --- real plugins -----------------------------------------------------------------------------------------------------

SIDE = 400
SQUARE: TensorSpec = (DType.F32, (SIDE, SIDE))
PRODUCT = f"""
func.func public @main(%a: tensor<{SIDE}x{SIDE}xf32>, %b: tensor<{SIDE}x{SIDE}xf32>) -> tensor<{SIDE}x{SIDE}xf32> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{SIDE}x{SIDE}xf32>, tensor<{SIDE}x{SIDE}xf32>) -> tensor<{SIDE}x{SIDE}xf32>
  return %0 : tensor<{SIDE}x{SIDE}xf32>
}}
"""


@pytest.mark.once
def test_a_chain_of_executions_on_a_real_plugin(client: Client) -> None:
    turned = np.roll(np.eye(SIDE, dtype=np.float32), 1, axis=1)
    came: SimpleQueue[PjrtCall | None] = SimpleQueue()
    with client.compile(PRODUCT, parameters=[SQUARE, SQUARE]) as executable, client.put(turned) as factor:
        result = factor
        for _ in range(20):
            (result,) = executable.execute([result, factor])
        with result.ready_event() as event:
            event.on_ready(came.put)
        assert came.get(timeout=60) is None
        np.testing.assert_array_equal(result.numpy(), np.roll(np.eye(SIDE), 21, axis=1))


@pytest.mark.once
def test_closing_everything_while_a_real_plugin_computes(client: Client) -> None:
    with Client(client.plugin) as other:
        executable = other.compile(PRODUCT, parameters=[SQUARE, SQUARE])
        result = other.put(np.ones((SIDE, SIDE), np.float32))
        for _ in range(5):
            (result,) = executable.execute([result, result])
    assert {result.state, executable.state} == {HandleState.CLOSED}
