"""A reader that its input may end: it runs in children of a process that has imported what it needs, so that a death costs milliseconds."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Self

from tenferro_ref.errors import FormatError, TenferroError

#: Bytes of address space of a child; the bindings alone map a third of it.
_MEMORY = 4 << 30


class Forked:
    """Calls `read` in a child, and in another one when an input has ended that.

    Parameters
    ----------
    read
        A function of a module; it is called with one input.
    imported
        Modules that it needs.
    seconds
        Wall time for an input; the child that takes longer is killed.
    """

    def __init__(self, read: Callable[[bytes], object], imported: list[str], seconds: float) -> None:
        self.seconds = seconds
        self.deaths = 0
        self._read = read
        self._server = multiprocessing.get_context("forkserver")
        self._server.set_forkserver_preload(["__main__", read.__module__, *imported])
        self._child: multiprocessing.process.BaseProcess | None = None

    def __call__(self, data: bytes) -> None:
        """Raises what `read` raised, and `FormatError` where the child died of the input or was killed.

        Raises
        ------
        AssertionError
            `read` raised an error that is not typed.
        """
        if self._child is None:
            self._connection, theirs = self._server.Pipe()
            self._child = self._server.Process(target=_serve, args=(self._read, theirs), daemon=True)
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


def _serve(read: Callable[[bytes], object], connection: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    connection.send_bytes(b"ready")
    while True:
        try:
            data = connection.recv_bytes()
        except EOFError:
            return
        try:
            read(data)
            answer = "read"
        except TenferroError as error:
            str(error)
            answer = "typed"
        except Exception as error:
            connection.send_bytes(f"{type(error).__name__}: {error}".encode())
            raise
        connection.send_bytes(answer.encode())
