"""Running programs on the real plugins, as the tests of StableHLO do."""

from tests.stablehlo.conftest import run_xla, xla_client

__all__ = ["run_xla", "xla_client"]
