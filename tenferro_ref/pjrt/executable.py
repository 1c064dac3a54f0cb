"""A compiled program on one device: checking what goes in, running it, checking what comes out.

Lives here: execution and serialisation of one executable. Does not live here: compiling (`client`), a cache.

Plugins accept arguments of a wrong dtype or shape as long as the byte size fits, and read them as what they are not. So
everything is checked here before a native call, and what a plugin hands back is checked against what it, or the caller,
announced.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CFUNCTYPE, addressof, c_int, c_int64, c_size_t, c_void_p, create_string_buffer, string_at
from typing import ClassVar, NoReturn

import numpy as np

from tenferro_ref.errors import InvalidArgument, PjrtCall, TenferroError
from tenferro_ref.pjrt import abi, native
from tenferro_ref.pjrt.buffer import Buffer, Event, unfinished
from tenferro_ref.pjrt.native import Handle
from tenferro_ref.pjrt.serialized import pack
from tenferro_ref.pjrt.transfer import (
    NDArray,
    Owner,
    TensorSpec,
    dtype_of_element,
    show_spec,
    spec_of_array,
    spec_of_buffer,
)
from tenferro_ref.placement import HOST
from tenferro_ref.tensor import listed

_EXECUTE = "LoadedExecutable_Execute"
_EXECUTE_ARGS = abi.ARGS[_EXECUTE]
#: The longest optimised program that is fetched; a protobuf message has at most so many bytes.
_MOST_BYTES = 2**31 - 1


class Executable(Handle):
    """A program that a client compiled or loaded.

    Attributes
    ----------
    client
        The client whose device it runs on.
    name
        Name of the module.
    parameters
        Types of the arguments, as given to `compile`; None if none were given, and then it cannot be run.
    results
        Types of the results, as the plugin announces them, else as given to `compile`; None if neither is known.
    """

    native: ClassVar[str] = "LoadedExecutable"

    def __init__(
        self,
        client: Owner,
        raw: int,
        call: str,
        parameters: Sequence[TensorSpec] | None,
        results: Sequence[TensorSpec] | None,
    ) -> None:
        super().__init__(client.api, raw, call)
        client.adopt(self)
        self.client = client
        try:
            self.parameters = _specs(parameters)
            self.name, self._count, announced = _describe(self)
            expected = _specs(results)
            if expected is not None and len(expected) != self._count:
                raise self._broken(f"the plugin announces {self._count} results, the program has {len(expected)}")
            self.results = expected if announced is None else announced
            for i, (got, want) in enumerate(zip(self.results or (), expected or (), strict=False)):
                self._check_result(i, got, want)
        except TenferroError:
            self.close()
            raise
        self._uploads = [client.upload(spec) for spec in self.parameters or ()]
        self._downloads = None if self.results is None else [client.download(spec) for spec in self.results]
        # a program may donate inputs (its text says which): a plugin may then reuse their memory, except of these
        count = len(self._uploads)
        self._all = (c_int64 * count)(*range(count))
        self._keep = abi.new(
            abi.STRUCTS["ExecuteOptions"],
            non_donatable_input_indices=addressof(self._all),
            num_non_donatable_input_indices=count,
        )
        self._donate = abi.new(abi.STRUCTS["ExecuteOptions"])
        self._cells = c_size_t * (3 + count + self._count)
        self._template = bytes(abi.new(abi.ARGS[_EXECUTE], executable=raw, num_devices=1, num_args=count))

    def run(self, inputs: Sequence[NDArray]) -> list[NDArray]:
        """Run the program on host arrays: upload, execute, wait, download.

        Parameters
        ----------
        inputs
            One array a parameter, of exactly its dtype and shape; any strides.

        Returns
        -------
        list of numpy.ndarray
            The results, column-major, of the announced types.

        Raises
        ------
        InvalidArgument
            If count, dtype or shape of the inputs is not the program's, before anything native is called.
        PjrtCall
            If the plugin fails, if its results are not of the announced types, or if this executable is closed.
        """
        arrays = listed(self.name, inputs)
        specs = [spec_of_array(x) if isinstance(x, np.ndarray) else self._refuse(i, x) for i, x in enumerate(arrays)]
        self._check(tuple(specs))
        arguments: list[int] = []
        outputs: list[int] = []
        try:
            for upload, x in zip(self._uploads, arrays, strict=True):
                arguments.append(upload(x))
            outputs, done = self._launch(arguments, self._donate)
            try:
                return [self._fetch(i, raw) for i, raw in enumerate(outputs)]
            finally:
                # copies wait for the execution, so that this is no further wait; its error says more than theirs
                if done:
                    self._api.await_event(done, _EXECUTE, looks=0)
        finally:
            self._api.destroy_all("Buffer", [*arguments, *outputs])

    def execute(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Begin to run the program on device buffers, which stay usable; returns at once.

        The results may not be there yet, and neither need the inputs be: the results of one execution can go into the next.
        Errors that come later are raised by `wait` and `numpy` of the results, and of all that is computed from them.

        Raises
        ------
        InvalidArgument
            If count or type of the buffers is not the program's.
        PlacementMismatch
            If one is an array on the host, or belongs to another client or device; `Client.put` and `Buffer.numpy` move it.
        PjrtCall
            If the plugin refuses at once, if its results are not of the announced types, or a buffer or this executable is closed.
        """
        for i, buffer in enumerate(listed(self.name, buffers)):
            if not isinstance(buffer, Buffer) or buffer.client is not self.client or buffer.device:
                self.client.placements[0].admit(self.name, f"input {i}", buffer)
        self._check(tuple(buffer.spec for buffer in buffers))
        earlier = unfinished(buffers)
        outputs, done = self._launch([buffer.raw for buffer in buffers], self._keep)
        executions = earlier
        if done:
            executions = (*earlier, Event(self._api, done, _EXECUTE))
            self.client.adopt(executions[-1])
        made = [Buffer(self.client, raw, executions=executions) for raw in outputs]
        try:
            for i, buffer in enumerate(made):
                self._check_result(i, buffer.spec, buffer.spec if self.results is None else self.results[i])
        except TenferroError:
            for buffer in made:
                buffer.close()
            raise
        return made

    def _refuse(self, i: int, x: object) -> NoReturn:
        """Say what an input that is no array should be."""
        HOST.admit(self.name, f"input {i}", x)
        raise InvalidArgument(self.name, f"input {i}", f"expected a NumPy array, got {type(x).__name__}")

    def _check(self, specs: tuple[TensorSpec, ...]) -> None:
        """Everything that plugins do not check: a wrong type of the right byte size is executed."""
        if not self._raw:
            raise PjrtCall(f"PJRT_{_EXECUTE}", "", f"the executable {self.name!r} is closed")
        if specs == self.parameters:
            return
        if self.parameters is None:
            raise InvalidArgument(
                self.name,
                "parameters",
                "compiled without parameter types, so that inputs cannot be checked: give them to `compile`",
            )
        if len(specs) != len(self.parameters):
            raise InvalidArgument(self.name, "inputs", f"expected {len(self.parameters)}, got {len(specs)}")
        for i, (got, want) in enumerate(zip(specs, self.parameters, strict=True)):
            if got != want:
                raise InvalidArgument(self.name, f"input {i}", f"expected {show_spec(want)}, got {show_spec(got)}")

    def _check_result(self, i: int, got: TensorSpec, want: TensorSpec) -> None:
        if got != want:
            raise self._broken(f"result {i} is {show_spec(got)}, expected {show_spec(want)}")

    def _broken(self, detail: str) -> PjrtCall:
        return PjrtCall(f"PJRT_{_EXECUTE}", "", detail)

    def _launch(self, arguments: list[int], options: abi.Sized) -> tuple[list[int], int]:
        """Begin to execute on raw buffers; gives the raw results and the raw event of its end (0 for none), for the caller to destroy."""
        # one device, hence lists of one list: a pointer to each list, the event, the inputs, the outputs
        count = len(arguments)
        cells = self._cells(0, 0, 0, *arguments)
        start = addressof(cells)
        cells[0], cells[1] = start + 24, start + 24 + 8 * count
        args = _EXECUTE_ARGS.from_buffer_copy(self._template)
        args.options = addressof(options)
        args.argument_lists = start
        args.output_lists = start + 8
        args.device_complete_events = start + 16
        self._api.invoke(_EXECUTE, args)
        done, outputs = cells[2], cells[3 + count :]
        made = [raw for raw in outputs if raw]
        if len(made) != self._count:
            for raw in made:
                self._api.destroy("Buffer", raw)
            if done:
                self._api.destroy("Event", done)
            raise self._broken(f"the plugin returned {len(made)} of {self._count} results")
        return made, done

    def _fetch(self, i: int, raw: int) -> NDArray:
        spec = spec_of_buffer(self._api, raw)
        if self._downloads is None:
            return self.client.download(spec)(raw)
        self._check_result(i, spec, self._downloads[i].spec)
        return self._downloads[i](raw)

    def optimized_program(self) -> tuple[bytes, str]:
        """What the plugin made of the program, and the format it is in: "hlo", "hlo_with_config" (see `hlo`), "mlir".

        Raises
        ------
        PjrtCall
            If the plugin does not tell, or this executable is closed.
        """
        name = "Executable_OptimizedProgram"
        inner = self._api.call("LoadedExecutable_GetExecutable", loaded_executable=self.raw).executable
        try:
            program = abi.new(abi.STRUCTS["Program"])
            self._api.call(name, executable=inner, program=addressof(program))  # tells the size
            room = int(program.code_size)
            if room > _MOST_BYTES:
                raise PjrtCall(f"PJRT_{name}", "", f"a program of {room} bytes, more than {_MOST_BYTES}")
            code = create_string_buffer(room)
            program.code = addressof(code)
            self._api.call(name, executable=inner, program=addressof(program))
            size = int(program.code_size)
            if size > room:
                raise PjrtCall(f"PJRT_{name}", "", f"a program of {room} bytes has become one of {size}")
            return code.raw[:size], native.text(program.format, program.format_size)
        finally:
            self._api.destroy("Executable", inner)

    def serialize(self) -> bytes:
        """The compiled program as bytes for `Client.deserialize` with the same plugin file on a like processor.

        A header goes before the plugin's own bytes: a plugin may load what another build wrote and return garbage.

        Raises
        ------
        PjrtCall
            If the plugin cannot, or this executable is closed.
        """
        inner = self._api.call("LoadedExecutable_GetExecutable", loaded_executable=self.raw).executable
        try:
            args = self._api.call("Executable_Serialize", executable=inner)
            body = string_at(args.serialized_bytes, args.serialized_bytes_size)
            if args.serialized_executable_deleter:
                CFUNCTYPE(None, c_void_p)(args.serialized_executable_deleter)(args.serialized_executable)
        finally:
            self._api.destroy("Executable", inner)
        return pack(self.client, self.parameters, self.results, body)


def _specs(specs: Sequence[TensorSpec] | None) -> tuple[TensorSpec, ...] | None:
    return None if specs is None else tuple((dtype, tuple(shape)) for dtype, shape in specs)


def _describe(executable: Executable) -> tuple[str, int, tuple[TensorSpec, ...] | None]:
    """Name, number of results, and result types if the plugin's API has functions for them."""
    api = executable.client.api
    inner = api.call("LoadedExecutable_GetExecutable", loaded_executable=executable.raw).executable
    try:
        named = api.call("Executable_Name", executable=inner)
        name = native.text(named.executable_name, named.executable_name_size)
        count = int(api.call("Executable_NumOutputs", executable=inner).num_outputs)
        if not (api.has("Executable_OutputElementTypes") and api.has("Executable_OutputDimensions")):
            return name, count, None
        types = api.call("Executable_OutputElementTypes", executable=inner)
        shapes = api.call("Executable_OutputDimensions", executable=inner, num_outputs=count)
        if types.num_output_types != count or shapes.num_outputs != count:
            raise PjrtCall(
                "PJRT_Executable_OutputElementTypes",
                "",
                f"{count} results, but types of {types.num_output_types} and shapes of {shapes.num_outputs}",
            )
        if not count:
            return name, 0, ()
        if not (types.output_types and shapes.dim_sizes):
            raise PjrtCall("PJRT_Executable_OutputElementTypes", "", f"{count} results, without types or ranks")
        elements = (c_int * count).from_address(types.output_types)
        ranks = (c_size_t * count).from_address(shapes.dim_sizes)
        if sum(ranks) and not shapes.dims:
            raise PjrtCall("PJRT_Executable_OutputDimensions", "", f"{sum(ranks)} axes, without extents")
        dims = iter(native.int64s(shapes.dims, sum(ranks)))
        specs = tuple(
            (dtype_of_element(element), tuple(next(dims) for _ in range(rank)))
            for element, rank in zip(elements, ranks, strict=True)
        )
        return name, count, specs
    finally:
        api.destroy("Executable", inner)
