"""Constant folding adds booleans modulo two

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
  "policy": {"scatter_bounds": "skip", "integer_faults": "stablehlo", "empty_reduction": "identity", "dtypes": "stablehlo"},
  "n_slots": 3,
  "inputs": [],
  "instructions": [
    {"op": "Constant", "attrs": {"dtype": "Bool", "data": "01"}, "inputs": [], "outputs": [0]},
    {"op": "Constant", "attrs": {"dtype": "Bool", "data": "01"}, "inputs": [], "outputs": [1]},
    {"op": "Add", "attrs": {}, "inputs": [0, 1], "outputs": [2]}
  ],
  "outputs": [2]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [

]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main() -> tensor<i1> {
    %0 = stablehlo.constant dense<true> : tensor<i1>
    %1 = stablehlo.constant dense<true> : tensor<i1>
    %2 = stablehlo.add %0, %1 : tensor<i1>
    return %2 : tensor<i1>
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
