"""pow(2^n, y) is computed as exp2(n * y)

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
  "n_slots": 3,
  "inputs": [
    {"slot": 0, "dtype": "F32", "shape": [2]}
  ],
  "instructions": [
    {"op": "Constant", "attrs": {"dtype": "F32", "data": "0000803a"}, "inputs": [], "outputs": [1]},
    {"op": "Pow", "attrs": {}, "inputs": [1, 0], "outputs": [2]}
  ],
  "outputs": [2]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (2,), 'a2054041a2054041'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.constant dense<0x3A800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.power %1, %arg0 : tensor<2xf32>
    return %2 : tensor<2xf32>
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
