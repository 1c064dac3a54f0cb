"""Every error code, and every lie of the fake plugin, through the command line: one line or a verdict says it, and nothing ends with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz.checking import judged
from tenferro_ref import ops
from tenferro_ref.pjrt.abi import ERROR_CODES
from tenferro_ref.program import GraphBuilder, dumps
from tests.e2e.command import assert_one_line_error, in_this_process, processes_of

pytestmark = pytest.mark.once

FAKE = Path(__file__).parents[1] / "fake_plugin" / "fake_plugin.c"


def _some(every: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """All of them as parameters of a test, by day only those that are chosen."""
    return [pytest.param(one, marks=[] if one in chosen else pytest.mark.nightly) for one in every]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the fake plugin computes right: it copies. Whether a lie is a known finding is not asked here."""
    monkeypatch.setattr(judged, "_known", lambda *asked: "")
    monkeypatch.setattr(judged, "_builds", lambda *asked: ())
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    b = GraphBuilder()
    x = b.input("F32", (2, 3))
    path = tmp_path / "p.json"
    path.write_text(dumps(b.build(b.apply(ops.Reshape((2, 3)), x))))
    np.savez(tmp_path / "in.npz", in0=np.arange(6, dtype=np.float32).reshape(2, 3))
    return path


@pytest.mark.parametrize("code", _some(range(1, len(ERROR_CODES) + 1), {3, len(ERROR_CODES)}))
def test_every_error_code(program: Path, fake_library: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PJRT_MODE", f"compile_error:{code}")
    done = in_this_process("compile", program, "--plugin", fake_library, "--out", program.with_suffix(".pjrt"))
    named = ERROR_CODES[code] if code < len(ERROR_CODES) else f"code {code}"
    assert_one_line_error(done, 3, f"PJRT_Client_Compile failed ({named})", "asked to fail")


#: What `check` says of a plugin in each mode: the verdict and words of the reason, or an error of the whole call.
LIES = {
    "": ("pass", ""),
    "row_major": ("pass", ""),
    "no_host_layout": ("pass", ""),
    "leak": ("pass", ""),
    "leak:1024": ("pass", ""),
    "destroy_hang": ("pass", ""),
    "prints": ("pass", ""),
    "rounds_up": ("pass", ""),
    "sets_locale": ("pass", ""),
    "ignores_signals": ("pass", ""),
    "leaves_folder": ("pass", ""),
    "forks": ("pass", ""),
    "short_table": ("pass", ""),
    "null_deleter": ("pass", ""),
    "null_types": ("error", "1 results, without types or ranks"),
    "null_dims": ("error", "2 axes, without extents"),
    "no_code": ("error", "PJRT_LoadedExecutable_Execute failed (UNKNOWN)"),
    "forks_and_ends": ("crash", "SIGSEGV"),
    "calls_itself:cuda": ("pass", ""),
    "offset": ("mismatch", "output 0[0, 0]"),
    "wrong_shape": ("error", "result 0 is F32[2,4], expected F32[2,3]"),
    "wrong_dtype": ("error", "result 0 is I32[2,3], expected F32[2,3]"),
    "fewer_outputs": ("error", "returned 0 of 1 results"),
    "announce_shape": ("error", "result 0 is F32[2,4], expected F32[2,3]"),
    "announce_dtype": ("error", "result 0 is I32[2,3], expected F32[2,3]"),
    "announce_fewer": ("error", "announces 0 results, the program has 1"),
    "compile_error": ("error", "PJRT_Client_Compile failed (INTERNAL)"),
    "execute_error": ("error", "PJRT_LoadedExecutable_Execute failed (INTERNAL)"),
    "event_error": ("error", "PJRT_LoadedExecutable_Execute failed (INTERNAL)"),
    "compile_abort": ("crash", "SIGABRT"),
    "compile_segv": ("crash", "SIGSEGV"),
    "execute_abort": ("crash", "SIGABRT"),
    "execute_segv": ("crash", "SIGSEGV"),
    "null_table": (3, "null function table"),
    "major_version": (3, "PJRT API 1.81"),
    "minor_version": (3, "PJRT API 0.56"),
    "without:10": (3, "PJRT_Client_Create failed: the plugin's table"),
    "initialize_error": (3, "PJRT_Plugin_Initialize failed"),
    "initialize_abort": (3, "SIGABRT"),
    "initialize_segv": (3, "SIGSEGV"),
    "client_error": (3, "PJRT_Client_Create failed"),
    "download_error": (3, "PJRT_Buffer_ToHostBuffer failed"),
    "upload_error": (3, "PJRT_Client_BufferFromHostBuffer failed"),
    "destroy_error": (3, "PJRT_Buffer_Destroy failed"),
}
#: One of each way to end.
SOME = {
    "",
    "forks",
    "announce_dtype",
    "event_error",
    "execute_segv",
    "null_table",
    "client_error",
}
#: These are waited for until a worker's time is up; `tests/pjrt` and the tests of workers see them end sooner.
SLOW = {"initialize_hang", "compile_hang", "execute_hang", "never_ready"}
#: Needs an executable that was serialised before.
LATER = {"load_error"}


def test_every_mode_is_here() -> None:
    text = FAKE.read_text("utf-8").partition("*/")[0].partition("the misbehaviour,")[2]
    text = re.sub(r"\{initialize,compile,execute\}_\{abort,segv,hang\}", " ".join(
        f"{when}_{what}," for when in ("initialize", "compile", "execute") for what in ("abort", "segv", "hang")), text)  # fmt: skip
    found = set()
    for line in text.splitlines():
        names = re.match(r" \*   ((?:[a-z_]+(?:\[?:[\w\[\]]+)?,? ?)+)", line)
        if names:
            found |= {
                re.split(r"[\[:]", word)[0]
                for word in re.split(r"[, ]+", names[1])
                if "_" in word or word in ("leak[:MIB]", "offset[:N]", "without:N")
            }
    assert found
    assert found - {lie.partition(":")[0] for lie in LIES} - SLOW - LATER == set()


@pytest.mark.parametrize("mode", _some(LIES, SOME))
def test_every_lie(program: Path, fake_library: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"pjrt:{fake_library}@defaults"
    monkeypatch.setenv("FAKE_PJRT_MODE", mode)
    done = in_this_process("check", program, "--inputs", program.with_name("in.npz"), "--executors", name, "--json")
    assert not processes_of(program.parent)
    verdict, words = LIES[mode]
    if isinstance(verdict, int):
        assert_one_line_error(done, verdict, words)
        return
    (row,) = [row for row in done.rows if row["executor"] == name]
    assert (row["verdict"], done.status) == (verdict, int(verdict != "pass")), row
    assert words in row["reason"]


def test_an_executable_that_the_plugin_does_not_take_back(
    program: Path, fake_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = program.with_suffix(".pjrt")
    assert in_this_process("compile", program, "--plugin", fake_library, "--out", made).status == 0
    monkeypatch.setenv("FAKE_PJRT_MODE", "load_error:15")
    inputs, out = program.with_name("in.npz"), program.with_name("out.npz")
    done = in_this_process("run", made, "--plugin", fake_library, "--inputs", inputs, "--out", out)
    assert_one_line_error(done, 3, "PJRT_Executable_DeserializeAndLoad failed (DATA_LOSS)")
