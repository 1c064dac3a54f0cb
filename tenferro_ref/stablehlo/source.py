"""`Source`: a StableHLO module as it was handed in, with what must be known to run it unchanged."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tenferro_ref.ops import TensorType

#: Custom calls by which JAX calls the Python process that lowered a module (`jax.debug.print`, `jax.pure_callback`).
_CALLBACK = re.compile(r"custom_call:xla_(ffi_)?(partitioned_)?python_\w*callback")
#: Operations that exchange data with a host while the module runs.
_HOST = frozenset({"infeed", "outfeed", "recv", "send"})
#: Operations that only several devices, or an order among them, give a meaning.
_DISTRIBUTED = frozenset({
    "after_all", "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "create_token",
    "partition_id", "reduce_scatter", "replica_id", "sdy.manual_computation",
})  # fmt: skip


def needs_host(name: str) -> str:
    """Why no other process can run an operation of `Source.ops` than the host that it speaks to; "" for all others."""
    if _CALLBACK.fullmatch(name):
        return "it calls a Python function of the process that lowered the module, which no other process has"
    return "it waits for a host that takes part, and none does" if name in _HOST else ""


def distributed(name: str) -> str:
    """Why a reference of one device cannot run an operation of `Source.ops`; "" for all others."""
    reason = "it is about several devices or tokens, of which a reference of one device has none"
    return reason if name in _DISTRIBUTED else ""


@dataclass(frozen=True)
class Source:
    """A module whose function `main` can be run by anybody who takes StableHLO; the loader makes one (`loader.signature`).

    Attributes
    ----------
    code
        The module as it was handed in: text, MLIR bytecode or a portable artifact. A module whose function is not called
        `main` has a further function of that name, which calls it; shardings are left out.
    arguments, results
        Types of the arguments and results of `main`.
    ops
        Each operation in the module with each element type of its operands and results: `("add", "f32")`,
        `("custom_call:TARGET", "f64")`, `("chlo.erf", "f32")`.
    demands
        For each argument what drawn values must be (`loader.demands`).
    where
        What the module is called in errors.
    """

    code: str | bytes
    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    ops: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
    demands: tuple[str, ...] = field(default=(), compare=False)
    where: str = field(default="StableHLO", compare=False)

    def has(self, name: str, *elements: str) -> bool:
        """Whether the module has that operation, of one of these element types if any are given."""
        return any(op == name and (not elements or element in elements) for op, element in self.ops)

    @property
    def text(self) -> str | None:
        """The module's text; None if it was handed in as bytes."""
        return self.code if isinstance(self.code, str) else None
