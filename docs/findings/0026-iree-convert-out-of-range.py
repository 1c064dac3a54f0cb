"""IREE: conversions to integers do not saturate

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
  "n_slots": 2,
  "inputs": [
    {"slot": 0, "dtype": "F32", "shape": []}
  ],
  "instructions": [
    {"op": "Convert", "attrs": {"to": "I32"}, "inputs": [0], "outputs": [1]}
  ],
  "outputs": [1]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (), '5ed0324f'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<f32>) -> tensor<i32> {
    %0 = stablehlo.convert %arg0 : (tensor<f32>) -> tensor<i32>
    return %0 : tensor<i32>
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
