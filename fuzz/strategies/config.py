"""What programs may contain: `Config`, and the ops that every layer of the reference handles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tenferro_ref.dtype import DType
from tenferro_ref.ops import OPS, Extension, Op


@dataclass(frozen=True, slots=True)
class Config:
    """Limits and mix of generated programs.

    Attributes
    ----------
    ops
        Ops to use; None for those that have a strategy, a NumPy kernel, a StableHLO form and an enclosure.
    dtypes
        Dtypes of inputs and constants and targets of Convert; Bool also arises from Compare. An op uses those that it
        admits; integer Divide and Pow, which may fault, are left out.
    min_instructions, max_instructions
        Length of a program, inclusive.
    max_elements
        Largest tensor. One program in a hundred comes near it, the others stay below `usual_elements`.
    max_rank, usual_rank
        Ranks above `usual_rank` are rare.
    dim_exprs
        Shapes of Reshape and BroadcastInDim now and then read extents from their operands.
    motifs
        Beside single ops also sequences that passes and compilers look for.
    weights
        Factors on the chance of an op or motif, by name.
    """

    ops: tuple[type[Op], ...] | None = None
    dtypes: tuple[DType, ...] = tuple(DType)
    min_instructions: int = 1
    max_instructions: int = 14
    max_elements: int = 20_000
    usual_elements: int = 1_500
    max_rank: int = 6
    usual_rank: int = 4
    max_outputs: int = 6
    dim_exprs: bool = True
    motifs: bool = True
    weights: tuple[tuple[str, float], ...] = ()

    @property
    def vocabulary(self) -> frozenset[type[Op]]:
        """The ops in use."""
        return _vocabulary(self.ops)


DEFAULT = Config()


@cache
def _vocabulary(ops: tuple[type[Op], ...] | None) -> frozenset[type[Op]]:
    return frozenset(default_ops() if ops is None else ops)


@cache
def default_ops() -> tuple[type[Op], ...]:
    """Ops with a row in every layer that a parity check goes through."""
    # imported here: the generator itself knows nothing of kernels, emission and enclosures
    from fuzz.strategies.extensions import STRATEGY
    from oracle.enclosure import ENCLOSE
    from tenferro_ref.runtime import KERNELS
    from tenferro_ref.stablehlo import EMIT

    # what a layer does with an extension is not in its table but in the families' own
    layers = {op: (STRATEGY,) if op is Extension else (STRATEGY, KERNELS, EMIT, ENCLOSE) for op in OPS}
    return tuple(op for op, tables in layers.items() if all(op in table for table in tables))
