"""Calls through a plugin's function table, and its errors as `PjrtCall`.

Lives here: which functions a table has, how one is called, how a PJRT_Error becomes an exception, and the life of a
handle (LIVE, CLOSED). Does not live here: what is called when (`client`, `executable`, `buffer`), and how a table is
found (`plugin`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from ctypes import CFUNCTYPE, addressof, c_int64, c_void_p, string_at
from enum import Enum
from struct import Struct
from types import TracebackType
from typing import Any, ClassVar, Self

from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt import abi

# every function of the table takes one pointer to its arguments and returns a PJRT_Error* or nothing; CFUNCTYPE lets
# other Python threads run during the call
PROTOTYPE = CFUNCTYPE(c_void_p, c_void_p)
_Function = Callable[[Any], "int | None"]

_IS_READY = abi.ARGS["Event_IsReady"]
_LOOKS = 32
#: The arguments of a function of one handle that gives nothing back: size of the struct, extensions, handle. Packed they cost half
#: of what a ctypes struct does, and there are more such calls in a run than others.
_ONE_HANDLE = Struct("NPP")
_DESTROY = {name.removesuffix("_Destroy"): name for name in abi.ARGS if name.endswith("_Destroy")}

Attribute = str | int | float | bool | tuple[int, ...]


class _Functions(dict[str, _Function]):
    """Functions of a table by name, each bound when it is first asked for."""

    def __init__(self, bind: Callable[[str], _Function]) -> None:
        self._bind = bind

    def __missing__(self, name: str) -> _Function:
        function = self[name] = self._bind(name)
        return function


class Api:
    """The function table of one loaded plugin.

    Parameters
    ----------
    address
        Where the plugin's PJRT_Api is; it lives as long as the process.

    Raises
    ------
    PjrtCall
        If the table is too short to hold its version, or has another major version, or is older than 0.57.
    """

    def __init__(self, address: int) -> None:
        table = abi.STRUCTS["Api"]
        self.address = address
        self.struct_size = int(abi.Sized.from_address(address).struct_size)
        if self.struct_size < abi.API_HEADER_SIZE:
            raise PjrtCall(
                "GetPjrtApi", "", f"the table says it has {self.struct_size} bytes, too few to hold its version"
            )
        version = abi.STRUCTS["Api_Version"].from_address(address + table.pjrt_api_version.offset)
        self.version: tuple[int, int] = (version.major_version, version.minor_version)
        if self.version[0] != abi.API_MAJOR or self.version[1] < abi.OLDEST_MINOR:
            raise PjrtCall(
                "GetPjrtApi",
                "",
                f"the plugin speaks PJRT API {self.version[0]}.{self.version[1]}, this client {abi.API_MAJOR}.x "
                f"from {abi.API_MAJOR}.{abi.OLDEST_MINOR} on: use a plugin of such a version",
            )
        self._functions = _Functions(self._bind)

    def has(self, name: str) -> bool:
        """Whether the table has the function `name` (without "PJRT_")."""
        return self._address_of(name) is not None

    def _address_of(self, name: str) -> int | None:
        offset = getattr(abi.STRUCTS["Api"], name).offset
        if offset + 8 > self.struct_size:
            return None
        return c_void_p.from_address(self.address + offset).value

    def _bind(self, name: str) -> _Function:
        where = self._address_of(name)
        if where is None:
            major, minor = self.version
            raise PjrtCall(
                f"PJRT_{name}",
                "",
                f"the plugin's table (API {major}.{minor}, {self.struct_size} bytes) does not have this function",
            )
        return PROTOTYPE(where)

    def invoke(self, name: str, args: abi.Sized) -> None:
        """Call `PJRT_<name>` with `args`.

        Raises
        ------
        PjrtCall
            If the call returns an error, or the table does not have the function.
        """
        error = self._functions[name](addressof(args))
        if error:
            raise self.exception(name, error)

    def call(self, name: str, **members: Any) -> Any:
        """Call `PJRT_<name>` with the given members of its argument struct; gives the struct with the results."""
        args = abi.new(abi.ARGS[name], **members)
        self.invoke(name, args)
        return args

    def destroy(self, kind: str, raw: int) -> None:
        """Call `PJRT_<kind>_Destroy` on a native object."""
        self._of_handle(_DESTROY[kind], raw)

    def destroy_all(self, kind: str, raws: Iterable[int]) -> None:
        """Call `PJRT_<kind>_Destroy` on each; the first error is raised once all were tried."""
        errors = []
        for raw in raws:
            try:
                self.destroy(kind, raw)
            except PjrtCall as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _of_handle(self, name: str, raw: int) -> None:
        error = self._functions[name](_ONE_HANDLE.pack(_ONE_HANDLE.size, 0, raw))
        if error:
            raise self.exception(name, error)

    def await_event(self, raw: int, call: str, looks: int = _LOOKS) -> None:
        """Block until an event is ready and destroy it; its error is reported as that of `call`."""
        try:
            # a plugin ends small copies on another thread within microseconds, and being put to sleep and woken costs
            # more than that: look a few times before waiting
            if looks:
                look = _IS_READY(_IS_READY.STRUCT_SIZE, None, raw)
                for _ in range(looks):
                    self.invoke("Event_IsReady", look)
                    if look.is_ready:
                        break
            self._of_handle("Event_Await", raw)
        except PjrtCall as error:
            raise reported_as(call, error) from None
        finally:
            self._of_handle("Event_Destroy", raw)

    def exception(self, name: str, error: int) -> PjrtCall:
        """The exception that says what a PJRT_Error of `PJRT_<name>` says; the PJRT_Error is destroyed.

        Its code is UNKNOWN where the plugin does not tell, or says OK.
        """
        try:
            message = abi.new(abi.ARGS["Error_Message"], error=error)
            self._functions["Error_Message"](addressof(message))
            code = abi.new(abi.ARGS["Error_GetCode"], error=error)
            if untold := self._functions["Error_GetCode"](addressof(code)):
                self._forget(untold)
                code.code = 0
            number = code.code
            known = 0 <= number < len(abi.ERROR_CODES)
            word = abi.ERROR_CODES[number] if known else f"code {number}"
            return PjrtCall(f"PJRT_{name}", word if number else "UNKNOWN", text(message.message, message.message_size))
        finally:
            self._forget(error)

    def _forget(self, error: int) -> None:
        """Destroy a PJRT_Error."""
        self._functions["Error_Destroy"](addressof(abi.new(abi.ARGS["Error_Destroy"], error=error)))


def reported_as(call: str, error: PjrtCall) -> PjrtCall:
    """An error that an event ended with, as one of the call that made the event; a lack of a function stays what it is."""
    return PjrtCall(f"PJRT_{call}", error.code, error.detail) if error.code else error


def text(pointer: int | None, size: int) -> str:
    """A C string with a length; what is not UTF-8 in it is replaced."""
    return string_at(pointer, size).decode("utf-8", "replace") if pointer else ""


def pointers(start: int | None, count: int) -> tuple[int, ...]:
    """The `count` pointers at `start`; a null among them is 0."""
    return tuple(p or 0 for p in (c_void_p * count).from_address(start)) if start else ()


def int64s(start: int | None, count: int) -> tuple[int, ...]:
    """The `count` 64-bit integers at `start`."""
    return tuple((c_int64 * count).from_address(start)) if start else ()


def _value(value: abi.Value, kind: int, size: int) -> Attribute:
    match abi.NAMED_VALUE_TYPES[kind] if 0 <= kind < len(abi.NAMED_VALUE_TYPES) else "":
        case "kString":
            return text(value.string_value, size)
        case "kInt64":
            return int(value.int64_value)
        case "kInt64List":
            return int64s(value.int64_array_value, size)
        case "kFloat":
            return float(value.float_value)
        case "kBool":
            return bool(value.bool_value)
    return f"(a value of unknown type {kind})"


def attributes(start: int | None, count: int) -> dict[str, Attribute]:
    """An array of PJRT_NamedValue as a dictionary."""
    values: dict[str, Attribute] = {}
    kind = abi.STRUCTS["NamedValue"]
    position = start or 0
    for _ in range(count if start else 0):
        item = kind.from_address(position)
        # a plugin's own idea of the struct's size, not ours, is the distance to the next
        position += (item.struct_size or kind.STRUCT_SIZE) + 7 & ~7
        values[text(item.name, item.name_size)] = _value(item.value, item.type, item.value_size)
    return values


# --- handles ---------------------------------------------------------------------------------------------------------


class HandleState(Enum):
    """LIVE: owns a native object. CLOSED: it was destroyed, every use is an error."""

    LIVE = "live"
    CLOSED = "closed"


class Handle:
    """Owner of one native object: a context manager, closed at most once, never used after.

    A handle that is dropped while LIVE destroys its object when Python collects it. A handle must not be closed while
    another thread uses it.
    """

    __slots__ = ("__weakref__", "_api", "_closed", "_raw")
    # name of the object in the C API
    native: ClassVar[str]

    def __init__(self, api: Api, raw: int | None, call: str) -> None:
        self._api = api
        self._raw = raw
        #: What its owner wants done when it is closed.
        self._closed: Callable[[], None] | None = None
        if not raw:
            raise PjrtCall(f"PJRT_{call}", "", "the plugin returned neither an error nor an object")

    @property
    def state(self) -> HandleState:
        """LIVE until it is closed."""
        return HandleState.LIVE if self._raw else HandleState.CLOSED

    @property
    def raw(self) -> int:
        """Address of the native object.

        Raises
        ------
        PjrtCall
            If this handle is closed.
        """
        if not self._raw:
            raise PjrtCall(f"PJRT_{self.native}", "", f"this {type(self).__name__} is closed")
        return self._raw

    def close(self) -> None:
        """Destroy the native object; nothing happens the second time."""
        raw, self._raw = self._raw, None
        if raw:
            self._api.destroy(self.native, raw)
            told, self._closed = self._closed, None
            if told is not None:
                told()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # at exit the plugin's own statics may be gone already; the process gives everything back anyway
        if getattr(self, "_raw", None) and not sys.is_finalizing():
            self.close()
