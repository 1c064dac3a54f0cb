"""The bridge, against small shell scripts in the tool's place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference, judge
from oracle.peers import NativeExecutor, Pool
from oracle.verdict import Verdict
from tenferro_ref import frontend as tn
from tenferro_ref.dtype import DType
from tenferro_ref.errors import (
    FormatError,
    InvalidArgument,
    MissingDependency,
    MissingEnv,
    PjrtCall,
    UnsupportedDType,
    WorkerDied,
)
from tenferro_ref.pjrt import Client, load_plugin
from tenferro_ref.pjrt.proto import MESSAGES
from tenferro_ref.program import GraphBuilder, Value
from tenferro_ref.stablehlo import load
from tenferro_ref.xla import run_hlo_module
from tenferro_ref.xla.literals import _NUMBERS, arrays, literal
from tenferro_ref.xla.run_hlo_module import PLATFORM_VARIABLE, TOOL_VARIABLE
from tests.e2e.command import assert_one_line_error, in_this_process
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

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


def test_what_the_tool_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    script = 'echo "Results on Host" >&2; (sleep 60; echo late) &'
    assert run_hlo_module(MODULE, environ=environment(tmp_path, script), timeout_seconds=30).stdout == ""


@pytest.mark.parametrize("x", [np.array(["a"]), np.arange(3, dtype=">f4"), np.array([None])], ids=str)
def test_inputs_that_no_literal_holds(tmp_path: Path, x: np.ndarray) -> None:
    with pytest.raises(UnsupportedDType, match="is not supported as a literal"):
        run_hlo_module(MODULE, [x], environ=environment(tmp_path, "exit 1"))


@pytest.mark.parametrize("inputs", [[[1.0]], np.ones(2), 3], ids=str)
def test_inputs_that_are_no_arrays(tmp_path: Path, inputs: Any) -> None:
    with pytest.raises(InvalidArgument, match="run_hlo_module"):
        run_hlo_module(MODULE, inputs, environ=environment(tmp_path, "exit 1"))


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


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that keeps what it is given, and answers with `results.pb` beside it."""
    script = """here=$(dirname "$0")
    cp "$1" "$here/module.mlir"
    for word; do case $word in
      --input_literals_file=*) cp "${word#*=}" "$here/arguments.pb" ;;
      --output_literals_file=*) cp "$here/results.pb" "${word#*=}" ;;
    esac; done
    echo "Skipping reference runner" >&2"""
    monkeypatch.setenv(TOOL_VARIABLE, environment(tmp_path, script)[TOOL_VARIABLE])
    return tmp_path


def answer(tool: Path, result: object) -> None:
    (tool / "results.pb").write_bytes(
        MESSAGES["RunHloModuleLiterals"](iterations=[{"result": result}]).SerializeToString()
    )


@pytest.mark.parametrize("graph", [direct, elementwise, einsum])
def test_modules_of_the_emitter_run_there(
    graph: Callable[[GraphBuilder], Value], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With the tool that TENFERRO_XLA_RUN_HLO_MODULE names; without one, a stand-in gives the native results."""
    module_or_skip("jaxlib")
    b = GraphBuilder()
    program = b.build(graph(b))
    generator = np.random.default_rng(0)
    case = Case.of(program, [generator.random(t.shape).astype(t.dtype.numpy) for t in program.input_types])
    reference = Reference(case, NativeExecutor())
    if not os.environ.get(TOOL_VARIABLE):
        (right,) = reference.execution.outputs
        answer(request.getfixturevalue("tool"), literal(right))
        assert judge(Pool().make("run-hlo-module"), reference).verdict is Verdict.PASS
        assert load((tmp_path / "module.mlir").read_text()).arguments == program.input_types
        sent = (
            MESSAGES["RunHloModuleLiterals"]
            .FromString((tmp_path / "arguments.pb").read_bytes())
            .iterations[0]
            .arguments
        )
        for given, argument in zip(case.inputs, sent, strict=True):
            np.testing.assert_array_equal(arrays(argument)[0], given)
        answer(tmp_path, {"shape": {"element_type": 13}, "tuple_literals": [literal(right + 1)]})
        assert judge(Pool().make("run-hlo-module"), reference).verdict is Verdict.MISMATCH
        return
    assert judge(Pool().make("run-hlo-module"), reference).verdict is Verdict.PASS


def test_the_command_line_takes_it(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result, results that cannot be read, no tool."""
    (tool / "p.txt").write_text("graph (%0: F32[2]) -> (%1) slots 2 {\n  %1 = Negate(%0) : F32[2]\n}\n")
    np.savez(tool / "in.npz", in0=np.array([1, -2], np.float32))
    answer(tool, literal(np.array([-1, 2], np.float32)))
    call = ("check", tool / "p.txt", "--inputs", tool / "in.npz", "--executors", "run-hlo-module", "--json")
    done = in_this_process(*call)
    assert (done.status, done.rows[-1]["verdict"], done.rows[-1]["executor"]) == (0, "pass", "run-hlo-module")
    (tool / "results.pb").write_bytes(b"junk")
    done = in_this_process(*call)
    assert (done.status, done.rows[-1]["verdict"]) == (1, "error")
    assert "no results that can be read" in done.rows[-1]["reason"]
    monkeypatch.delenv(TOOL_VARIABLE)
    assert_one_line_error(in_this_process(*call), 3, f"{TOOL_VARIABLE} is unset")


@pytest.mark.parametrize("dtype", _NUMBERS, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2), (3, 1, 2)])
def test_literals(dtype: DType, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype.numpy)
    message = literal(array)
    (again,) = arrays(type(message).FromString(message.SerializeToString()))
    assert (again.dtype, again.shape, again.tobytes("F")) == (array.dtype, array.shape, array.tobytes("F"))


def test_literals_are_those_of_xla() -> None:
    """As a plugin writes the constants of a module."""
    written = {"bool": ("true", "false"), "complex": ("(1.0, 2.0)", "(3.0, 4.0)"), "float": ("1.0", "3.0")}
    types, lines = [], []
    for number, dtype in enumerate(_NUMBERS):
        x, y = written.get(dtype.kind, ("1", "3"))
        types.append(f"tensor<1x3x{dtype.value.element}>")
        lines.append(f"%{number} = stablehlo.constant dense<[[{x}, {y}, {y}]]> : {types[-1]}")
    names, tensors = ", ".join(f"%{n}" for n in range(len(types))), ", ".join(types)
    code = "\n".join([f"func.func @main() -> ({tensors}) {{", *lines, f"return {names} : {tensors}", "}"])
    with Client(load_plugin(plugin_or_skip("xla081"))) as client:
        program, format = client.compile(code, parameters=[]).optimized_program()
    assert format == "hlo_with_config"
    module = MESSAGES["HloModuleProtoWithConfig"].FromString(program).hlo_module
    found = [
        array
        for c in module.computations
        for i in c.instructions
        if i.opcode == "constant"
        for array in arrays(i.literal)
    ]
    assert {DType.of(array) for array in found} == set(_NUMBERS)
    for array in found:
        first, other = {"b": (True, False), "c": (1 + 2j, 3 + 4j)}.get(array.dtype.kind, (1, 3))
        assert array.tolist() == [[first, other, other]]


def test_literals_that_are_none() -> None:
    sound = literal(np.zeros((2, 3), np.float32))
    for change, words in [
        ({"element_type": 14}, "element type 14"),
        ({"dimensions": [7]}, r"24 bytes of F32, for the shape \[2, 3, 7\]"),
        ({"layout": {"minor_to_major": [0]}}, r"its layout is \[1, 0, 0\]"),
    ]:
        broken = type(sound)(shape=change)
        message = type(sound).FromString(sound.SerializeToString() + broken.SerializeToString())
        if "dimensions" in change:
            message.shape.layout.minor_to_major[:] = [2, 1, 0]
        with pytest.raises(FormatError, match=words):
            arrays(message)
    with pytest.raises(UnsupportedDType):
        literal(np.zeros(2, ml_dtypes.int4))
