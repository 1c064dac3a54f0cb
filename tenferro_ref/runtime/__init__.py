"""The native runtime: executor, segmentation, backend protocols, the NumPy backend and its kernels, extension runtimes."""

from tenferro_ref.runtime.backend import BackendSession, ContractingBackend, NumpyBackend, TensorBackend
from tenferro_ref.runtime.executor import FUSION_THRESHOLD, GraphExecutor
from tenferro_ref.runtime.fusion import BLOCK
from tenferro_ref.runtime.kernels import KERNELS, run_kernel
from tenferro_ref.runtime.segment import Segment, segment_exec_program
from tenferro_ref.runtime.semiring import ALGEBRAS, SemiringBackend
