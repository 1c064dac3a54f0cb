"""Events: they become ready, say so to whom they promised it, and carry errors."""

from __future__ import annotations

import time
from ctypes import CFUNCTYPE, c_void_p, cast

from fuzz.conform.probes.session import Fails, Lacks, Session, X, Y, same_bits
from fuzz.conform.probes.table import probe


@probe("events", "an uploaded buffer becomes ready")
def _(s: Session) -> None:
    s.need("Buffer_ReadyEvent")
    with s.client.put(X) as buffer, buffer.ready_event() as event:
        if not s.ready(event.raw):
            raise Fails(f"not after {s.patience:g} s")
        event.wait(s.patience)


@probe("events", "an execution ends, and its results become ready")
def _(s: Session) -> None:
    s.need("Buffer_ReadyEvent")
    with s.client.put(X) as x, s.client.put(Y) as y:
        made, done = s.execute(s.sum, [x.raw, y.raw])
        if not done:
            raise Fails("device_complete_events was asked for and is null")
        s.finish(done)
        s.finish(s.api.call("Buffer_ReadyEvent", buffer=made[0]).event)
        s.api.destroy("Buffer", made[0])


@probe("events", "an event may be awaited twice")
def _(s: Session) -> None:
    s.need("Buffer_ReadyEvent")
    with s.client.put(X) as buffer, buffer.ready_event() as event:
        for _ in range(2):
            if not s.ready(event.raw):
                raise Fails(f"not ready after {s.patience:g} s")
            event.wait()


@probe("events", "OnReady calls once, without an error")
def _(s: Session) -> None:
    s.need("Buffer_ReadyEvent", "Event_OnReady")
    calls: list[int] = []
    callback = CFUNCTYPE(None, c_void_p, c_void_p)(lambda error, _: calls.append(error or 0))
    with s.client.put(X) as buffer, buffer.ready_event() as event:
        s.api.call("Event_OnReady", event=event.raw, callback=cast(callback, c_void_p))
        deadline = time.monotonic() + s.patience
        while not calls and time.monotonic() < deadline:
            time.sleep(1e-3)
        time.sleep(1e-2)
    if calls != [0]:
        raise Fails(f"{len(calls)} calls" + (", with an error" if any(calls) else f" in {s.patience:g} s"))


@probe("events", "results of one execution are arguments of the next before they are ready")
def _(s: Session) -> None:
    with s.client.put(X) as x, s.client.put(Y) as y:
        made, events, value = [x.raw], [], x.raw
        for _ in range(16):
            (value,), done = s.execute(s.sum, [value, y.raw])
            made.append(value)
            events.append(done)
        for event in events:
            s.finish(event)
        want = X.copy()
        for _ in range(16):
            want = want + Y
        try:
            same_bits(s.download(value, want * 0), want, "x + 16 y")
        finally:
            for raw in made[1:]:
                s.api.destroy("Buffer", raw)


@probe("events", "an event that is ready has no error")
def _(s: Session) -> None:
    s.need("Buffer_ReadyEvent", "Event_Error")
    with s.client.put(X) as buffer, buffer.ready_event() as event:
        if not s.ready(event.raw):
            raise Lacks("the event is not ready")
        s.api.call("Event_Error", event=event.raw)
