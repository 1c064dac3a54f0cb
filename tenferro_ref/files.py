"""Files: reading text with typed errors, and writing so that nothing half-written is ever seen."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tenferro_ref.errors import FormatError, OutputError


def read_text(path: str | Path) -> str:
    """Content of a UTF-8 text file.

    Raises
    ------
    FormatError
        The file cannot be read, or is not UTF-8.
    """
    return decode(read_bytes(path), str(path))


def decode(data: bytes, where: str) -> str:
    """UTF-8 text, its line ends as `\\n`.

    Raises
    ------
    FormatError
        It is no UTF-8.
    """
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise FormatError(where=where, detail="not a text file (not UTF-8)") from None


def read_bytes(path: str | Path) -> bytes:
    """Content of a file.

    Raises
    ------
    FormatError
        The file cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FormatError(where=str(path), detail=f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the path
        raise FormatError(where=repr(str(path)), detail=f"cannot be read: {error}") from None


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write under a temporary name beside `path`, then rename; missing folders are made.

    Raises
    ------
    OutputError
        Anything on the way failed; no temporary file stays behind.
    """
    target = Path(path)
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:  # Ctrl-C too leaves nothing behind
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(path=str(path), detail=error.strerror or str(error)) from None
    except ValueError as error:  # a NUL in the path
        raise OutputError(path=repr(str(path)), detail=str(error)) from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
