"""IREE: the sum of all elements of outer products does not compile

Run: python reproduce.py   (needs the package tenferro-ref)
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
    {"slot": 0, "dtype": "F32", "shape": [2, 2]},
    {"slot": 1, "dtype": "F32", "shape": [2, 2]}
  ],
  "instructions": [
    {"op": "DotGeneral", "attrs": {"lhs_contracting_dims": [], "rhs_contracting_dims": [], "lhs_batch_dims": [1], "rhs_batch_dims": [1]}, "inputs": [0, 1], "outputs": [2]},
    {"op": "ReduceSum", "attrs": {"axes": [0, 1, 2]}, "inputs": [2], "outputs": [3]}
  ],
  "outputs": [3]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (2, 2), '0000803f000040400000004000008040'),
    ('float32', (2, 2), '0000803f000040400000004000008040'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<2x2xf32>, %arg1: tensor<2x2xf32>) -> tensor<f32> {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [1] x [1], contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2x2xf32>
    %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
    %2 = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x2x2xf32>, tensor<f32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
"""


def main() -> int:
    inputs = [np.frombuffer(bytes.fromhex(data), dtype).reshape(shape, order="F") for dtype, shape, data in INPUTS]
    case = Case.of(loads(PROGRAM), inputs)
    pool = Pool()
    try:
        executor = pool.make('iree')
        answer = judge(executor, Reference(case, NativeExecutor()))
    finally:
        pool.close()
    print(answer.executor, answer.verdict.value, answer.reason)
    return 1 if answer.verdict.is_disagreement else 0


if __name__ == "__main__":
    sys.exit(main())
