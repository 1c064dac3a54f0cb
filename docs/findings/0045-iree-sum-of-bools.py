"""IREE: an addition of two true values is false

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
  "policy": {"scatter_bounds": "skip", "integer_faults": "stablehlo", "empty_reduction": "identity", "dtypes": "stablehlo"},
  "n_slots": 3,
  "inputs": [
    {"slot": 0, "dtype": "Bool", "shape": []},
    {"slot": 1, "dtype": "Bool", "shape": []}
  ],
  "instructions": [
    {"op": "Add", "attrs": {}, "inputs": [0, 1], "outputs": [2]}
  ],
  "outputs": [2]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('bool', (), '01'),
    ('bool', (), '01'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<i1>, %arg1: tensor<i1>) -> tensor<i1> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<i1>
    return %0 : tensor<i1>
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
