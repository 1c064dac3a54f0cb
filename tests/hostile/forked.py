"""The reader of modules in children of a process that has imported MLIR's bindings, so that a death costs milliseconds."""

from __future__ import annotations

import multiprocessing
import os
import resource
from multiprocessing.connection import Connection
from typing import Self

from tenferro_ref.errors import FormatError, TenferroError
from tenferro_ref.stablehlo.loader import load, signature

#: Bytes of address space of a child; the bindings alone map a third of it.
_MEMORY = 4 << 30
_IMPORTED = [
    "jaxlib.mlir._mlir_libs._jax_mlir_ext", "jaxlib.mlir.dialects.chlo", "jaxlib.mlir.dialects.sdy", "jaxlib.mlir.dialects.stablehlo",
]  # fmt: skip


def read_module(data: bytes) -> object:
    """What the worker does that reads modules; bytecode is told from text by how it begins."""
    code = data if data.startswith(b"ML") else data.decode("utf-8", "replace")
    return load(signature(code, "damaged").code, "damaged")


class Forked:
    """Calls `read_module` in a child, and in another one when an input has ended that.

    Parameters
    ----------
    seconds
        Wall time for an input; the child that takes longer is killed.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.deaths = 0
        self._server = multiprocessing.get_context("forkserver")
        self._server.set_forkserver_preload(["__main__", __name__, *_IMPORTED])
        self._child: multiprocessing.process.BaseProcess | None = None

    def __call__(self, data: bytes) -> None:
        """`read_module` of the input.

        Raises
        ------
        FormatError
            It raised a typed error, or the child died of the input or was killed.
        AssertionError
            It raised an error that is not typed.
        """
        if self._child is None:
            self._connection, theirs = self._server.Pipe()
            self._child = self._server.Process(target=_serve, args=(theirs,), daemon=True)
            self._child.start()
            theirs.close()
            self._connection.recv_bytes()
        try:
            self._connection.send_bytes(data)
            if not self._connection.poll(self.seconds):
                raise EOFError
            answer = self._connection.recv_bytes().decode()
        except (EOFError, ConnectionError):
            self._end()
            self.deaths += 1
            raise FormatError(where="input", detail="the reader died of it") from None
        assert answer in ("read", "typed"), answer
        if answer == "typed":
            raise FormatError(where="input", detail="refused")

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.join()
            self._connection.close()
            self._child = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._end()


def _serve(connection: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    connection.send_bytes(b"ready")
    while True:
        try:
            data = connection.recv_bytes()
        except EOFError:
            return
        try:
            read_module(data)
            answer = "read"
        except TenferroError as error:
            str(error)
            answer = "typed"
        except MemoryError:
            os._exit(1)
        except Exception as error:
            connection.send_bytes(f"{type(error).__name__}: {error}".encode())
            raise
        connection.send_bytes(answer.encode())
