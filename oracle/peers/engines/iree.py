"""IREE: compiled by `iree-base-compiler` for the host's CPU, run by `iree-base-runtime`.

Requests and answers as those of `tenferro_ref.isolation.engines.pjrt`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from importlib import metadata
from typing import Any

import numpy as np

from oracle.peers.errors import EngineFault
from tenferro_ref.isolation.engine import Engine, library, run_sets
from tenferro_ref.isolation.wire import Message
from tenferro_ref.tensor import Array, column_major

FLAGS = (
    "--iree-input-type=stablehlo",
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",
)
#: Modules that are kept loaded: triage runs one again and again, with other values or alone.
_KEPT = 16


def open(settings: Message) -> Engine:
    """Load compiler and runtime."""
    runtime, compiler = (library(name, "iree") for name in ("iree.runtime", "iree.compiler.api"))
    config = runtime.Config("local-sync")

    def compile_module(code: str | bytes) -> bytes:
        with closing(compiler.Session()) as session, closing(session.invocation()) as invocation:
            session.set_flags(*FLAGS)
            content = code.encode() if isinstance(code, str) else code
            source = compiler.Source.wrap_buffer(session, content + b"\0")
            with _diagnostics() as lines:
                done = invocation.parse_source(source) and invocation.execute()
            if not done:
                raise EngineFault(engine="iree", detail=" ".join(lines))
            with closing(compiler.Output.open_membuffer()) as output:
                invocation.output_vm_bytecode(output)
                return bytes(output.map_memory())

    @lru_cache(_KEPT)
    def function(code: str | bytes) -> Any:
        """The module's function, which keeps the module alive."""
        code_object = compile_module(code)
        context = runtime.SystemContext(config=config)
        module = runtime.VmModule.copy_buffer(config.vm_instance, code_object)
        context.add_vm_module(module)
        return context.modules[module.name]["main"]

    def execute(main: Any, inputs: list[Array]) -> list[Array]:
        results = main(*(np.asarray(x, order="C") for x in inputs))
        return [column_major(np.asarray(r)) for r in (results if isinstance(results, tuple) else (results,))]

    def answer(request: Message) -> Message:
        try:
            return run_sets(request, lambda: function(request["code"]), execute)
        except (RuntimeError, ValueError) as error:
            raise EngineFault(engine="iree", detail=str(error)) from None

    facts = {name: metadata.version(name) for name in ("iree-base-compiler", "iree-base-runtime")}
    return Engine({**facts, "flags": " ".join(FLAGS)}, answer)


@contextmanager
def _diagnostics() -> Iterator[list[str]]:
    """Collects the lines that native code writes to standard error, those with errors first."""
    words: list[str] = []
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield words
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").splitlines()
            words += [line for line in lines if "error:" in line][:3] or lines[:3]
