"""Running programs on the real plugins, as the tests of StableHLO do."""

from tests.stablehlo.conftest import run_xla

__all__ = ["run_xla"]
