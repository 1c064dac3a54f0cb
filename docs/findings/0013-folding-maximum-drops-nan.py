"""Constant folding of maximum loses NaN

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
  "n_slots": 4,
  "inputs": [],
  "instructions": [
    {"op": "Constant", "attrs": {"dtype": "F32", "data": "0000803f"}, "inputs": [], "outputs": [0]},
    {"op": "Constant", "attrs": {"dtype": "F32", "data": "0000c07f"}, "inputs": [], "outputs": [1]},
    {"op": "BroadcastInDim", "attrs": {"shape": [], "dims": []}, "inputs": [1], "outputs": [2]},
    {"op": "Maximum", "attrs": {}, "inputs": [0, 2], "outputs": [3]}
  ],
  "outputs": [3]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [

]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main() -> tensor<f32> {
    %0 = stablehlo.constant dense<1.0> : tensor<f32>
    %1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<f32>
    %3 = stablehlo.maximum %0, %2 : tensor<f32>
    return %3 : tensor<f32>
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
