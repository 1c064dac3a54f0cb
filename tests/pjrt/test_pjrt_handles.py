"""Handles of the client: closed ones are not used, and nothing is destroyed twice, too early or not at all."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt import Client, HandleState, load_plugin
from tests.pjrt.conftest import MakeClient, MakePlugin
from tests.pjrt.test_pjrt_contract import X, Y, compiled, live


def test_closed_handles_are_not_used(fake_client: MakeClient) -> None:
    client = fake_client()
    executable, buffer = compiled(client), client.put(X)
    event = buffer.ready_event()
    for handle in (event, buffer, executable):
        states = [handle.state]
        for _ in range(2):
            handle.close()
            states.append(handle.state)
        assert states == [HandleState.LIVE, HandleState.CLOSED, HandleState.CLOSED]
    for use in (event.ready, event.wait, buffer.numpy, buffer.ready_event, executable.serialize):
        with pytest.raises(PjrtCall, match="is closed"):
            use()
    with pytest.raises(PjrtCall, match="is closed"):
        executable.run([X, Y])


def test_closing_a_client_closes_what_it_made(fake_client: MakeClient) -> None:
    client = fake_client()
    executable, buffer = compiled(client), client.put(X)
    client.close()
    assert live(client) == 0
    assert {executable.state, buffer.state, client.state} == {HandleState.CLOSED}
    for use in (
        lambda: compiled(client),
        lambda: client.put(X),
        lambda: client.deserialize(b""),
        lambda: client.devices,
        lambda: client.platform_name,
        buffer.numpy,
    ):
        with pytest.raises(PjrtCall, match="is closed"):
            use()


def test_dropped_handles_are_destroyed(fake_client: MakeClient) -> None:
    client = fake_client()
    before = live(client)
    compiled(client)
    client.put(X).ready_event()
    gc.collect()
    assert live(client) == before


@pytest.mark.parametrize("order", [1, -1])
def test_a_client_outlives_what_it_made_in_a_cycle_of_garbage(
    fake_plugin: MakePlugin, monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    """Python forgets weak references to garbage before it ends it: an exception's traceback is such a cycle."""
    client = Client(load_plugin(fake_plugin()))
    destroyed: list[str] = []
    destroy = type(client._api).destroy

    def logged(api: Any, name: str, raw: int) -> None:
        destroyed.append(name)
        destroy(api, name, raw)

    monkeypatch.setattr(type(client._api), "destroy", logged)
    cycle: list[object] = [client, client.put(X), client.put(Y)][::order]
    cycle.append(cycle)
    del client, cycle
    gc.collect()
    assert [name for name in destroyed if name in ("Client", "Buffer")] == ["Buffer", "Buffer", "Client"]


def test_event_with_a_deadline(fake_client: MakeClient) -> None:
    with fake_client("never_ready").put(X) as buffer, buffer.ready_event() as event:
        assert not event.ready()
        with pytest.raises(PjrtCall, match=r"not ready after 0\.02 s") as caught:
            event.wait(0.02)
        assert caught.value.code == "DEADLINE_EXCEEDED"
    with fake_client().put(X) as buffer, buffer.ready_event() as event:
        assert event.ready()
        event.wait()
        event.wait(1)
