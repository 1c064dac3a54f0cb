"""`compile` and `run`, the executor `pjrt-reloaded`, and the folder of executables, as a user calls them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from oracle.verdict import ORIGINS
from tenferro_ref.program import GraphBuilder, dumps
from tests.e2e.command import assert_one_line_error, in_this_process
from tests.plugins import ONE_BUILD, plugin_or_skip

pytestmark = pytest.mark.once


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A program, and inputs for it."""
    b = GraphBuilder()
    x, w = b.input("F64", (2, 3)), b.input("F64", (3, 4))
    (tmp_path / "p.json").write_text(dumps(b.build(x @ w + 1.0, x.sum([0]))))
    np.savez(tmp_path / "in.npz", in0=np.arange(6.0).reshape(2, 3), in1=np.ones((3, 4)))
    return tmp_path / "p.json", tmp_path / "in.npz"


@pytest.mark.parametrize("plugin", ONE_BUILD)
def test_a_program_is_compiled_and_run_later(files: tuple[Path, Path], tmp_path: Path, plugin: str) -> None:
    ref = plugin_or_skip(plugin)
    program, inputs = files
    made, out = tmp_path / "p.pjrt", tmp_path / "out.npz"
    done = in_this_process(
        "compile", program, "--plugin", plugin, "--out", made, "--option", "xla_cpu_enable_fast_min_max=false"
    )
    assert (done.status, done.out, done.err) == (0, "", "")
    for how in ((), ("--plugin", ref.path)):
        done = in_this_process("run", made, "--inputs", inputs, "--out", out, *how)
        assert (done.status, done.out, done.err) == (0, "", "")
        with np.load(out) as got:
            np.testing.assert_array_equal(got["out0"], np.arange(6.0).reshape(2, 3) @ np.ones((3, 4)) + 1)
            np.testing.assert_array_equal(got["out1"], [3.0, 5.0, 7.0])
    done = in_this_process("run", made, "--inputs", inputs)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-2:] == ["out1: F64[3]", "[3. 5. 7.]"]
    assert_one_line_error(in_this_process("run", made), 2, "has 2 inputs", "--inputs NPZ")


def test_what_cannot_be_run(files: tuple[Path, Path], tmp_path: Path, fake_library: Path) -> None:
    program, inputs = files
    made, out = tmp_path / "p.pjrt", tmp_path / "out.npz"
    call = ("run", made, "--inputs", inputs, "--out", out)
    assert_one_line_error(in_this_process(*call), 2, "cannot be read")
    made.write_text("tenferro?")
    assert_one_line_error(in_this_process(*call), 2, str(made), "does not begin with")
    assert in_this_process("compile", program, "--plugin", fake_library, "--out", made).status == 0
    # a file says which plugin it is for, never where one is
    assert_one_line_error(in_this_process(*call), 3, "no plugin found here has the SHA-256", "--plugin")
    assert_one_line_error(
        in_this_process(*call, "--plugin", plugin_or_skip("xla081").path), 2, "compiled by another plugin"
    )
    np.savez(inputs, in0=np.zeros((3, 2)), in1=np.ones((3, 4)))
    assert_one_line_error(
        in_this_process(*call, "--plugin", fake_library), 2, "input 0: expected F64[2,3], got F64[3,2]"
    )
    made.write_bytes(made.read_bytes()[:-1])
    assert_one_line_error(in_this_process(*call, "--plugin", fake_library), 2, "damaged")
    assert not out.exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("flag", "expected NAME=VALUE"),
        ("xla_no_such_flag=1.5", "xla_no_such_flag"),
        (f"x={2**63}", "beyond integers of 64 bits"),
        (f"x=-{'9' * 5000}", "beyond integers of 64 bits"),
    ],
)
def test_options_that_cannot_be(files: tuple[Path, Path], tmp_path: Path, option: str, words: str) -> None:
    plugin_or_skip("xla081")
    done = in_this_process("compile", files[0], "--plugin", "xla081", "--out", tmp_path / "x", "--option", option)
    assert_one_line_error(done, 3 if "no_such" in option else 2, words)


def test_a_plugin_that_cannot_be_read_is_not_the_one_that_is_searched(
    files: tuple[Path, Path], tmp_path: Path, fake_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "plugins").mkdir()
    (folder / "a.so").symlink_to(tmp_path / "nothing")
    shutil.copy(fake_library, folder / "z.so")
    monkeypatch.setenv("TENFERRO_PJRT_PLUGIN_DIR", str(folder))
    made = tmp_path / "p.pjrt"
    assert in_this_process("compile", files[0], "--plugin", "z", "--out", made).status == 0
    assert in_this_process("run", made, "--inputs", files[1]).status == 0


@pytest.mark.parametrize("plugin", ONE_BUILD)
def test_what_is_reloaded_gives_what_was_compiled(files: tuple[Path, Path], plugin: str) -> None:
    plugin_or_skip(plugin)
    program, inputs = files
    names = f"pjrt:{plugin}@parity,pjrt-reloaded:{plugin}@parity"
    done = in_this_process("check", program, "--inputs", inputs, "--executors", names, "--json")
    assert done.status == 0, done
    assert f"pjrt-reloaded:{plugin}@parity" in done.out


@pytest.mark.nightly
def test_executables_are_kept_in_the_folder_of_the_variable(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin_or_skip("xla081")
    program, inputs = files
    folder = tmp_path / "kept"
    monkeypatch.setenv("TENFERRO_PJRT_CACHE", str(folder))
    found = []
    for _ in range(3):
        done = in_this_process("check", program, "--inputs", inputs, "--executors", "pjrt:xla081", "--json")
        assert done.status == 0, done
        found.append((done.rows[-1]["executable"], {*done.rows[-1]["phases"]} & {*ORIGINS}))
        (kept,) = folder.iterdir()
        if len(found) == 2:
            kept.write_bytes(b"junk")
    assert found == [("compiled", {"compile"}), (ORIGINS["load"], {"load"}), (ORIGINS["heal"], {"heal"})]
    assert len([*folder.iterdir()]) == 1
    folder.chmod(0o777)
    done = in_this_process("plugins", "--probe")
    assert "others may write into it" in done.out


def test_what_is_compiled_says_the_narrow_dtypes_of_its_inputs(tmp_path: Path) -> None:
    plugin_or_skip("xla081")
    (tmp_path / "m.mlir").write_text(
        "func.func @main(%a: tensor<2xf8E5M2>) -> tensor<2xf8E5M2> { return %a : tensor<2xf8E5M2> }"
    )
    array = np.array([1, -2]).astype("float8_e5m2")
    np.savez(tmp_path / "in.npz", in0=array)
    made, out = tmp_path / "m.pjrt", tmp_path / "out.npz"
    assert in_this_process("compile", tmp_path / "m.mlir", "--plugin", "xla081", "--out", made).status == 0
    done = in_this_process("run", made, "--inputs", tmp_path / "in.npz", "--out", out)
    assert done.status == 0, done.err
    assert np.load(out)["out0"].tobytes() == array.tobytes()
