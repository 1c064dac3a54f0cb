"""A scatter whose indices are empty vectors is rewritten to a sum

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
    {"slot": 0, "dtype": "F32", "shape": [2, 2]},
    {"slot": 1, "dtype": "I32", "shape": [2, 0]},
    {"slot": 2, "dtype": "F32", "shape": [2, 2]}
  ],
  "instructions": [
    {"op": "Scatter", "attrs": {"update_window_dims": [1], "inserted_window_dims": [1], "scatter_dims_to_operand_dims": [], "index_vector_dim": 1}, "inputs": [0, 1, 2], "outputs": [3]}
  ],
  "outputs": [3]
}
"""

# column-major bytes of each input, in hexadecimal
INPUTS = [
    ('float32', (2, 2), '0000803f000040400000004000008040'),
    ('int32', (2, 0), ''),
    ('float32', (2, 2), '000020410000f0410000a04100002042'),
]

# what is compiled; shown for the reader, the check below emits it again
STABLEHLO = r"""
module {
  func.func @main(%arg0: tensor<2x2xf32>, %arg1: tensor<2x0xi32>, %arg2: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [1], scatter_dims_to_operand_dims = [], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
    ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
      %sum = stablehlo.add %lhs, %rhs : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) : (tensor<2x2xf32>, tensor<2x0xi32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
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
