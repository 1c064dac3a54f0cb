"""x * c + x * c is rewritten to (x + x) * c

Run: python reproduce.py   (needs the package tenferro-ref and the plugin: pip install xla-cpu-pjrt)
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
  "n_slots": 6,
  "inputs": [
    {"slot": 0, "dtype": "F32", "shape": []}
  ],
  "instructions": [
    {"op": "Constant", "attrs": {"dtype": "F32", "data": "0000803a"}, "inputs": [], "outputs": [1]},
    {"op": "Multiply", "attrs": {}, "inputs": [0, 1], "outputs": [2]},
    {"op": "Constant", "attrs": {"dtype": "F32", "data": "0000803a"}, "inputs": [], "outputs": [3]},
    {"op": "Multiply", "attrs": {}, "inputs": [0, 3], "outputs": [4]},
    {"op": "Add", "attrs": {}, "inputs": [2, 4], "outputs": [5]}
  ],
  "outputs": [5]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (), 'e6b1617f'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.constant dense<0x3A800000> : tensor<f32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<f32>
    %2 = stablehlo.constant dense<0x3A800000> : tensor<f32>
    %3 = stablehlo.multiply %arg0, %2 : tensor<f32>
    %4 = stablehlo.add %1, %3 : tensor<f32>
    return %4 : tensor<f32>
  }
}
"""


def main() -> int:
    inputs = [np.frombuffer(bytes.fromhex(data), dtype).reshape(shape, order="F") for dtype, shape, data in INPUTS]
    case = Case.of(loads(PROGRAM), inputs)
    pool = Pool()
    try:
        executor = pool.make('pjrt:xla-cpu-pjrt@parity')
        answer = judge(executor, Reference(case, NativeExecutor()))
    finally:
        pool.close()
    print(answer.executor, answer.verdict.value, answer.reason)
    return 1 if answer.verdict.is_disagreement else 0


if __name__ == "__main__":
    sys.exit(main())
