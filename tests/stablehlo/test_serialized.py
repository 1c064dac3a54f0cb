"""Bytecode and portable artifacts: read back, they are the module; what cannot be written is said."""

from __future__ import annotations

import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import UnsupportedOp, UsageError
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import load, lower_to_stablehlo
from tenferro_ref.stablehlo.serialized import serialize
from tests.libraries import module_or_skip
from tests.op_examples import program_of, scatters

module_or_skip("jaxlib")

TAN = "func.func @main(%a: tensor<2xf64>) -> tensor<2xf64> {\n %0 = stablehlo.tan %a : tensor<2xf64>\n return %0 : tensor<2xf64>\n}"


@pytest.mark.parametrize("form", ["bytecode", "portable", "portable=1.0.0", "portable=0.9.0"])
def test_what_is_written_is_read_back(form: str) -> None:
    program, _ = program_of(scatters(DType.F64))
    text = lower_to_stablehlo(LoweringView.of(program))
    content = serialize(text, form)
    assert content.startswith(b"ML\xefR")
    assert (b"StableHLO_v" in content[:20]) == form.startswith("portable")
    assert load(content).program == load(text).program


@pytest.mark.parametrize(
    "form", ["", "elf", "bytecode=1", "portable=", "portable=1", "portable=0.1.0", "portable=99.0.0"]
)
def test_forms_that_nobody_can_write(form: str) -> None:
    with pytest.raises(UsageError, match=f"--format {form}: "):
        serialize(TAN, form)


def test_a_module_that_an_old_version_lacks_the_op_for(capfd: pytest.CaptureFixture[str]) -> None:
    assert serialize(TAN, "portable=1.4.0")
    with pytest.raises(UnsupportedOp, match=r"StableHLO 1\.3\.0 has no form for it"):
        serialize(TAN, "portable=1.3.0")
    assert capfd.readouterr().err == ""
