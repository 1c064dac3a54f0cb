"""A scatter onto rank 0 does not compile

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
  "inputs": [
    {"slot": 0, "dtype": "F64", "shape": []},
    {"slot": 1, "dtype": "I64", "shape": [3, 0]},
    {"slot": 2, "dtype": "F64", "shape": [3]}
  ],
  "instructions": [
    {"op": "Scatter", "attrs": {"update_window_dims": [], "inserted_window_dims": [], "scatter_dims_to_operand_dims": [], "index_vector_dim": 1}, "inputs": [0, 1, 2], "outputs": [3]}
  ],
  "outputs": [3]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float64', (), '000000000000f03f'),
    ('int64', (3, 0), ''),
    ('float64', (3,), '000000000000f03f000000000000f03f000000000000f03f'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<f64>, %arg1: tensor<3x0xi64>, %arg2: tensor<3xf64>) -> tensor<f64> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [], scatter_dims_to_operand_dims = [], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
    ^bb0(%lhs: tensor<f64>, %rhs: tensor<f64>):
      %sum = stablehlo.add %lhs, %rhs : tensor<f64>
      stablehlo.return %sum : tensor<f64>
    }) : (tensor<f64>, tensor<3x0xi64>, tensor<3xf64>) -> tensor<f64>
    return %0 : tensor<f64>
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
