"""IREE: a pad of complex numbers ends the process

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
  "n_slots": 2,
  "inputs": [
    {"slot": 0, "dtype": "C32", "shape": [2]}
  ],
  "instructions": [
    {"op": "Pad", "attrs": {"edge_padding_low": [1], "edge_padding_high": [1], "interior_padding": [0]}, "inputs": [0], "outputs": [1]}
  ],
  "outputs": [1]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('complex64', (2,), '0000803f000000000000803f00000000'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<2xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
    %0 = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
    %1 = stablehlo.pad %arg0, %0, low = [1], high = [1], interior = [0] : (tensor<2xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
    return %1 : tensor<4xcomplex<f32>>
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
