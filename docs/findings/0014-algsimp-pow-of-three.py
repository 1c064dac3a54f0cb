"""pow(x, 3) is rewritten to x * x * x

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
    {"slot": 0, "dtype": "F64", "shape": []}
  ],
  "instructions": [
    {"op": "Constant", "attrs": {"dtype": "F64", "data": "0000000000000840"}, "inputs": [], "outputs": [1]},
    {"op": "Pow", "attrs": {}, "inputs": [0, 1], "outputs": [2]}
  ],
  "outputs": [2]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float64', (), '160862bf78cdf83f'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<f64>) -> tensor<f64> {
    %0 = stablehlo.constant dense<3.0> : tensor<f64>
    %1 = stablehlo.power %arg0, %0 : tensor<f64>
    return %1 : tensor<f64>
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
