"""The engines of this package: a PJRT plugin, and the reader of StableHLO."""
