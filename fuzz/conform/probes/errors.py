"""Wrong programs and wrong calls: each must end in a status with a message, not in a result, and not in a dead process."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import addressof
from functools import partial

import numpy as np

from fuzz.conform.probes.session import F32_4, SUM, Fails, Session, X, Y, refused
from fuzz.conform.probes.table import probe
from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, abi, encode_compile_options

_ONE = "module {{ func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {} }} }}"
_PROGRAMS = {
    "text that is no MLIR": "this is not a module",
    "text that ends too early": SUM[: len(SUM) // 2],
    "an empty program": "",
    "an op that does not exist": _ONE.format("%0 = stablehlo.frobnicate %a : tensor<4xf32> return %0 : tensor<4xf32>"),
    "a module without main": "module { func.func @other() { return } }",
    "types that do not fit": _ONE.format(
        "%0 = stablehlo.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32> return %a : tensor<4xf32>"
    ),
    "an unknown custom call": _ONE.format(
        "%0 = stablehlo.custom_call @tenferro_no_such_target(%a) {api_version = 4 : i32} "
        ": (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32>"
    ),
}
_HUGE = """module { func.func @main() -> tensor<35184372088832xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<35184372088832xf32>
  return %0 : tensor<35184372088832xf32>
} }"""


def _program(text: str, s: Session) -> None:
    refused(lambda: s.compile(text).close(), "the program")


for _name, _text in _PROGRAMS.items():
    probe("errors", _name)(partial(_program, _text))


@probe("errors", "a result that fits no memory")
def _(s: Session) -> None:
    def call() -> None:
        with s.compile(_HUGE) as executable:
            made, done = s.execute(executable, [])
            s.finish(done)
            s.finish(s.api.call("Buffer_ReadyEvent", buffer=made[0]).event)

    refused(call, "128 TiB")


@probe("errors", "an unknown format of programs")
def _(s: Session) -> None:
    code, form, options = SUM.encode(), b"no_such_format", encode_compile_options()
    program = abi.new(
        abi.STRUCTS["Program"],
        code=abi.address(code),
        code_size=len(code),
        format=abi.address(form),
        format_size=len(form),
    )
    call = partial(
        s.api.call,
        "Client_Compile",
        client=s.client.raw,
        program=addressof(program),
        compile_options=abi.address(options),
        compile_options_size=len(options),
    )
    refused(call, "format 'no_such_format'")


@probe("errors", "compile options that are no message")
def _(s: Session) -> None:
    refused(lambda: s.client.compile(SUM, b"\xff\xff\xff\xff"), "bytes ff ff ff ff")


@probe("errors", "compile options with no replica")
def _(s: Session) -> None:
    none = b"\x1a\x04\x20\x00\x28\x00"  # executable_build_options {num_replicas: 0, num_partitions: 0}
    refused(lambda: s.client.compile(SUM, none), "num_replicas = 0")


# --- calls -----------------------------------------------------------------------------------------------------------


def _arguments(make: Callable[[Session], list[int]], s: Session) -> None:
    executable, arguments = s.sum, make(s)
    try:
        refused(lambda: s.finish(s.execute(executable, arguments)[1]), "the call")
    finally:
        for raw in dict.fromkeys(arguments):
            s.api.destroy("Buffer", raw)


def _raw(s: Session, element: str, x: np.ndarray) -> int:
    raw, done = s.upload(element, x)
    s.finish(done)
    return raw


def _deleted(s: Session) -> list[int]:
    s.need("Buffer_Delete")
    raw = _raw(s, "F32", X)
    s.api.call("Buffer_Delete", buffer=raw)
    return [raw, _raw(s, "F32", Y)]


_CALLS: dict[str, Callable[[Session], list[int]]] = {
    "too few arguments": lambda s: [_raw(s, "F32", X)],
    "too many arguments": lambda s: [_raw(s, "F32", X) for _ in range(3)],
    "an argument of another dtype and the same size": lambda s: [
        _raw(s, "S32", np.arange(4, dtype=np.int32)), _raw(s, "F32", Y)
    ],
    "an argument of another dtype and size": lambda s: [_raw(s, "F64", np.ones(4)), _raw(s, "F32", Y)],
    "an argument of another shape and the same size": lambda s: [_raw(s, "F32", X.reshape(2, 2)), _raw(s, "F32", Y)],
    "an argument of another size": lambda s: [_raw(s, "F32", np.ones(3, np.float32)), _raw(s, "F32", Y)],
    "a deleted buffer as an argument": _deleted,
}  # fmt: skip
for _name, _make in _CALLS.items():
    probe("errors", _name)(partial(_arguments, _make))


@probe("errors", "a buffer of another client as an argument")
def _(s: Session) -> None:
    with Client(s.plugin) as other, other.put(X) as foreign, s.client.put(Y) as own:
        refused(lambda: s.finish(s.execute(s.sum, [foreign.raw, own.raw])[1]), "the call")


@probe("errors", "a deleted buffer is not downloaded")
def _(s: Session) -> None:
    s.need("Buffer_Delete", "Buffer_IsDeleted")
    with s.client.put(X) as buffer:
        s.api.call("Buffer_Delete", buffer=buffer.raw)
        if not s.api.call("Buffer_IsDeleted", buffer=buffer.raw).is_deleted:
            raise Fails("PJRT_Buffer_IsDeleted says no after PJRT_Buffer_Delete")
        refused(lambda: s.download(buffer.raw, np.empty_like(X)), "the download")


@probe("errors", "a deleted executable does not run")
def _(s: Session) -> None:
    s.need("LoadedExecutable_Delete")
    with s.compile(SUM, F32_4, F32_4) as executable, s.client.put(X) as x, s.client.put(Y) as y:
        s.api.call("LoadedExecutable_Delete", executable=executable.raw)
        refused(lambda: s.finish(s.execute(executable, [x.raw, y.raw])[1]), "the call")


@probe("errors", "a destination that is too small")
def _(s: Session) -> None:
    with s.client.put(X) as buffer:
        room = np.empty(16, np.uint8)[:2]
        refused(lambda: s.download(buffer.raw, room), "2 bytes for 16")


@probe("errors", "an upload with too few strides")
def _(s: Session) -> None:
    x = np.ones((2, 3), np.float32)
    refused(lambda: s.upload("F32", x, strides=(12,)), "one stride for rank 2")


@probe("errors", "an upload of a negative extent")
def _(s: Session) -> None:
    refused(lambda: s.upload("F32", X, dims=(-4,)), "extent -4")


@probe("errors", "an upload of the element type INVALID")
def _(s: Session) -> None:
    refused(lambda: s.upload("INVALID", X), "PJRT_Buffer_Type_INVALID")


@probe("errors", "after all these errors a right program is still right")
def _(s: Session) -> None:
    with s.compile(SUM, (DType.F32, (4,)), F32_4) as executable:
        (got,) = executable.run([X, Y])
    if not np.array_equal(got, X + Y):
        raise Fails(f"{X.tolist()} + {Y.tolist()} is {got.tolist()}")
