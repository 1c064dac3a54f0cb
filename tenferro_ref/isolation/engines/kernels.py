"""This project's kernels as custom calls inside a plugin's programs (`stablehlo.emit.kernel_call` writes the calls)."""

from __future__ import annotations

from functools import lru_cache

from tenferro_ref.pjrt import Client, ffi
from tenferro_ref.program import ExecProgram, loads, to_exec
from tenferro_ref.runtime import GraphExecutor
from tenferro_ref.stablehlo import ATTRIBUTE, TARGET
from tenferro_ref.tensor import Array


def register(client: Client) -> None:
    """Let programs of the client call our kernels.

    Raises
    ------
    UnsupportedOp, PjrtCall
        As `ffi.register`.
    """
    ffi.register(client, TARGET, ffi.Signature(None, None, {ATTRIBUTE: ffi.Text()}), _run)


def _run(*operands: Array, program: str) -> list[Array]:
    return GraphExecutor().eval_unsegmented(_program(program), list(operands))


@lru_cache(maxsize=256)
def _program(text: str) -> ExecProgram:
    return to_exec(loads(text, "a custom call"))
