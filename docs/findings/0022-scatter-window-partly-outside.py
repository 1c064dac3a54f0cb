"""A scatter window that is partly outside is dropped as a whole

Run: python reproduce.py   (needs the package tenferro-ref and the plugin: pip install xla-cpu-pjrt)
Exit status 1 while the disagreement is there, 0 when it is gone.
"""

import sys

import numpy as np

from oracle.peers.lanes import lane_options
from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, load_plugin, resolve

EXECUTOR = 'pjrt:xla-cpu-pjrt@parity'

# as it stands: what the package itself emits has no window that is partly outside
STABLEHLO = r"""
module {
  func.func @main(%operand: tensor<3xf32>, %start: tensor<1xi64>, %updates: tensor<2xf32>) -> tensor<3xf32> {
    %0 = "stablehlo.scatter"(%operand, %start, %updates) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) {
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>
    } : (tensor<3xf32>, tensor<1xi64>, tensor<2xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
"""


def main() -> int:
    plugin, _, lane = EXECUTOR.removeprefix("pjrt:").partition("@")
    inputs = [np.array([1, 2, 3], np.float32), np.array([2]), np.array([10, 20], np.float32)]
    ref = resolve(plugin)
    with Client(load_plugin(ref)) as client:
        specs = [(DType.of(x), x.shape) for x in inputs]
        with client.compile(STABLEHLO, lane_options(lane, ref), parameters=specs) as executable:
            observed = executable.run(inputs)[0].tolist()
    expected = [1.0, 2.0, 13.0]  # the update that is inside is added
    print(EXECUTOR, "mismatch" if observed != expected else "pass", f"{observed} is not {expected}")
    return 1 if observed != expected else 0


if __name__ == "__main__":
    sys.exit(main())
