"""The engine of conformance: a plugin in a worker process, and the probes by name.

A request is `{"probe": NAME, "patience": SECONDS}`, its answer `{"outcome": "holds" | "fails" | "skipped", "detail": TEXT}`. A
request `{"facts": True}` is answered with what the plugin says of itself, whether it was loaded, why it makes no client ("" if
it makes one), and what its client cannot say of itself ("" for nothing): all are results, too.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz.conform.probes import PROBES, Fails, Lacks, Session
from tenferro_ref.errors import PjrtCall, TenferroError
from tenferro_ref.isolation.engine import Engine
from tenferro_ref.isolation.wire import Message
from tenferro_ref.pjrt import PluginRef

#: What a plugin can be for a program, and the function without which it is not.
ROLES = {
    "client": "Client_Create",
    "compiler": "Client_Compile",
    "compiler without devices": "Compile",
    "transfers": "Client_BufferFromHostBuffer",
    "asynchronous transfers": "Client_CreateBuffersForAsyncHostToDevice",
    "loader of executables": "Executable_DeserializeAndLoad",
}
#: What a status says if the plugin has not got something, rather than doing it wrong.
LACKING = ("UNIMPLEMENTED",)


def open(settings: Message) -> Engine:
    """Prepare to load the plugin (`settings` are the fields of a PluginRef)."""
    session = Session(PluginRef(**settings))

    def answer(request: Message) -> Message:
        if "facts" in request:
            return _facts(session)
        outcome, detail = "holds", ""
        try:
            session.patience = request["patience"]
            PROBES[request["probe"]](session)
        except Fails as error:
            outcome, detail = "fails", str(error)
        except Lacks as error:
            outcome, detail = "skipped", str(error)
        except PjrtCall as error:
            outcome = "skipped" if error.code in LACKING else "fails"
            detail = str(error)
        except TenferroError as error:
            outcome, detail = "fails", str(error)
        return {"outcome": outcome, "detail": detail}

    return Engine({}, answer)


def _facts(session: Session) -> Message:
    """What the plugin says of itself, and of its client if it makes one."""
    facts: dict[str, str] = {}
    try:
        plugin = session.plugin
    except TenferroError as error:
        return {"facts": facts, "loaded": False, "no_client": str(error), "untold": ""}
    facts |= {"PJRT API": ".".join(map(str, plugin.api_version)), "table": f"{session.api.struct_size} bytes"}
    facts["extensions"] = ", ".join(plugin.extensions)
    facts["roles"] = ", ".join(role for role, function in ROLES.items() if session.api.has(function))
    untold = list[str]()

    def tell(name: str, said: Callable[[], str]) -> None:
        try:
            facts[name] = said()
        except TenferroError as error:
            untold.append(str(error))

    try:
        for name, value in sorted(plugin.attributes.items()):
            facts[name] = ".".join(map(str, value)) if isinstance(value, tuple) else str(value)
    except TenferroError as error:
        untold.append(str(error))
    try:
        client = session.client
    except (Lacks, TenferroError) as error:
        return {"facts": facts, "loaded": True, "no_client": str(error).removeprefix("no client: "), "untold": ""}
    tell("platform", lambda: client.platform_name)
    tell("platform version", lambda: client.platform_version)
    tell("devices", lambda: ", ".join(f"{device.id} {device.kind}" for device in client.devices))
    return {"facts": facts, "loaded": True, "no_client": "", "untold": "; ".join(untold)}
