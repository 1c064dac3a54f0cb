"""StableHLO: from a `LoweringView` to text (`emit`), from text and bytecode to a GraphProgram (`loader`) (SEMANTICS 7)."""

from tenferro_ref.stablehlo.emit import EMIT, fingerprint, lower_into, lower_to_stablehlo
from tenferro_ref.stablehlo.loader import Loaded, load, lower_loaded
from tenferro_ref.stablehlo.source import Source
from tenferro_ref.stablehlo.writer import Body, SsaValue

__all__ = [
    "EMIT",
    "Body",
    "Loaded",
    "Source",
    "SsaValue",
    "fingerprint",
    "load",
    "lower_into",
    "lower_loaded",
    "lower_to_stablehlo",
]
