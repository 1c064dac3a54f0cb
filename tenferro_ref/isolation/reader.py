"""`Reader`: StableHLO read in a worker process, which is replaced when MLIR ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, Internal, UnsupportedOp, WorkerDied
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.process import Worker, WorkerSpec
from tenferro_ref.ops import TensorType
from tenferro_ref.program import loads
from tenferro_ref.stablehlo import Loaded, Source
from tenferro_ref.stablehlo.loader import MOST_OPERATIONS
from tenferro_ref.stablehlo.loader.statements import Statement, Stating
from tenferro_ref.stablehlo.smaller import Smaller
from tenferro_ref.tensor import Array

#: Bytes that reading may take: modules are small, and one of a kilobyte can declare a constant of 8 GiB.
_MEMORY = 2 << 30


class Reader:
    """Reads modules of unknown origin; one process serves all of them, until one of them ends it.

    Parameters
    ----------
    seconds
        Wall time for one request; past it the process is ended and the module refused.
    """

    def __init__(self, seconds: float = 60.0) -> None:
        spec = WorkerSpec("tenferro_ref.isolation.engines.reader", request_seconds=seconds, memory_bytes=_MEMORY)
        self.worker = Worker("StableHLO reader", spec)

    def source(self, code: str | bytes, where: str) -> Source:
        """The module with its signature; errors as `stablehlo.loader.signature`.

        Raises
        ------
        FormatError
            Also where MLIR does not survive the module, or takes too long.
        """
        return self._source({"ask": "signature", "source": code, "where": where})

    def twin(self, source: Source, *, narrow: bool) -> Source:
        """`stablehlo.twin.twin` of the module; errors as there, and `FormatError` as `source`."""
        return self._source({"ask": "twin", "source": source.code, "where": source.where, "narrow": narrow})

    def watched(self, source: Source, inputs: Sequence[Array]) -> Source:
        """`stablehlo.watched.watched` of the module; errors as there, and `FormatError` as `source`."""
        packed = [wire.pack(a) for a in inputs]
        return self._source({"ask": "watched", "source": source.code, "where": source.where, "inputs": packed})

    def stating(self, text: str, where: str) -> list[Stating]:
        """The functions of a file that state results, as `stablehlo.loader.statements`."""

        def read(answer: wire.Message) -> list[Stating]:
            return [
                Stating(f["where"], f["code"], tuple(Statement(**s) for s in f["statements"]), f["error"])
                for f in answer["functions"]
            ]

        functions: list[Stating] = self._ask({"ask": "stating", "source": text, "where": where}, read)
        return functions

    def smaller(self, source: Source, result: int | None = None) -> list[Smaller]:
        """The modules that are smaller by one step, as `stablehlo.smaller`; with `result` the one that returns this result alone."""

        def read(answer: wire.Message) -> list[Smaller]:
            return [Smaller(m["step"], m["code"], tuple(m["arguments"]), m["value"]) for m in answer["modules"]]

        request = {"ask": "smaller", "source": source.code, "where": source.where, "result": result}
        modules: list[Smaller] = self._ask(request, read)
        return modules

    def _source(self, request: wire.Message) -> Source:
        def read(answer: wire.Message) -> Source:
            arguments, results = (tuple(map(_type, answer[name])) for name in ("arguments", "results"))
            ops = frozenset((str(name), str(element)) for name, element in answer["ops"])
            return Source(answer["code"], arguments, results, ops, tuple(answer["demands"]), request["where"])

        source: Source = self._ask(request, read)
        return source

    def load(
        self,
        code: str | bytes,
        where: str,
        inputs: Sequence[Array] | None = None,
        most: int = MOST_OPERATIONS,
    ) -> Loaded:
        """The module as a program, as it goes for these inputs; errors as `stablehlo.load`; `UnsupportedOp` also if it is too much."""

        def read(answer: wire.Message) -> Loaded:
            program = loads(answer["program"], where)
            if program.kind != "graph":
                raise Internal(detail="the reader gave no graph program")
            deciding = None if answer["deciding"] is None else loads(answer["deciding"], where)
            return Loaded(program, tuple(map(wire.unpack, answer["bound"])), deciding)

        packed = None if inputs is None else [wire.pack(a) for a in inputs]
        loaded: Loaded = self._ask(
            {"ask": "load", "source": code, "where": where, "inputs": packed, "most": most}, read
        )
        return loaded

    def serialized(self, source: Source, form: str) -> bytes:
        """The module as `stablehlo.serialized.serialize` writes it; errors as there."""
        request = {"ask": "serialize", "source": source.code, "where": source.where, "form": form}
        code: bytes = self._ask(request, lambda answer: answer["code"])
        return code

    def _ask(self, request: wire.Message, read: Callable[[wire.Message], Any]) -> Any:
        self.worker.facts  # noqa: B018 - starts it, so that what is missing is not blamed on the module
        try:
            answer = self.worker.request(request)
        except WorkerDied as died:
            detail = f"this module was not read: MLIR does not survive it, or it is too much work ({died.how})"
            if request["ask"] == "load":  # that it is a module was found before, with the types of its arguments
                refusal = UnsupportedOp(op="module", reason=detail)
                refusal.place = str(request["where"])
                raise refusal from None
            raise FormatError(where=request["where"], detail=detail) from None
        if "refusal" in answer:
            error = wire.unpack_error(answer["refusal"])
            error.place = answer["place"]
            raise error
        return read(answer)

    def close(self) -> None:
        """End the process; a later call starts another."""
        self.worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _type(packed: Any) -> TensorType:
    name, shape = packed
    return TensorType(DType[name], tuple(shape))


__all__ = ["Reader"]
