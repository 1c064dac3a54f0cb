"""IREE: a contraction over nothing ends the process

Run: python reproduce.py   (needs the package tenferro-ref and its extra: pip install 'tenferro-ref[iree]')
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
    {"slot": 0, "dtype": "F64", "shape": [2, 0]},
    {"slot": 1, "dtype": "F64", "shape": [0, 3]}
  ],
  "instructions": [
    {"op": "DotGeneral", "attrs": {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0], "lhs_batch_dims": [], "rhs_batch_dims": []}, "inputs": [0, 1], "outputs": [2]}
  ],
  "outputs": [2]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float64', (2, 0), ''),
    ('float64', (0, 3), ''),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<2x0xf64>, %arg1: tensor<0x3xf64>) -> tensor<2x3xf64> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x0xf64>, tensor<0x3xf64>) -> tensor<2x3xf64>
    return %0 : tensor<2x3xf64>
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
