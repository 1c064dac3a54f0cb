"""`tenferro_ref.check`, `assert_parity` and the pytest plugin: what a project that uses JAX puts into its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenferro_ref
from oracle.enclosure import MODELS
from tenferro_ref import checking, ops
from tenferro_ref.errors import TenferroError, UsageError
from tenferro_ref.program import GraphBuilder, GraphProgram
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
OVERFLOW = [np.array([1000.0, 1.0])]


@pytest.fixture(scope="module")
def using() -> Iterator[checking.Checker]:
    with checking.checker() as made:
        yield made


def log_of_exp(name: str = "logexp") -> GraphProgram:
    b = GraphBuilder(name)
    return b.build(b.apply(ops.Log(), b.apply(ops.Exp(), b.input("F64", (2,)))))


def test_a_program_is_checked() -> None:
    result = tenferro_ref.check(log_of_exp(), OVERFLOW, executors=["native-nopasses"])
    assert (result.ok, result.compared) == (True, ("native-nopasses",))
    assert [row["verdict"] for row in result.rows] == ["pass", "pass"]
    assert str(result).splitlines()[0].split() == [
        "program",
        "executor",
        "verdict",
        "worst",
        "ULP",
        "decided",
        "tight",
        "ms",
        "reason",
    ]


def test_a_jax_function_is_checked(using: checking.Checker) -> None:
    jax = module_or_skip("jax")
    checked = using.check(jax.nn.softmax, [np.ones((4, 9), np.float32)], executors="jax", model=None)
    assert [(row["verdict"], row["evidence"]) for row in checked.rows] == [("pass", "proved")] * 2


class Scaled:
    """What is called, but is no function."""

    def __call__(self, x: Any) -> Any:
        return x * 2


def doubled(x: Any, *, times: int = 1) -> Any:
    return x * 2 * times


@pytest.mark.parametrize(
    ("function", "name"),
    [(doubled, "doubled"), (partial(partial(doubled, times=2)), "doubled"), (Scaled(), "Scaled"), (partial(Scaled()), "Scaled")],
)  # fmt: skip
def test_rows_are_called_what_the_function_is(using: checking.Checker, function: Any, name: str) -> None:
    module_or_skip("jax")
    checked = using.check(function, [np.ones(2, np.float32)], executors="native", model=None)
    assert {row["program"] for row in checked.rows} == {name}


def test_arrays_are_what_jax_takes_them_for(using: checking.Checker) -> None:
    module_or_skip("jax")
    arguments = [np.linspace(0, 1, 4), {"n": 3, "z": np.complex128(1j)}]  # of 64 bits, which JAX makes 32
    checked = using.check(lambda x, y: x * y["n"] + y["z"], arguments, executors="jax", model=None)
    assert [row["verdict"] for row in checked.rows] == ["pass"] * 2


def test_a_disagreement_raises_with_the_table_and_the_page_that_explains_it(using: checking.Checker) -> None:
    plugin_or_skip("xla081")
    with pytest.raises(
        AssertionError, match=r"(?s)disagree.*expected inf, got finite.*known finding, docs/findings/0003"
    ):
        tenferro_ref.assert_parity(log_of_exp(), *OVERFLOW, executors="pjrt:xla081", using=using)


def test_what_compares_nothing_does_not_pass(using: checking.Checker) -> None:
    b = GraphBuilder()
    program = b.build(b.input("F64", (2,)) + 1.0)
    with pytest.raises(AssertionError, match="no executor but native"):
        tenferro_ref.assert_parity(program, np.ones(2), executors=["native"], using=using)
    with pytest.raises(UsageError, match="neither a program nor a function"):
        using.check(3, [], executors="native", model=None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean"):
        tenferro_ref.check(program, [np.ones(2)], executors="nativ")
    with pytest.raises(UsageError, match="names of executors are needed"):
        tenferro_ref.check(program, [np.ones(2)], executors=[])


@pytest.mark.parametrize("model", ["foo", "ieeee", "", 3, []])
def test_a_model_that_there_is_not_is_refused_and_those_that_there_are_are_named(
    using: checking.Checker, model: Any
) -> None:
    known = f"known: {', '.join(sorted(MODELS))}"
    with pytest.raises(UsageError, match=known) as caught:
        tenferro_ref.assert_parity(log_of_exp(), *OVERFLOW, executors="native-nopasses", model=model, using=using)
    assert ("did you mean 'ieee'?" in str(caught.value)) == (model == "ieeee")
    assert all(f"`{name}`" in str(tenferro_ref.check.__doc__) for name in MODELS)


@pytest.mark.parametrize(
    ("inputs", "executors", "words"),
    [
        (np.ones(2), "native", "ndarray where a list of inputs is needed"),
        ("ab", "native", "str where a list of inputs is needed"),
        (None, "native", "NoneType where a list of inputs is needed"),
        ([np.ones(2)], 3, "3 where names of executors are needed"),
        ([np.ones(2), np.ones(2)], "native", "expected 1 inputs, got 2"),
        ([np.ones(3)], "native", "program input 0, declared and given: shapes"),
        ([np.ones(2, np.float32)], "native", "input 0 is F32"),
        ([1.0], "native", "program input 0, declared and given: shapes"),
        (["ab"], "native", "<U2 is none of the dtypes"),
        ([[[1.0], [1.0, 2.0]]], "native", "Tensor: data: "),
        ([np.array([object(), None])], "native", "object is none of the dtypes"),
    ],
)
def test_inputs_that_cannot_be_the_programs_are_refused(
    using: checking.Checker, inputs: Any, executors: Any, words: str
) -> None:
    with pytest.raises(TenferroError, match=words):
        using.check(log_of_exp(), inputs, executors=executors, model=None)


def test_inputs_are_whatever_numpy_makes_arrays_of(using: checking.Checker) -> None:
    assert using.check(log_of_exp(), ([1.0, 2.0],), executors=("native-nopasses",), model=None).ok


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a\u202eb\x1b[31m", "'\"&"])
def test_nothing_in_a_name_is_markup_in_jupyter_or_acts_on_a_terminal(using: checking.Checker, name: str) -> None:
    result = using.check(log_of_exp(name), OVERFLOW, executors="native", model=None)
    for text in (result._repr_html_(), str(result)):
        assert not {"\x1b", "\u202e"} & set(text)
    assert "<script" not in result._repr_html_()
    assert result._repr_html_().count("<tr>") == 2


def run_pytest(folder: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": path, **variables}, capture_output=True, text=True
    )


@pytest.mark.nightly
def test_the_example_project_passes() -> None:
    module_or_skip("jax")
    done = run_pytest(ROOT / "examples/jax_project")
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


@pytest.mark.nightly
def test_the_fixture_fails_where_a_compiler_is_wrong(tmp_path: Path) -> None:
    module_or_skip("jax")
    plugin_or_skip("xla081")
    (tmp_path / "test_it.py").write_text(
        "import jax.numpy as jnp, numpy as np\n"
        "def test_it(assert_parity):\n"
        "    assert_parity(lambda x: jnp.log(jnp.exp(x)), np.array([1000.0], np.float32), executors=['pjrt:xla081'])\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert "executors disagree" in done.stdout
    assert "mismatch" in done.stdout


def test_importing_the_package_imports_no_library() -> None:
    script = "import sys, tenferro_ref, tenferro_ref.pytest_plugin; print({'numpy', 'jax', 'fuzz'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
