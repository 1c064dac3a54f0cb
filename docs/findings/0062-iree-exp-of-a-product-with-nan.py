"""IREE: exp of a product with a NaN constant is zero

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
    {"slot": 0, "dtype": "F32", "shape": [1]}
  ],
  "instructions": [
    {"op": "Constant", "attrs": {"dtype": "F32", "data": "0000c07f"}, "inputs": [], "outputs": [1]},
    {"op": "Multiply", "attrs": {}, "inputs": [0, 1], "outputs": [2]},
    {"op": "Exp", "attrs": {}, "inputs": [2], "outputs": [3]}
  ],
  "outputs": [3]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (1,), '0000803f'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<1xf32>) -> tensor<1xf32> {
    %0 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %2 = stablehlo.multiply %arg0, %1 : tensor<1xf32>
    %3 = stablehlo.exponential %2 : tensor<1xf32>
    return %3 : tensor<1xf32>
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
