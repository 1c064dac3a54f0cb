"""`check` on StableHLO modules and JAX functions: as they are, as they are written, by which evidence, beyond IEEE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.e2e.command import assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref
from tests.e2e.command import tenferro_ref as in_a_process
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

module_or_skip("jax")

DIVIDED = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %k = stablehlo.constant dense<[3.0, 7.0, 11.0, 13.0]> : tensor<4xf32>
  %0 = stablehlo.divide %a, %k : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
#: Nobody here knows what the target does.
FOREIGN = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @nobody_has_it(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def divided(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "f.mlir").write_text(DIVIDED)
    np.savez(tmp_path / "in.npz", in0=np.array([5, 11, 17, 19], np.float32))
    return tmp_path / "f.mlir", tmp_path / "in.npz"


@pytest.mark.nightly
def test_elements_beyond_ieee_are_counted_by_freedom(divided: tuple[Path, Path]) -> None:
    plugin_or_skip("lam115")
    run = tenferro_ref("check", divided[0], "--inputs", divided[1], "--executors", "pjrt:lam115", "--json")
    native, plugin = run.rows
    assert run.status == 0
    assert (native["beyond_ieee"], native["evidence"], plugin["evidence"]) == ({}, "proved", "proved")
    assert plugin["beyond_ieee"] == {"rewrite": plugin["comparison"]["forgiven"]}
    assert plugin["comparison"]["forgiven"]
    shown = tenferro_ref("check", divided[0], "--inputs", divided[1], "--executors", "pjrt:lam115")
    assert "beyond IEEE" in shown.out
    assert f"rewrite {plugin['comparison']['forgiven']}" in shown.out


def test_the_model_ieee_makes_what_is_beyond_it_a_mismatch(divided: tuple[Path, Path]) -> None:
    plugin_or_skip("lam115")
    run = tenferro_ref(
        "check",
        divided[0],
        "--inputs",
        divided[1],
        "--executors",
        "pjrt:lam115,interpreter",
        "--model",
        "ieee",
        "--json",
    )
    assert [row["verdict"] for row in run.rows] == ["pass", "mismatch", "pass"]
    assert run.status == 1
    # the same divisors as an argument are no constants
    assert run.rows[1]["written"] == "only as given (as written: pass)"


def test_a_module_that_nobody_knows_has_verdicts_and_no_alarm(tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(FOREIGN)
    run = tenferro_ref("check", tmp_path / "f.mlir", "--executors", "jax,interpreter", "--json")
    assert run.status == 0
    assert [row["verdict"] for row in run.rows] == ["unsupported", "unsupported", "unsupported"]


FUNCTIONS = """
import jax.numpy as jnp

def smooth(x, n):
    return jnp.tanh(x) * n

def broken(x, n):
    raise RuntimeError("on purpose")

def both(x, n):
    return -x, -n
"""


def test_a_jax_function_is_named_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    np.savez(tmp_path / "in.npz", in0=np.ones((2, 3), np.float32), in1=np.arange(3, dtype=np.int32))
    command = ("check", "mine:smooth", "--inputs", "in.npz", "--executors", "jax,interpreter", "--json")
    run = in_a_process(*command, cwd=tmp_path)
    assert (run.status, [row["verdict"] for row in run.rows]) == (0, ["pass"] * 3)
    np.savez(tmp_path / "wide.npz", in0=np.ones((2, 3)) + 1j, in1=np.int32(2))
    run = in_a_process("check", "mine:smooth", "--inputs", "wide.npz", "--executors", "jax", "--json", cwd=tmp_path)
    assert (run.status, [row["verdict"] for row in run.rows]) == (0, ["pass"] * 2)
    narrow = np.array([1, 2])
    np.savez(
        tmp_path / "narrow.npz", **{"in0": narrow.astype("bfloat16"), "in1.F8E4M3FN": narrow.astype("float8_e4m3fn")}
    )
    run = in_a_process("check", "mine:both", "--inputs", "narrow.npz", "--executors", "jax", "--json", cwd=tmp_path)
    assert (run.status, [row["verdict"] for row in run.rows]) == (0, ["pass"] * 2)
    for arguments, words in (
        (("check", "mine:smooth"), "needs --inputs"),
        (("check", "mine:none", "--inputs", "in.npz"), "none"),
        (("check", "mine:jnp", "--inputs", "in.npz"), "for these inputs: TypeError: Expected a callable"),
        (("check", "mine:broken", "--inputs", "in.npz"), "mine.py:8: RuntimeError: on purpose"),
    ):
        failed = in_a_process(*arguments, cwd=tmp_path)
        assert_one_line_error(failed, 2)
        assert words in failed.err


def test_inputs_that_do_not_fit_are_named(divided: tuple[Path, Path], tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", in0=np.ones(4))
    run = tenferro_ref("check", divided[0], "--inputs", tmp_path / "other.npz")
    assert_one_line_error(run, 2)
    assert "in0 is F64[4], argument 0 is F32[4]" in run.err


def test_a_module_that_nothing_can_be_given_is_a_row_and_the_others_go_on(divided: tuple[Path, Path]) -> None:
    dynamic = divided[0].with_name("dynamic.mlir")
    dynamic.write_text("func.func @main(%a: tensor<?x3xf32>) -> tensor<?x3xf32> { return %a : tensor<?x3xf32> }")
    run = tenferro_ref("check", dynamic, divided[0], "--seed", 1, "--executors", "interpreter", "--json")
    assert run.status == 0, run.err
    assert [(Path(r["program"]).name, r["executor"], r["verdict"]) for r in run.rows] == [
        ("dynamic.mlir", "native", "unsupported"),
        ("dynamic.mlir", "interpreter", "unsupported"),
        ("f.mlir", "native", "pass"),
        ("f.mlir", "interpreter", "pass"),
    ]
    assert f"{dynamic}:1:1: argument 0: axis 0 is dynamic (?x3xf32)" in run.rows[0]["reason"]


def test_an_error_names_the_file_that_it_is_about(tmp_path: Path) -> None:
    (tmp_path / "giant.mlir").write_text(
        "func.func @main(%a: tensor<1000000000000xf32>) -> tensor<1000000000000xf32> { return %a : tensor<1000000000000xf32> }"
    )
    run = tenferro_ref("check", tmp_path / "giant.mlir", "--seed", 1, "--executors", "native")
    assert_one_line_error(run, 3, f"{tmp_path / 'giant.mlir'}: inputs: inputs of ")
