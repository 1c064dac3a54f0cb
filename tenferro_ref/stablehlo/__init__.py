"""StableHLO: from a `LoweringView` to text (SEMANTICS 7)."""

from tenferro_ref.stablehlo.emit import EMIT, fingerprint, lower_into, lower_to_stablehlo
from tenferro_ref.stablehlo.writer import Body, Value

__all__ = ["EMIT", "Body", "Value", "fingerprint", "lower_into", "lower_to_stablehlo"]
