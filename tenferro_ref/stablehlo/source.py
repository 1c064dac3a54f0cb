"""`Source`: a StableHLO module as it was handed in, with what must be known to run it unchanged."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenferro_ref.ops import TensorType


@dataclass(frozen=True)
class Source:
    """A module whose function `main` can be run by anybody who takes StableHLO; the loader makes one (`loader.signature`).

    Attributes
    ----------
    code
        The module as it was handed in: text, MLIR bytecode or a portable artifact. A module whose function is not called
        `main` has a further function of that name, which calls it.
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
