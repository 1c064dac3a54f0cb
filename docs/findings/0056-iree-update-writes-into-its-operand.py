"""IREE: an update writes into its operand, though that is a result too

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
    {"slot": 0, "dtype": "F32", "shape": [2]},
    {"slot": 1, "dtype": "F32", "shape": [1]},
    {"slot": 2, "dtype": "I32", "shape": [1]}
  ],
  "instructions": [
    {"op": "DynamicUpdateSlice", "attrs": {}, "inputs": [0, 1, 2], "outputs": [3]}
  ],
  "outputs": [0, 3]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (2,), '0000803f00000040'),
    ('float32', (1,), '00001041'),
    ('int32', (1,), '00000000'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<1xf32>, %arg2: tensor<1xi32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = stablehlo.slice %arg2 [0:1] : (tensor<1xi32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>
    %2 = stablehlo.dynamic_update_slice %arg0, %arg1, %1 : (tensor<2xf32>, tensor<1xf32>, tensor<i32>) -> tensor<2xf32>
    return %arg0, %2 : tensor<2xf32>, tensor<2xf32>
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
