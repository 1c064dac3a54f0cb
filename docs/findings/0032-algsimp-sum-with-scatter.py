"""scatter(x, u) + y is rewritten to scatter(x + y, u)

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
  "n_slots": 5,
  "inputs": [
    {"slot": 0, "dtype": "F64", "shape": [1]},
    {"slot": 1, "dtype": "F64", "shape": [1]},
    {"slot": 2, "dtype": "I32", "shape": [1]}
  ],
  "instructions": [
    {"op": "Scatter", "attrs": {"update_window_dims": [], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0], "index_vector_dim": 1}, "inputs": [0, 2, 1], "outputs": [3]},
    {"op": "Add", "attrs": {}, "inputs": [3, 0], "outputs": [4]}
  ],
  "outputs": [4]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float64', (1,), '071fb9b1bcd41c40'),
    ('float64', (1,), '000000000000f03f'),
    ('int32', (1,), '00000000'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<1xf64>, %arg1: tensor<1xf64>, %arg2: tensor<1xi32>) -> tensor<1xf64> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.clamp %1, %arg2, %3 : tensor<1xi32>
    %5 = "stablehlo.scatter"(%arg0, %4, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
    ^bb0(%lhs: tensor<f64>, %rhs: tensor<f64>):
      %sum = stablehlo.add %lhs, %rhs : tensor<f64>
      stablehlo.return %sum : tensor<f64>
    }) : (tensor<1xf64>, tensor<1xi32>, tensor<1xf64>) -> tensor<1xf64>
    %6 = stablehlo.add %5, %arg0 : tensor<1xf64>
    return %6 : tensor<1xf64>
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
