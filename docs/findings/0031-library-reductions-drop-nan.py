"""Reductions over 4096 elements lose NaN: a library that the build calls has other semantics

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
  "n_slots": 3,
  "inputs": [
    {"slot": 0, "dtype": "F32", "shape": [1]}
  ],
  "instructions": [
    {"op": "Pad", "attrs": {"edge_padding_low": [0], "edge_padding_high": [4095], "interior_padding": [0]}, "inputs": [0], "outputs": [1]},
    {"op": "ReduceMax", "attrs": {"axes": [0]}, "inputs": [1], "outputs": [2]}
  ],
  "outputs": [2]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (1,), '0000c07f'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<1xf32>) -> tensor<f32> {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [0], high = [4095], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<4096xf32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.maximum across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
    return %3 : tensor<f32>
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
