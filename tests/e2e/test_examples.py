"""Every script in `examples/` runs to its end, and what they show could come out otherwise."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tenferro_ref.program import parse
from tests.e2e.command import tenferro_ref
from tests.libraries import module_or_skip

pytestmark = pytest.mark.once


ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: Those that take 10 s and more.
LONG = ("jax_zoo", "mlp", "newton", "variational")
#: Some of the executors, where a script runs hundreds of programs.
ARGUMENTS = {"variational": ["native-unsegmented", "jax"]}


@pytest.mark.parametrize(
    "script",
    [pytest.param(p, marks=pytest.mark.nightly if p.stem in LONG else (), id=p.stem) for p in EXAMPLES],
)
def test_an_example_runs(script: Path) -> None:
    module_or_skip("jax")
    done = subprocess.run(
        [sys.executable, str(script), *ARGUMENTS.get(script.stem, ())],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_slightly_wrong_gradient_is_not_that_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cotangent that `grad` builds in is 1; with 1 + 1e-9 each element is off by as much."""
    module_or_skip("jax")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    mlp = importlib.import_module("mlp")
    one, more = (ops.Constant.of(value, DType.F64) for value in (1.0, 1 + 1e-9))
    wrong = replace(
        mlp.GRADIENT,
        instructions=tuple(replace(i, op=more) if i.op == one else i for i in mlp.GRADIENT.instructions),
    )
    right, found = (mlp.compare(program, mlp.start()) for program in (mlp.GRADIENT, wrong))
    assert (right.outside, right.decided) == (0, right.elements)
    assert found.outside > found.elements / 2


def test_the_derivative_of_a_file_is_checked() -> None:
    done = tenferro_ref(
        "check",
        ROOT / "examples" / "kepler.txt",
        "--transform",
        "vjp",
        "--seed",
        1,
        "--executors",
        "native,derivative-adjoint",
    )
    assert done.status == 0, done.err
    assert done.out.count(" pass ") == 2


def test_the_file_is_the_function_of_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    assert parse((ROOT / "examples" / "kepler.txt").read_text()) == importlib.import_module("newton").FUNCTION
