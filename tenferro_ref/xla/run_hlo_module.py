"""Bridge to OpenXLA's `run_hlo_module`: does a module run elsewhere? (SEMANTICS 7.4)

Switched on by TENFERRO_XLA_RUN_HLO_MODULE. It feeds the module inputs of its own choice and says nothing of the engine's
values: passing means that the module parses, compiles and executes there.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenferro_ref.children import ending, environment
from tenferro_ref.errors import MissingDependency, MissingEnv, PjrtCall, WorkerDied

TOOL_VARIABLE = "TENFERRO_XLA_RUN_HLO_MODULE"
PLATFORM_VARIABLE = "TENFERRO_XLA_RUN_HLO_PLATFORM"
DEFAULT_PLATFORM = "Host"
#: What the tool writes to stderr once it has run: with a reference to compare with, or without.
NOTICES = ("Results on", "Skipping reference")
_TAIL = 2000


@dataclass(frozen=True)
class RunHloModule:
    """A run that passed: the command, and what the tool wrote."""

    command: tuple[str, ...]
    stdout: str
    stderr: str


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
        raise MissingDependency("run_hlo_module", f"{TOOL_VARIABLE} names {value}, which is not an executable file")
    return tool


def run_hlo_module(
    text: str, *, environ: Mapping[str, str] = os.environ, timeout_seconds: float = 300.0
) -> RunHloModule:
    """Execute a StableHLO module with OpenXLA's tool, once, on the platform of TENFERRO_XLA_RUN_HLO_PLATFORM.

    Raises
    ------
    MissingEnv, MissingDependency
        As `tool_from_env`.
    PjrtCall
        The tool failed, or did not say that it ran the module.
    WorkerDied
        The tool was killed by a signal, or took longer than `timeout_seconds`.
    """
    tool = tool_from_env(environ)
    platform = environ.get(PLATFORM_VARIABLE) or DEFAULT_PLATFORM
    with tempfile.TemporaryDirectory(prefix="tenferro-hlo-") as folder:
        module = Path(folder) / "module.mlir"
        module.write_text(text, "utf-8")
        command = (str(tool), str(module), "--input_format=stablehlo", f"--platform={platform}", "--iterations=1")
        try:
            done = subprocess.run(
                command,
                env=environment(given=environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_seconds,
            )
        except subprocess.TimeoutExpired as error:
            raise WorkerDied("run_hlo_module", f"timeout {timeout_seconds:g} s", _tail(error.stderr or b"")) from None
        except OSError as error:
            raise MissingDependency("run_hlo_module", f"{tool} cannot be started: {error.strerror or error}") from None
    stdout, stderr = (s.decode("utf-8", "replace") for s in (done.stdout, done.stderr))
    if done.returncode < 0:
        raise WorkerDied("run_hlo_module", ending(done.returncode), _tail(done.stderr))
    if done.returncode:
        raise PjrtCall("run_hlo_module", f"exit {done.returncode}", _tail(done.stderr))
    if not any(notice in stderr for notice in NOTICES):
        expected = " or ".join(map(repr, NOTICES))
        raise PjrtCall("run_hlo_module", "exit 0", f"stderr has neither {expected}: {_tail(done.stderr)}")
    return RunHloModule(command, stdout, stderr)


def _tail(output: bytes) -> str:
    return output[-_TAIL:].decode("utf-8", "replace").strip()
