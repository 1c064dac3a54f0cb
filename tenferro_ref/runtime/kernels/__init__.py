"""NumPy kernels of every op but Extension, whose runtimes are registered (`tenferro_ref.runtime.extension`)."""

from tenferro_ref import ops
from tenferro_ref.runtime.kernels import contraction, elementwise, indexing, reduction, reference, structural
from tenferro_ref.runtime.kernels.base import KERNELS, Kernel, PerPolicy, bind, run_kernel

KERNELS.unsupported("extension families register their own runtime", ops.Extension)
