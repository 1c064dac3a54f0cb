"""nnsmith's own fuzzing loop with the XLA:CPU of jaxlib as the system under test, for docs/measurements/peers.md.

nnsmith makes TensorFlow models, computes what is due with TensorFlow's eager mode, and calls this backend in place of the XLA
that is inside TensorFlow. Each report is kept as a StableHLO module with its inputs, for `tenferro-ref check`. It needs an
environment of its own:

    python3.11 -m venv peers
    peers/bin/pip install nnsmith==0.1.0 tensorflow-cpu==2.21.0 'z3-solver<4.13' jax==0.10.2 jaxlib==0.10.2
    peers/bin/python benchmarks/peers/nnsmith_on_jaxlib.py fuzz.time=1500s fuzz.seed=2 fuzz.root=reports \
        model.type=tensorflow backend.type=xla backend.target=cpu debug.viz=false
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import jax2tf
from multipledispatch import dispatch
from nnsmith.backends.factory import BackendFactory
from nnsmith.backends.xla import XLAFactory
from nnsmith.cli import fuzz
from nnsmith.materialize import TestCase
from nnsmith.materialize.tensorflow import EagerModeCtx, TFModel

jax.config.update("jax_enable_x64", True)

#: The function that was compiled last, and its inputs.
last: dict[str, Any] = {}


class Jaxlib(XLAFactory):
    """`make_backend` alone is ours."""

    @dispatch(TFModel)
    def make_backend(self, model: TFModel) -> Any:
        with EagerModeCtx(False):
            net = model.concrete_net()
            names = sorted(net.structured_input_signature[1])
            compiled = jax.jit(jax2tf.call_tf(lambda *arrays: net(**dict(zip(names, arrays, strict=True)))))

        def run(inputs: dict[str, Any]) -> dict[str, Any]:
            arrays = [np.asarray(inputs[name]) for name in names]
            last.update(compiled=compiled, arrays=arrays)
            with EagerModeCtx(False):
                return {name: np.asarray(value) for name, value in compiled(*arrays).items()}

        return run


class Loop(fuzz.FuzzingLoop):
    """The loop, which keeps of each report what another tool can read."""

    def validate_and_report(self, testcase: TestCase) -> bool:
        folder, number = self.status.root, self.status.n_bugs
        last.clear()
        try:
            right = super().validate_and_report(testcase)
        except AssertionError:  # TensorFlow 2.21 does not save a model that has variables
            self.status.n_bugs += 1
            right = False
        if not right and last:
            np.savez(folder / f"{number}.npz", **{f"in{i}": a for i, a in enumerate(last["arrays"])})
            with EagerModeCtx(False):
                text = last["compiled"].lower(*last["arrays"]).as_text()
            (folder / f"{number}.mlir").write_text(text, encoding="utf-8")
        return right


BackendFactory.init = staticmethod(lambda name, **settings: Jaxlib(**settings))
fuzz.FuzzingLoop = Loop
fuzz.main()
