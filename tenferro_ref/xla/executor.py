"""`XlaExecutor`: run programs through XLA, in process, with a cache of what was compiled (SEMANTICS 7.4).

The order of checks is the engine's: inputs, then lowering, and only then is the plugin called. Keeping a plugin that
crashes or hangs away from the caller does not live here: that is the job of worker processes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, InvalidProgram
from tenferro_ref.ops import TensorType
from tenferro_ref.pjrt import Client, Executable, HandleState, TensorSpec, encode_compile_options
from tenferro_ref.program import LoweringView, Program
from tenferro_ref.stablehlo import fingerprint, lower_to_stablehlo
from tenferro_ref.tensor import Array, Tensor

#: StableHLO fingerprint, SHA-256 of the plugin file, compile options.
CacheKey = tuple[str, str, bytes]


class XlaExecutor:
    """Runs programs with a PJRT client; close it (or its client) to free the compiled programs.

    Parameters
    ----------
    client
        The client to compile and run with; it stays the caller's.
    options
        XLA flags for every program, or a serialised CompileOptionsProto.
    phase1_only
        Refuse what the engine's own XLA path refuses.
    cache_size
        How many compiled programs to keep; the least recently used goes first.
    """

    def __init__(
        self,
        client: Client,
        options: Mapping[str, str | int | bool | float] | bytes | None = None,
        *,
        phase1_only: bool = False,
        cache_size: int = 64,
    ) -> None:
        if cache_size < 1:
            raise InvalidArgument(op="XlaExecutor", argument="cache_size", detail=f"{cache_size} is less than 1")
        self.client = client
        self.options = options if isinstance(options, bytes) else encode_compile_options(options)
        self.phase1_only = phase1_only
        self.cache_size = cache_size
        self._cache: OrderedDict[CacheKey, Executable] = OrderedDict()

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
            One array a program input, of its dtype and shape, with any strides.

        Raises
        ------
        InvalidArgument, InvalidCompiledGraph, ShapeMismatch
            The inputs do not fit the program.
        LoweringError
            The program cannot be said in StableHLO. The plugin has not been called yet.
        PjrtCall
            The plugin failed.
        """
        arrays = [Tensor.of(x).data for x in inputs]
        specs = [(DType.of(x), x.shape) for x in arrays]
        program.check_inputs([TensorType(*spec) for spec in specs])
        view = LoweringView.of(program, tuple(x.shape for x in arrays))
        text = lower_to_stablehlo(view, phase1_only=self.phase1_only)
        return self.compile(text, specs).run(arrays)

    def compile(self, text: str, parameters: Sequence[TensorSpec]) -> Executable:
        """The executable of a module, from the cache if it is there; it belongs to this executor.

        Raises
        ------
        PjrtCall
            The plugin rejects the module, or the client is closed.
        PluginLoad
            The plugin's file is gone.
        """
        key = (fingerprint(text), self.client.plugin.ref.sha256(), self.options)
        executable = self._cache.pop(key, None)
        if executable is None or executable.state is HandleState.CLOSED:
            executable = self.client.compile(text, self.options, parameters=parameters)
        self._cache[key] = executable
        if len(self._cache) > self.cache_size:
            self._cache.popitem(last=False)[1].close()
        return executable

    @property
    def cached(self) -> int:
        """How many compiled programs are kept."""
        return len(self._cache)

    def close(self) -> None:
        """Free the compiled programs; the client stays open."""
        while self._cache:
            self._cache.popitem()[1].close()

    def __enter__(self) -> XlaExecutor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
