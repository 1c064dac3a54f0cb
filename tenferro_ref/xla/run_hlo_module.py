"""Bridge to OpenXLA's `run_hlo_module`: what a module gives there (SEMANTICS 7.4).

Switched on by TENFERRO_XLA_RUN_HLO_MODULE. Left alone, the tool chooses its inputs and compares two platforms of its own: passing means
that the module parses, compiles and executes there. Given inputs, it runs on these, and its results are read.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

from tenferro_ref import keeper
from tenferro_ref.children import LOG_BYTES, ending, environment, tail
from tenferro_ref.errors import FormatError, InvalidArgument, MissingDependency, MissingEnv, PjrtCall, WorkerDied
from tenferro_ref.pjrt.proto import MESSAGES
from tenferro_ref.tensor import Array, listed
from tenferro_ref.xla.literals import arrays, literal

TOOL_VARIABLE = "TENFERRO_XLA_RUN_HLO_MODULE"
PLATFORM_VARIABLE = "TENFERRO_XLA_RUN_HLO_PLATFORM"
DEFAULT_PLATFORM = "Host"
#: What the tool writes to stderr once it has run: with a reference to compare with, or without.
NOTICES = ("Results on", "Skipping reference")
_TAIL = 2000
_NAME = "run_hlo_module"


@dataclass(frozen=True, eq=False)
class RunHloModule:
    """A run that passed: the command, what the tool wrote, and the results for inputs that were given (else None)."""

    command: tuple[str, ...]
    stdout: str
    stderr: str
    results: tuple[Array, ...] | None = None


def tool_from_env(environ: Mapping[str, str] = os.environ) -> Path:
    """The tool that TENFERRO_XLA_RUN_HLO_MODULE names.

    Raises
    ------
    MissingEnv
        The variable is unset, or empty.
    MissingDependency
        It does not name an executable file.
    """
    value = environ.get(TOOL_VARIABLE)
    if not value:
        raise MissingEnv(TOOL_VARIABLE, "unset" if value is None else "empty", "OpenXLA's run_hlo_module")
    tool = Path(value)
    if not (tool.is_file() and os.access(tool, os.X_OK)):
        raise MissingDependency(_NAME, f"{TOOL_VARIABLE} names {value}, which is not an executable file")
    return tool


def run_hlo_module(
    module: str | bytes,
    inputs: Sequence[Array] | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    timeout_seconds: float = 300.0,
) -> RunHloModule:
    """Execute a StableHLO module with OpenXLA's tool, once, on the platform of TENFERRO_XLA_RUN_HLO_PLATFORM.

    Parameters
    ----------
    module
        Its text or bytecode.
    inputs
        The arguments, of which the results are wanted; None for arguments of the tool's own choice, and a comparison with its
        reference platform.

    Raises
    ------
    MissingEnv, MissingDependency
        As `tool_from_env`.
    InvalidArgument
        The inputs are no list of arrays.
    UnsupportedDType
        An input of a dtype that literals have no field for here.
    PjrtCall
        The tool failed, did not say that it ran the module, or gave results that cannot be read.
    WorkerDied
        The tool was killed by a signal, or took longer than `timeout_seconds`.
    """
    tool = tool_from_env(environ)
    platform = environ.get(PLATFORM_VARIABLE) or DEFAULT_PLATFORM
    with keeper.folder("tenferro-hlo-") as folder:
        file, given, gives = (Path(folder) / name for name in ("module.mlir", "arguments.pb", "results.pb"))
        file.write_bytes(module.encode() if isinstance(module, str) else module)
        command = [str(tool), str(file), "--input_format=stablehlo", f"--platform={platform}", "--iterations=1"]
        if inputs is not None:
            sent = MESSAGES["RunHloModuleLiterals"](iterations=[{"arguments": [literal(x) for x in _arrays(inputs)]}])
            given.write_bytes(sent.SerializeToString())
            command += ["--reference_platform=", f"--input_literals_file={given}", f"--output_literals_file={gives}"]
        stdout, stderr = _run(command, environment(given=environ), timeout_seconds, Path(folder))
        results = None if inputs is None else _results(gives)
    return RunHloModule(tuple(command), stdout, stderr, results)


def _arrays(inputs: object) -> list[Array]:
    arrays = listed(_NAME, inputs)
    for i, x in enumerate(arrays):
        if not isinstance(x, np.ndarray):
            raise InvalidArgument(_NAME, f"input {i}", f"expected a NumPy array, got {type(x).__name__}")
    return arrays


def _run(command: Sequence[str], env: dict[str, str], seconds: float, folder: Path) -> tuple[str, str]:
    """What the tool writes to standard output and to standard error, if it says that it ran the module.

    Both are files: a pipe stays open as long as anything that the tool has started.
    """
    with (folder / "stdout").open("w+b") as out, (folder / "stderr").open("w+b") as err:
        try:
            process = keeper.start(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as error:
            detail = f"{command[0]} cannot be started: {error.strerror or error}"
            raise MissingDependency(_NAME, detail) from None
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise WorkerDied(_NAME, f"timeout {seconds:g} s", _tail(tail(err, _TAIL))) from None
        finally:
            status = keeper.stop(process)
        stdout, stderr = (tail(file, LOG_BYTES) for file in (out, err))
    if status < 0:
        raise WorkerDied(_NAME, ending(status), _tail(stderr))
    if status:
        raise PjrtCall(_NAME, f"exit {status}", _tail(stderr))
    words = stderr.decode("utf-8", "replace")
    if not any(notice in words for notice in NOTICES):
        expected = " or ".join(map(repr, NOTICES))
        raise PjrtCall(_NAME, "exit 0", f"stderr has neither {expected}: {_tail(stderr)}")
    return stdout.decode("utf-8", "replace"), words


def _results(file: Path) -> tuple[Array, ...]:
    try:
        (iteration,) = MESSAGES["RunHloModuleLiterals"].FromString(file.read_bytes()).iterations
        return tuple(arrays(iteration.result))
    except (OSError, DecodeError, FormatError, ValueError) as error:
        raise PjrtCall(_NAME, "exit 0", f"no results that can be read: {error}") from None


def _tail(output: bytes) -> str:
    return output[-_TAIL:].decode("utf-8", "replace").strip()
