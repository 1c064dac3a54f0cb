"""The StableHLO interpreter's scatter writes into its operand

Run: python reproduce.py   (needs jaxlib: pip install jax)
Exit status 1 while the disagreement is there, 0 when it is gone.
"""

import sys

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo

EXECUTOR = 'interpreter'

# as it stands: the package's executor makes a copy of the operand first
STABLEHLO = r"""
module {
  func.func @main(%operand: tensor<2xf32>, %at: tensor<1xi64>, %update: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = "stablehlo.scatter"(%operand, %at, %update) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) {
      scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>
    } : (tensor<2xf32>, tensor<1xi64>, tensor<f32>) -> tensor<2xf32>
    return %operand, %0 : tensor<2xf32>, tensor<2xf32>
  }
}
"""


def main() -> int:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        stablehlo.register_dialect(context)
        inputs = [np.array([1, 2], np.float32), np.array([0]), np.array(10, np.float32)]
        module = ir.Module.parse(STABLEHLO)
        operand, _ = stablehlo.eval_module(module, [ir.DenseElementsAttr.get(x) for x in inputs])
        observed, expected = np.array(operand).tolist(), inputs[0].tolist()
    print(EXECUTOR, "mismatch" if observed != expected else "pass", f"the operand is {observed}, and was {expected}")
    return 1 if observed != expected else 0


if __name__ == "__main__":
    sys.exit(main())
