"""x / broadcast(y) is rewritten to x * broadcast(1 / y), and 1 / y is flushed to zero

Run: python reproduce.py   (needs the package tenferro-ref and the plugin: pip install lammps-jax-pjrt-cpu)
Exit status 1 while the disagreement is there, 0 when it is gone.
"""

import sys

import numpy as np

from oracle.case import Case
from oracle.peers import NativeExecutor, Pool
from oracle.judge import Reference, judge
from tenferro_ref.program import loads

PROGRAM = r"""{
  "tenferro_program": 1,
  "kind": "graph",
  "n_slots": 4,
  "inputs": [
    {"slot": 0, "dtype": "F32", "shape": [3]},
    {"slot": 1, "dtype": "F32", "shape": []}
  ],
  "instructions": [
    {"op": "BroadcastInDim", "attrs": {"shape": [3], "dims": []}, "inputs": [1], "outputs": [2]},
    {"op": "Divide", "attrs": {}, "inputs": [0, 2], "outputs": [3]}
  ],
  "outputs": [3]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (3,), 'e6b1617f9976967e00000040'),
    ('float32', (), 'e6b1617f'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<3xf32>, %arg1: tensor<f32>) -> tensor<3xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<3xf32>
    return %1 : tensor<3xf32>
  }
}
"""


def main() -> int:
    inputs = [np.frombuffer(bytes.fromhex(data), dtype).reshape(shape, order="F") for dtype, shape, data in INPUTS]
    case = Case.of(loads(PROGRAM), inputs)
    pool = Pool()
    try:
        executor = pool.make('pjrt:lammps-jax-pjrt-cpu@parity')
        answer = judge(executor, Reference(case, NativeExecutor()))
    finally:
        pool.close()
    print(answer.executor, answer.verdict.value, answer.reason)
    return 1 if answer.verdict.is_disagreement else 0


if __name__ == "__main__":
    sys.exit(main())
