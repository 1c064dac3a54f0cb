"""Reference implementation of the tenferro tensor engine: IR, passes, executors, StableHLO emitter, PJRT client."""

__version__ = "0.1.0"
