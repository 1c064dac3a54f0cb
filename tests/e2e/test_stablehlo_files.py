"""StableHLO modules where the commands read a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tenferro_ref.stablehlo import load
from tenferro_ref.tensor import load_npz
from tests.e2e.command import assert_one_line_error
from tests.e2e.command import in_this_process as tenferro_ref
from tests.e2e.command import tenferro_ref as in_a_process
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once


module_or_skip("jaxlib")

TEXT = """// two rows are added to the argument
module {
  func.func @main(%arg0: tensor<2x3xf64>) -> tensor<2xf64> {
    %rows = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]> : tensor<2x3xf64>
    %0 = stablehlo.add %arg0, %rows : tensor<2x3xf64>
    %zero = stablehlo.constant dense<0.0> : tensor<f64>
    %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>
    return %1 : tensor<2xf64>
  }
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    file = tmp_path / "f.mlir"
    file.write_text(TEXT)
    return file


def test_exec_takes_the_arguments_alone(module: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", in0=np.ones((2, 3)))
    run = tenferro_ref("exec", module, tmp_path / "in.npz", tmp_path / "out.npz")
    assert (run.status, run.err) == (0, "")
    assert load_npz(tmp_path / "out.npz", "out")[0].tolist() == [9.0, 18.5]


def test_check_draws_the_arguments_alone(module: Path) -> None:
    plugin_or_skip("xla081")
    run = tenferro_ref("check", module, "--seed", 1, "--executors", "native-nopasses,pjrt:xla081", "--json")
    assert (run.status, {row["verdict"] for row in run.rows}) == (0, {"pass"})


def test_emit_gives_a_module_of_the_same_signature(module: Path) -> None:
    run = tenferro_ref("emit", module)
    assert run.status == 0
    assert "func.func @main(%arg0: tensor<2x3xf64>) -> tensor<2xf64> {" in run.out
    assert load(run.out).program == load(TEXT).program
    shown = in_a_process("show", "-", stdin=run.out.encode())
    assert shown.out == tenferro_ref("show", module).out


def test_emitted_bytes_are_read_again(module: Path, tmp_path: Path) -> None:
    run = in_a_process("emit", module, "--format", "portable=1.0.0", stdout=tmp_path / "f.mlirbc")
    assert (run.status, run.err) == (0, "")
    assert tenferro_ref("show", tmp_path / "f.mlirbc").out == tenferro_ref("show", module).out
    assert_one_line_error(tenferro_ref("emit", module, "--format", "portable=99.0.0"), 2, "versions 0.9.0 to")


def test_what_cannot_be_read_is_one_line_with_its_place(module: Path) -> None:
    module.write_text(TEXT.replace("stablehlo.add %arg0, %rows", "stablehlo.uniform_quantize %arg0"))
    assert_one_line_error(tenferro_ref("show", module), 2, f"{module}:5:10", "stablehlo.uniform_quantize")


def test_a_module_that_ends_its_parser_is_an_error_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "deep.mlir"
    file.write_text("module attributes {a = " + "[" * 50_000 + "]" * 50_000 + "} {}")
    assert_one_line_error(tenferro_ref("show", file), 2, str(file), "SIGSEGV")
