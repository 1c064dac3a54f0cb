"""StableHLO in: from text, bytecode or a portable artifact to a GraphProgram (SEMANTICS 0, 2 and 7).

The parser is that of jaxlib's MLIR bindings (the extra `jax`), which also decompose `chlo` ops, composites and ops of the
past. What the engine's vocabulary lacks is composed of what it has, value for value; what cannot be is refused, with the
operation and its place.
"""

from tenferro_ref.stablehlo.loader.reader import MOST_OPERATIONS, Loaded, load, lower_loaded
from tenferro_ref.stablehlo.loader.signature import signature

__all__ = ["MOST_OPERATIONS", "Loaded", "load", "lower_loaded", "signature"]
