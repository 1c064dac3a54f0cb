"""`XlaExecutor`: run programs through XLA, in process (SEMANTICS 7.4).

The order of checks is the engine's: inputs, then lowering, and only then is the plugin called. Keeping a plugin that
crashes or hangs away from the caller does not live here: worker processes do that, with the same cache of executables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidProgram
from tenferro_ref.ops import TensorType
from tenferro_ref.pjrt import Buffer, Client, DiskCache, Executable, ExecutableCache
from tenferro_ref.pjrt.transfer import TensorSpec
from tenferro_ref.program import LoweringView, Program, normal_form
from tenferro_ref.stablehlo import lower_to_stablehlo
from tenferro_ref.tensor import Array, Tensor, listed


class XlaExecutor(ExecutableCache):
    """Runs programs with a PJRT client; close it (or its client) to free the compiled programs.

    A program is compiled in its normal form: those that differ in names, numbers of slots, the order of independent
    instructions or dead code share one executable. `statistics` says how often that was so.

    Parameters
    ----------
    client
        The client to compile and run with; it stays the caller's.
    options
        XLA flags for every program, or a serialised CompileOptionsProto.
    phase1_only
        Refuse what the engine's own XLA path refuses.
    size
        How many compiled programs to keep.
    disk
        Where to keep them beyond this process (`DiskCache.from_environment`), None for nowhere.
    """

    def __init__(
        self,
        client: Client,
        options: Mapping[str, str | int | bool | float] | bytes | None = None,
        *,
        phase1_only: bool = False,
        size: int = 64,
        disk: DiskCache | None = None,
    ) -> None:
        super().__init__(client, size, disk)
        self.options = options
        self.phase1_only = phase1_only

    def run_with_inputs(self, program: Program, inputs: Sequence[Array | Tensor]) -> Array:
        """The one output of `program`, column-major.

        Raises
        ------
        InvalidProgram
            The program has not exactly one output.
        TenferroError
            As `run_many_with_inputs`.
        """
        if len(program.output_slots) != 1:
            raise InvalidProgram(
                detail=f"run_with_inputs takes one output, this program has {len(program.output_slots)}: "
                "use run_many_with_inputs"
            )
        (output,) = self.run_many_with_inputs(program, inputs)
        return output

    def run_many_with_inputs(self, program: Program, inputs: Sequence[Array | Tensor]) -> list[Array]:
        """The outputs of `program`, column-major.

        Parameters
        ----------
        inputs
            One array for each program input, of its dtype and shape, with any strides.

        Raises
        ------
        InvalidArgument, InvalidCompiledGraph, ShapeMismatch
            The inputs do not fit the program.
        LoweringError
            The program cannot be written in StableHLO. The plugin has not been called yet.
        PjrtCall
            The plugin failed.
        """
        arrays = [Tensor.of(x).data for x in listed(program.name or "program", inputs)]
        return self._executable(program, [(DType.of(x), x.shape) for x in arrays]).run(arrays)

    def execute(self, program: Program, buffers: Sequence[Buffer]) -> list[Buffer]:
        """The outputs of `program` for buffers of this executor's client, on its device; nothing goes through the host.

        Raises
        ------
        PlacementMismatch
            An input is on the host, or belongs to another client or device: `Client.put` and `Buffer.numpy` are the transfers.
        TenferroError
            As `run_many_with_inputs`.
        """
        for i, buffer in enumerate(listed(program.name or "program", buffers)):
            self.client.placements[0].admit(program.name or "program", f"input {i}", buffer)
        return self._executable(program, [buffer.spec for buffer in buffers]).execute(buffers)

    def _executable(self, program: Program, specs: Sequence[TensorSpec]) -> Executable:
        program.check_inputs([TensorType(*spec) for spec in specs])
        view = LoweringView.of(normal_form(program), tuple(shape for _, shape in specs))
        text = lower_to_stablehlo(view, phase1_only=self.phase1_only)
        return self.compile(text, self.options, parameters=specs)
