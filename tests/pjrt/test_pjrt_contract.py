"""The client against a plugin that misbehaves: typed errors, no native call on a dead handle, nothing left behind."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, InvalidArgument, PjrtCall, PlacementMismatch, UnsupportedDType
from tenferro_ref.pjrt import Client, Executable, ExecutableCache, HandleState, TensorSpec, load_plugin
from tenferro_ref.pjrt.abi import ARGS, ERROR_CODES, FUNCTIONS
from tenferro_ref.pjrt.options import named_values
from tests.pjrt.conftest import MakeClient, MakePlugin

TYPE = "tensor<2x3xf32>"
COPY = f"func.func @main(%a: {TYPE}, %b: {TYPE}) -> ({TYPE}, {TYPE}) {{ return %a, %b : {TYPE}, {TYPE} }}"
SPEC: TensorSpec = (DType.F32, (2, 3))
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = -X


def compiled(client: Client) -> Executable:
    return client.compile(COPY, parameters=[SPEC, SPEC], results=[SPEC, SPEC])


def live(client: Client) -> int:
    """Native objects of this client's plugin that exist."""
    library = ctypes.CDLL(client.plugin.ref.path)
    library.fake_live.restype = ctypes.c_long
    return int(library.fake_live())


def test_copies(fake_client: MakeClient) -> None:
    client = fake_client()
    executable = compiled(client)
    assert (executable.name, executable.results) == ("fake", (SPEC, SPEC))
    before = live(client)
    for _ in range(3):
        x, y = executable.run([X, np.asfortranarray(Y)])
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(y, Y)
        assert x.flags.f_contiguous
    assert live(client) == before


@pytest.mark.parametrize(("mode", "honoured"), [("", True), ("row_major", False), ("no_host_layout", False)])
def test_host_layout_is_probed(fake_client: MakeClient, mode: str, honoured: bool) -> None:
    client = fake_client(mode)
    assert client.host_layout is honoured
    for x in (X, X.T, np.arange(24.0).reshape(2, 3, 4)[:, ::-1]):
        with client.put(x) as buffer:
            got = buffer.numpy()
            np.testing.assert_array_equal(got, x)
            assert got.flags.f_contiguous


def test_a_flag_is_unknown_only_where_the_plugin_calls_it_an_invalid_argument(fake_client: MakeClient) -> None:
    assert fake_client().knows("flag")
    assert not fake_client("compile_error:3").knows("flag")
    with pytest.raises(PjrtCall, match="INTERNAL"):
        fake_client("compile_error:13").knows("flag")


def test_short_table_runs_without_announced_types(fake_client: MakeClient) -> None:
    client = fake_client("short_table")
    executable = client.compile(COPY, parameters=[SPEC, SPEC])
    assert executable.results is None
    np.testing.assert_array_equal(executable.run([X, Y])[1], Y)
    assert compiled(client).results == (SPEC, SPEC)


def use_everything(client: Client) -> None:
    """Calls every function of the table that this client ever calls, but those of errors and the one that the fake lacks."""
    assert (client.platform_name, client.platform_version, client.devices[0].kind) == ("fake", "fake", "fake")
    with compiled(client) as executable, client.put(X) as x, client.put(Y) as y:
        executable.run([X, Y])
        (result, _) = executable.execute([x, y])
        with result.ready_event() as event:
            assert event.ready()
            assert event.failure() is None
            ended = SimpleQueue[object]()
            event.on_ready(ended.put)
            assert ended.get(timeout=60) is None
        assert result.spec == SPEC
        np.testing.assert_array_equal(result.numpy(), X)
        with client.deserialize(executable.serialize()) as again:
            again.run([X, Y])
    client.attributes  # noqa: B018
    client.close()


#: Without them less is known: what a program's results are, what a plugin says of itself, and it needs no initialisation.
OPTIONAL = {"Plugin_Initialize", "Plugin_Attributes", "Executable_OutputElementTypes", "Executable_OutputDimensions"}


USED = [name for name in FUNCTIONS if name in ARGS and not name.startswith("Error")]
USED.remove("Executable_OptimizedProgram")
for probed in (
    "Buffer_Delete",
    "Buffer_IsDeleted",
    "LoadedExecutable_Delete",
):  # by `conform` alone, which asks whether it is there
    USED.remove(probed)


@pytest.mark.parametrize("name", USED)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_function_that_is_missing_is_a_typed_error(fake_client: MakeClient, name: str) -> None:
    mode = f"without:{FUNCTIONS.index(name)}"
    if name in OPTIONAL:
        use_everything(fake_client(mode))
        return
    with pytest.raises(PjrtCall, match="does not have this function") as caught:
        use_everything(fake_client(mode))
    assert caught.value.call == f"PJRT_{name}"


# --- errors of the plugin --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "call", "code"),
    [
        ("client_error:9", "PJRT_Client_Create", "FAILED_PRECONDITION"),
        ("compile_error:3", "PJRT_Client_Compile", "INVALID_ARGUMENT"),
        ("compile_error:99", "PJRT_Client_Compile", "code 99"),
        ("execute_error:8", "PJRT_LoadedExecutable_Execute", "RESOURCE_EXHAUSTED"),
        ("event_error:15", "PJRT_LoadedExecutable_Execute", "DATA_LOSS"),
        ("download_error", "PJRT_Buffer_ToHostBuffer", "INTERNAL"),
    ],
)
def test_errors_become_exceptions(fake_client: MakeClient, mode: str, call: str, code: str) -> None:
    with pytest.raises(PjrtCall, match="asked to fail") as caught:
        compiled(fake_client(mode)).run([X, Y])
    assert (caught.value.call, caught.value.code) == (call, code)


@pytest.mark.parametrize("code", range(1, len(ERROR_CODES) + 1))
def test_every_code_has_its_name(fake_client: MakeClient, code: int) -> None:
    with pytest.raises(PjrtCall) as caught:
        compiled(fake_client(f"compile_error:{code}"))
    assert caught.value.code == (ERROR_CODES[code] if code < len(ERROR_CODES) else f"code {code}")


@pytest.mark.parametrize(
    ("mode", "detail"),
    [
        ("fewer_outputs", "returned 1 of 2 results"),
        ("wrong_shape", r"result 0 is F32\[2,4\], expected F32\[2,3\]"),
        ("wrong_dtype", r"result 0 is I32\[2,3\], expected F32\[2,3\]"),
        ("announce_fewer", "announces 1 results, the program has 2"),
        ("announce_shape", r"result 0 is F32\[2,4\], expected F32\[2,3\]"),
        ("announce_dtype", r"result 0 is I32\[2,3\], expected F32\[2,3\]"),
    ],
)
def test_results_that_are_not_those_of_the_program(fake_client: MakeClient, mode: str, detail: str) -> None:
    client = fake_client(mode)
    with pytest.raises(PjrtCall, match=detail):
        compiled(client).run([X, Y])


@pytest.mark.parametrize("mode", ["execute_error", "event_error", "wrong_shape", "wrong_dtype", "fewer_outputs"])
def test_nothing_is_left_after_a_failure(fake_client: MakeClient, mode: str) -> None:
    client = fake_client(mode)
    executable = compiled(client)
    buffers = [client.put(X), client.put(Y)]
    before = live(client)
    for _ in range(2):
        with pytest.raises(PjrtCall):
            executable.run([X, Y])
        with pytest.raises(PjrtCall):
            executable.execute(buffers)[0].numpy()
        gc.collect()
    assert live(client) == before


def test_offset(fake_client: MakeClient) -> None:
    np.testing.assert_array_equal(compiled(fake_client("offset:5")).run([X, Y])[0], X + 5)


def test_trigger_limits_misbehaviour(fake_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PJRT_TRIGGER", "poison")
    client = fake_client("compile_error")
    compiled(client).run([X, Y])
    with pytest.raises(PjrtCall):
        client.compile(COPY + "// poison", parameters=[SPEC, SPEC])


def test_result_of_a_dtype_that_the_engine_has_not(fake_client: MakeClient) -> None:
    client = fake_client()
    before = live(client)
    with pytest.raises(UnsupportedDType, match="TOKEN is not supported as PJRT output"):
        client.compile("func.func @main() -> tensor<2xtoken> {}", parameters=[])
    assert live(client) == before


# --- kept executables -------------------------------------------------------------------------------------------------


def test_executables_are_kept_by_code_options_and_types_and_the_oldest_is_freed(fake_client: MakeClient) -> None:
    client = fake_client()
    with ExecutableCache(client, size=3) as cache:

        def kept(code: str = COPY, level: int = 0) -> Executable:
            return cache.compile(code, {"level": level}, parameters=[SPEC, SPEC], results=[SPEC, SPEC])

        first, second = kept(), kept(level=1)
        untyped = cache.compile(COPY, {"level": 0}, parameters=[SPEC, SPEC])
        assert len({first, second, untyped}) == len(cache) == 3
        assert (kept(), kept(level=1)) == (first, second)
        other = kept(COPY + "// other")
        assert [e.state for e in (first, second, untyped, other)] == [
            HandleState.LIVE, HandleState.LIVE, HandleState.CLOSED, HandleState.LIVE
        ]  # fmt: skip
        second.close()  # by somebody else
        np.testing.assert_array_equal(kept(level=1).run([X, Y])[0], X)
    assert (len(cache), first.state) == (0, HandleState.CLOSED)
    with pytest.raises(InvalidArgument, match="size"):
        ExecutableCache(client, size=0)


# --- what is checked before the plugin sees it -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "detail"),
    [
        ([X], "expected 2, got 1"),
        ([X, Y, X], "expected 2, got 3"),
        ([X, Y.T], r"input 1: expected F32\[2,3\], got F32\[3,2\]"),
        ([X.view(np.int32), Y], r"input 0: expected F32\[2,3\], got I32\[2,3\]"),
        ([X, [[0.0] * 3] * 2], "input 1: expected a NumPy array, got list"),
        (X, "inputs: expected a list of arrays, one for each input of the program, got ndarray"),
        (3, "expected a list of arrays, one for each input of the program, got int"),
    ],
)
def test_inputs_that_do_not_fit(fake_client: MakeClient, inputs: list[np.ndarray], detail: str) -> None:
    executable = compiled(fake_client("execute_abort"))
    with pytest.raises(InvalidArgument, match=detail):
        executable.run(inputs)


def test_buffers_are_no_single_one(fake_client: MakeClient) -> None:
    client = fake_client("execute_abort")
    with pytest.raises(
        InvalidArgument, match=r"expected a list of arrays, one for each input of the program, got Buffer"
    ):
        compiled(client).execute(client.put(X))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["longdouble", "S3", "O", ">f4"])
def test_dtypes_that_the_engine_has_not(fake_client: MakeClient, dtype: str) -> None:
    client = fake_client()
    x = np.zeros((2, 3), dtype)
    with pytest.raises(UnsupportedDType, match="PJRT input"):
        client.put(x)
    with pytest.raises(UnsupportedDType, match="PJRT input"):
        compiled(client).run([x, Y])


def test_buffers_that_do_not_fit(fake_client: MakeClient) -> None:
    client, other = fake_client("execute_abort"), fake_client("execute_abort")
    executable = compiled(client)
    x, closed = client.put(X), client.put(Y)
    closed.close()
    theirs = rf"input 1 is on {other.placements[0]}, expected on {client.placements[0]}; .*: numpy\(\) .*put\(\)"
    with pytest.raises(PlacementMismatch, match=theirs):
        executable.execute([x, other.put(Y)])
    with pytest.raises(PlacementMismatch, match=r"input 1 is on the host, .*: put\(\) of the client"):
        executable.execute([x, Y])  # type: ignore[list-item]
    for takes_arrays in (executable.run, lambda buffers: client.put(buffers[0])):
        with pytest.raises(PlacementMismatch, match=r"expected on the host; .*: numpy\(\) of the buffer"):
            takes_arrays([x, x])
    with pytest.raises(InvalidArgument, match="input 1"):
        executable.execute([x, client.put(Y.T)])
    with pytest.raises(PjrtCall, match="Buffer is closed"):
        executable.execute([x, closed])


def test_program_without_parameter_types_is_not_run(fake_client: MakeClient) -> None:
    executable = fake_client("execute_abort").compile(COPY)
    assert executable.results == (SPEC, SPEC)
    with pytest.raises(InvalidArgument, match="compiled without parameter types"):
        executable.run([X, Y])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: c.put([1, 2]), lambda c: c.put(None), lambda c: c.put(np.float32(1)), lambda c: c.put(X, "x"),
        lambda c: c.compile(COPY, parameters=[("F32", (2,))]), lambda c: c.compile("\udc80"),
        lambda c: named_values({"\udc80": 1}), lambda c: named_values({"a": "\udc80"}),
    ],
)  # fmt: skip
def test_what_cannot_be_handed_over_is_refused_before_any_call(fake_client: MakeClient, wrong: Any) -> None:
    with fake_client() as client, pytest.raises(InvalidArgument):
        wrong(client)


# --- serialised executables ------------------------------------------------------------------------------------------


def test_serialised_executable_carries_its_types(fake_client: MakeClient) -> None:
    client = fake_client()
    data = compiled(client).serialize()
    again = client.deserialize(data)
    assert (again.parameters, again.results) == ((SPEC, SPEC), (SPEC, SPEC))
    np.testing.assert_array_equal(again.run([X, Y])[0], X)


def test_serialised_executable_that_is_not_ours(fake_client: MakeClient, fake_plugin: MakePlugin) -> None:
    client = fake_client()
    data = compiled(client).serialize()
    for damaged, detail in (
        (b"", "does not begin with"),
        (b"\x00\xff\n", "does not begin with"),
        (b"{}\n", "does not begin with"),
        (data.replace(b"executable 2", b"executable 1", 1), "another version"),
        (data[:-1], "damaged"),
    ):
        with pytest.raises(FormatError, match=detail):
            client.deserialize(damaged)
    path = fake_plugin()
    with path.open("ab") as file:
        file.write(b"another build")
    with (
        Client(load_plugin(path)) as other,
        pytest.raises(FormatError, match=r"plugin_sha256.*compile the program again"),
    ):
        other.deserialize(data)


# --- what ends or stops a process: only to show that the fake does it ------------------------------------------------

SCRIPT = """
import sys
from tests.pjrt.test_pjrt_contract import COPY, SPEC, X, Y
from tenferro_ref.pjrt import Client, load_plugin
client = Client(load_plugin(sys.argv[1]), {})
print("begin", flush=True)
client.compile(COPY, parameters=[SPEC, SPEC]).run([X, Y])
"""


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("compile_abort", -signal.SIGABRT),
        ("execute_segv", -signal.SIGSEGV),
        ("compile_hang", None),
        ("execute_hang", None),
        ("never_ready", None),
    ],
)
def test_deaths(fake_plugin: MakePlugin, mode: str, ending: int | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, fake_plugin(mode)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        env=dict(os.environ, PYTHONPATH="."),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begin\n"
        if ending is not None:
            assert process.wait(30) == ending
            return
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.kill()
