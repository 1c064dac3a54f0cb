"""IREE: a reduction that is read along two axes is right on the diagonal only

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
  "n_slots": 3,
  "inputs": [
    {"slot": 0, "dtype": "F32", "shape": [2, 2]}
  ],
  "instructions": [
    {"op": "ReduceSum", "attrs": {"axes": [0]}, "inputs": [0], "outputs": [1]},
    {"op": "DotGeneral", "attrs": {"lhs_contracting_dims": [], "rhs_contracting_dims": [], "lhs_batch_dims": [], "rhs_batch_dims": []}, "inputs": [1, 1], "outputs": [2]}
  ],
  "outputs": [2]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (2, 2), '0000803f000040400000004000008040'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.dot_general %1, %1, contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    return %2 : tensor<2x2xf32>
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
