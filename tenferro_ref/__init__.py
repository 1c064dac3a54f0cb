"""Reference implementation of the tenferro tensor engine: IR, passes, executors, StableHLO emitter, PJRT client."""

from tenferro_ref.checking import assert_parity, check

__version__ = "0.1.0"
__all__ = ["__version__", "assert_parity", "check"]
