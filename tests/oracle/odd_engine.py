"""An engine that writes what it is told to the worker's socket, as native code in a worker can."""

from __future__ import annotations

import os
import sys
import time

from tenferro_ref.isolation.engine import Engine
from tenferro_ref.isolation.wire import Message


def open(settings: Message) -> Engine:
    """Requests: `write`, bytes that go to the socket raw; `then`, "answer", "hang", or "hide" (close the socket, live on)."""

    def answer(request: Message) -> Message:
        descriptor = int(sys.argv[1])
        os.write(descriptor, request.get("write", b""))
        if request["then"] == "hide":
            os.close(descriptor)
        if request["then"] != "answer":
            time.sleep(60)
        return {"size": len(request.get("data", b""))}

    return Engine({}, answer)
