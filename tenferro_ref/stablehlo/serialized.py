"""Modules as bytes: MLIR bytecode, and StableHLO's portable artifacts. Needs the extra `jax`."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from tenferro_ref.errors import UnsupportedOp, UsageError
from tenferro_ref.stablehlo.loader import bindings


def serialize(source: str | bytes, form: str, where: str = "emitted text") -> bytes:
    """A module in the form `bytecode`, `portable` (of the bindings' own version) or `portable=VERSION`.

    Raises
    ------
    UsageError
        No such form, or a version that the bindings cannot write.
    UnsupportedOp
        The module has an operation that this version of StableHLO lacks.
    MissingDependency
        There is no jaxlib.
    """
    kind, _, version = form.partition("=")
    if kind not in ("bytecode", "portable") or (kind == "bytecode" and form != kind):
        raise UsageError(detail=f"--format {form}: must be text, bytecode, portable or portable=VERSION")
    module = bindings.parse(source, where)
    from jaxlib.mlir.dialects import stablehlo

    oldest, newest = stablehlo.get_minimum_version(), stablehlo.get_current_version()
    with bindings.context():
        if kind == "bytecode":
            written = BytesIO()
            module.operation.write_bytecode(written)
            return written.getvalue()
        version = version if form != kind else newest
        if not re.fullmatch(r"\d+\.\d+\.\d+", version) or not _key(oldest) <= _key(version) <= _key(newest):
            raise UsageError(detail=f"--format {form}: this jaxlib writes versions {oldest} to {newest}")
        messages: list[str] = []  # the exception gives no reason: it is in diagnostics, printed unless they are handled

        def handle(diagnostic: Any) -> bool:
            messages.append(diagnostic.message)
            return True

        handler = bindings.context().attach_diagnostic_handler(handle)
        try:
            artifact: bytes = stablehlo.serialize_portable_artifact(module, version)
        except ValueError as error:
            reason = messages[0] if messages else str(error)
            raise UnsupportedOp(op="module", reason=f"StableHLO {version} has no form for it: {reason}") from None
        finally:
            handler.detach()
    return artifact


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
