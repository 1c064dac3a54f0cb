"""The bridge, against small shell scripts in the tool's place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tenferro_ref import frontend as tn
from tenferro_ref.errors import MissingDependency, MissingEnv, PjrtCall, WorkerDied
from tenferro_ref.program import GraphBuilder, LoweringView, Value
from tenferro_ref.stablehlo import load, lower_to_stablehlo
from tenferro_ref.xla import run_hlo_module
from tenferro_ref.xla.run_hlo_module import PLATFORM_VARIABLE, TOOL_VARIABLE
from tests.libraries import module_or_skip

MODULE = "module {\n}\n"


def environment(tmp_path: Path, script: str, **more: str) -> dict[str, str]:
    """A tool whose last line of stderr is that of a run that passed, unless `script` ends it before."""
    tool = tmp_path / "run_hlo_module"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    return {"PATH": os.environ["PATH"], TOOL_VARIABLE: str(tool), **more}


def test_a_run_that_passes(tmp_path: Path) -> None:
    script = 'cat "$1"; shift; echo "$@"; echo "** Results on Host and Interpreter are close enough. **" >&2'
    result = run_hlo_module(MODULE, environ=environment(tmp_path, script))
    assert result.stdout == MODULE + "--input_format=stablehlo --platform=Host --iterations=1\n"
    assert "Results on Host" in result.stderr
    assert not Path(result.command[1]).exists()


def test_the_platform_is_the_users(tmp_path: Path) -> None:
    script = 'echo "$@"; echo "Skipping reference runner" >&2'
    result = run_hlo_module(MODULE, environ=environment(tmp_path, script, **{PLATFORM_VARIABLE: "CUDA"}))
    assert "--platform=CUDA" in result.stdout
    result = run_hlo_module(MODULE, environ=environment(tmp_path, script, **{PLATFORM_VARIABLE: ""}))
    assert "--platform=Host" in result.stdout


def test_exit_0_without_the_notice_is_no_pass(tmp_path: Path) -> None:
    with pytest.raises(PjrtCall, match="neither 'Results on' or 'Skipping reference'") as error:
        run_hlo_module(MODULE, environ=environment(tmp_path, "echo Results on stdout do not count"))
    assert error.value.code == "exit 0"


def test_a_failure_shows_what_the_tool_said(tmp_path: Path) -> None:
    script = 'echo "Results on Host" >&2; echo "does not parse" >&2; exit 3'
    with pytest.raises(PjrtCall, match=r"(?s)run_hlo_module failed \(exit 3\): .*does not parse"):
        run_hlo_module(MODULE, environ=environment(tmp_path, script))


def test_a_signal_and_a_hang(tmp_path: Path) -> None:
    with pytest.raises(WorkerDied, match="signal SIGABRT") as error:
        run_hlo_module(MODULE, environ=environment(tmp_path, "echo check failed >&2; kill -ABRT $$"))
    assert error.value.stderr_tail == "check failed"
    with pytest.raises(WorkerDied, match=r"timeout 0\.2 s"):
        run_hlo_module(MODULE, environ=environment(tmp_path, "exec sleep 10"), timeout_seconds=0.2)


@pytest.mark.parametrize(("given", "state"), [({}, "unset"), ({TOOL_VARIABLE: ""}, "empty")])
def test_the_gate(given: dict[str, str], state: str) -> None:
    with pytest.raises(MissingEnv, match=f"{TOOL_VARIABLE} is {state}: set it to the path of OpenXLA's run_hlo_module"):
        run_hlo_module(MODULE, environ=given)


def test_what_is_no_tool(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    plain.chmod(0o644)
    broken = tmp_path / "broken"
    broken.write_bytes(b"\0\1\2")
    broken.chmod(0o755)
    for path, message in [
        (tmp_path / "absent", "not an executable file"),
        (tmp_path, "not an executable file"),
        (plain, "not an executable file"),
        (broken, "cannot be started"),
    ]:
        with pytest.raises(MissingDependency, match=message):
            run_hlo_module(MODULE, environ={TOOL_VARIABLE: str(path)})


def direct(b: GraphBuilder) -> Value:
    x, y = b.input("F32", (2, 3)), b.input("F32", (3, 4))
    return x @ y


def elementwise(b: GraphBuilder) -> Value:
    x, y = b.input("F64", (4,)), b.input("F64", (4,))
    return tn.exp(x * y) + tn.tanh(-x)


def einsum(b: GraphBuilder) -> Value:
    return tn.einsum("ij,jk,kl->il", b.input("F64", (2, 3)), b.input("F64", (3, 4)), b.input("F64", (4, 2)))


@pytest.mark.parametrize("graph", [direct, elementwise, einsum])
def test_modules_of_the_emitter_run_there(graph: Callable[[GraphBuilder], Value], tmp_path: Path) -> None:
    """With the tool that TENFERRO_XLA_RUN_HLO_MODULE names; without one, a stand-in gives the module back to our own reader."""
    module_or_skip("jaxlib")
    b = GraphBuilder()
    program = b.build(graph(b))
    text = lower_to_stablehlo(LoweringView.of(program), phase1_only=True)
    named = bool(os.environ.get(TOOL_VARIABLE))
    stand_in = environment(tmp_path, 'cat "$1"; echo "Skipping reference runner" >&2')
    result = run_hlo_module(text, environ=os.environ if named else stand_in)
    assert named or load(result.stdout).arguments == program.input_types
