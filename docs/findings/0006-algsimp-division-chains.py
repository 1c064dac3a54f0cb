"""Chains of divisions are rewritten and overflow or underflow on the way

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
  "n_slots": 5,
  "inputs": [
    {"slot": 0, "dtype": "F32", "shape": []},
    {"slot": 1, "dtype": "F32", "shape": []},
    {"slot": 2, "dtype": "F32", "shape": []}
  ],
  "instructions": [
    {"op": "Divide", "attrs": {}, "inputs": [1, 2], "outputs": [3]},
    {"op": "Divide", "attrs": {}, "inputs": [0, 3], "outputs": [4]}
  ],
  "outputs": [4]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (), 'caf24971'),
    ('float32', (), 'caf24971'),
    ('float32', (), 'caf24971'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.divide %arg1, %arg2 : tensor<f32>
    %1 = stablehlo.divide %arg0, %0 : tensor<f32>
    return %1 : tensor<f32>
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
