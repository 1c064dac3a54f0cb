"""x / pow(y, z) is rewritten to x * pow(y, -z)

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
  "n_slots": 5,
  "inputs": [
    {"slot": 0, "dtype": "I64", "shape": []},
    {"slot": 1, "dtype": "I64", "shape": []},
    {"slot": 2, "dtype": "I64", "shape": []}
  ],
  "instructions": [
    {"op": "Pow", "attrs": {}, "inputs": [1, 2], "outputs": [3]},
    {"op": "Divide", "attrs": {}, "inputs": [0, 3], "outputs": [4]}
  ],
  "outputs": [4]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('int64', (), '0600000000000000'),
    ('int64', (), '0200000000000000'),
    ('int64', (), '0100000000000000'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<i64> {
    %0 = stablehlo.power %arg1, %arg2 : tensor<i64>
    %1 = stablehlo.divide %arg0, %0 : tensor<i64>
    return %1 : tensor<i64>
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
