"""StableHLO: from a `LoweringView` to text (`emit`), from text and bytecode to a GraphProgram (`loader`) (SEMANTICS 7)."""

from tenferro_ref.stablehlo.emit import (
    ATTRIBUTE,
    EMIT,
    NONE,
    TARGET,
    OwnKernels,
    fingerprint,
    lower_into,
    lower_to_stablehlo,
)
from tenferro_ref.stablehlo.loader import Loaded, load, lower_loaded
from tenferro_ref.stablehlo.source import Source
from tenferro_ref.stablehlo.writer import Body, SsaValue

__all__ = [
    "ATTRIBUTE",
    "EMIT",
    "NONE",
    "TARGET",
    "Body",
    "Loaded",
    "OwnKernels",
    "Source",
    "SsaValue",
    "fingerprint",
    "load",
    "lower_into",
    "lower_loaded",
    "lower_to_stablehlo",
]
