"""Constants as a second implementation: a case's program with its inputs written into the module, for the compiler to fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.case import Case
from oracle.peers import Execution, PjrtExecutor, Pool
from oracle.peers.base import validate
from oracle.peers.modules import Module
from oracle.peers.peer import Peer
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.isolation import wire
from tenferro_ref.ops import TensorType
from tenferro_ref.pjrt import PluginRef
from tenferro_ref.program import LoweringView
from tenferro_ref.stablehlo import Body, SsaValue, lower_into
from tenferro_ref.tensor import Array


class _Constants(Body):
    """A function body whose parameters are constants."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        super().__init__()
        self._arrays = iter(arrays)

    def parameter(self, dtype: DType, shape: tuple[int, ...]) -> SsaValue:
        """The constant that stands for the next parameter."""
        return self.array(next(self._arrays))


def folded(case: Case) -> Module:
    """The module of a case without parameters.

    Raises
    ------
    TenferroError
        The case is invalid, or cannot be lowered.
    """
    validate(case)
    body = _Constants(case.inputs)
    outputs = lower_into(body, LoweringView.of(case.program, case.shapes))
    results = [TensorType(value.dtype, value.shape) for value in outputs]
    return Module(body.module(outputs), [], results, {0: results}, {})


@dataclass
class FoldedExecutor(PjrtExecutor):
    """A plugin in a lane that gets every case as a program without inputs."""

    def run_many(self, cases: Sequence[Case]) -> list[Execution | TenferroError]:
        return [self._run(case) for case in cases]

    def _run(self, case: Case) -> Execution | TenferroError:
        try:
            message = folded(case).message(self.options, [[]])
            (outputs,), seconds = self.worker.request(message, wire.output_sets)
        except TenferroError as error:
            return error
        return Execution(tuple(outputs), seconds)


class FoldedPool(Pool):
    """A pool whose plugins fold."""

    def _pjrt(self, plugin: PluginRef, peer: Peer) -> PjrtExecutor:
        return FoldedExecutor(str(peer), self._worker(plugin.path, plugin), plugin=plugin, reader=self.reader)
