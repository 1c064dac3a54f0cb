"""The XLA path: a peer of the native executor, made of `stablehlo` and `pjrt` (SEMANTICS 7)."""

from tenferro_ref.xla.executor import XlaExecutor
from tenferro_ref.xla.run_hlo_module import RunHloModule, run_hlo_module

__all__ = ["RunHloModule", "XlaExecutor", "run_hlo_module"]
