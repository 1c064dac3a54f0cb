"""Files: reading text with typed errors, and writing so that nothing half-written is ever seen."""

from __future__ import annotations

import os
import stat
import tempfile
import tomllib
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenferro_ref.errors import FormatError, OutputError, UsageError

#: How far into a file its mark may be.
_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Product:
    """A file that this program writes into a folder that somebody else named.

    Attributes
    ----------
    name
        Of the file in its folder; "ops/Add.html" is in one below it.
    mark
        What the first 4 KiB of every such file contain. A file of that name without it is somebody else's.
    content
        Empty where only the name and the mark matter.
    """

    name: str
    mark: str
    content: str | bytes = ""


def read_text(path: str | Path) -> str:
    """Content of a UTF-8 text file.

    Raises
    ------
    FormatError
        The file cannot be read, or is not UTF-8.
    """
    return decode(read_bytes(path), str(path))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Content of a TOML file.

    Raises
    ------
    FormatError
        The file cannot be read, or is no TOML, or nested too deeply to be read.
    """
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FormatError(where=str(path), detail=f"not a TOML file: {error}") from None


def decode(data: bytes, where: str) -> str:
    """UTF-8 text without a byte order mark, its line ends as `\\n`.

    Raises
    ------
    FormatError
        It is no UTF-8.
    """
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
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


def destination(path: str) -> str:
    """Where a file goes that somebody has named: through a link, to what it leads to."""
    try:
        return os.path.realpath(path) if os.path.islink(path) else path
    except ValueError:  # a NUL in the path; writing will say so
        return path


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write under a temporary name beside `path`, then rename; missing folders are made. A device or a pipe is written into.

    Raises
    ------
    OutputError
        Anything on the way failed; no temporary file stays behind.
    """
    target = Path(path)
    if _is_device(target):
        _write_into(target, _as_bytes(content))
    else:
        _write_together(target.parent, [(target, content)])


def _is_device(path: Path) -> bool:
    """Whether something is there that must not be replaced by a file: a device, a pipe, a socket."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # writing will say what is wrong
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_into(device: Path, data: bytes) -> None:
    try:
        # a pipe that nobody reads is an error, not a wait without end
        with open(os.open(device, os.O_WRONLY | os.O_NONBLOCK), "wb") as file:
            os.set_blocking(file.fileno(), True)
            file.write(data)
    except OSError as error:
        raise OutputError(path=str(device), detail=error.strerror or str(error)) from None


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def write_products(folder: Path, products: Iterable[Product]) -> None:
    """Write all files or none: all under temporary names first, so that a full disk leaves the earlier files as they were.

    Raises
    ------
    UsageError
        One of them would replace a file that this program has not written; see `check_products`.
    OutputError
        Anything on the way failed.
    """
    listed = list(products)
    check_products(folder, listed)
    _write_together(folder, [(folder / product.name, product.content) for product in listed])


def check_products(folder: Path, products: Iterable[Product]) -> None:
    """Refuse to write where a file of somebody else would be replaced, or where nothing can be written.

    Raises
    ------
    UsageError
        A file of that name is there without the mark of this program, or is no regular file, or the folder is none.
    OutputError
        The folder cannot be made or written into.
    """
    if "\0" not in str(folder) and folder.exists() and not folder.is_dir():
        raise UsageError(detail=f"{folder}: not a folder")
    for product in products:
        path = folder / product.name
        for above in path.parents[: len(Path(product.name).parts) - 1]:
            if above.is_symlink():
                raise UsageError(
                    detail=f"{above}: is a link, and tenferro-ref writes through none; give another folder"
                )
        if not os.path.lexists(path):
            continue
        if path.is_symlink() or not path.is_file() or product.mark.encode() not in _head(path):
            detail = "is there, and tenferro-ref has not written it; give another folder"
            raise UsageError(detail=f"{path}: {detail}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(path=str(folder), detail=error.strerror or str(error)) from None
    except ValueError as error:  # a NUL in the path
        raise OutputError(path=repr(str(folder)), detail=str(error)) from None


def remove_products(folder: Path, patterns: Iterable[Product], kept: Collection[str]) -> None:
    """Remove the files that this program has written earlier under such names, but for those that are `kept`.

    Raises
    ------
    OutputError
        One cannot be removed.
    """
    for pattern in patterns:
        for path in folder.glob(pattern.name):
            linked = path.is_symlink() or (path.parent != folder and path.parent.is_symlink())
            if linked or not path.is_file() or path.relative_to(folder).as_posix() in kept:
                continue
            if pattern.mark.encode() in _head(path):
                try:
                    path.unlink()
                except OSError as error:
                    raise OutputError(path=str(path), detail=error.strerror or str(error)) from None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError as error:
        raise OutputError(path=str(path), detail=error.strerror or str(error)) from None


def _write_together(folder: Path, files: list[tuple[Path, str | bytes]]) -> None:
    """Write every file under a temporary name, then rename them all; none stays behind if one cannot be written."""
    where = files[0][0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as temporary:
            names = []
            for where, content in files:
                where.parent.mkdir(parents=True, exist_ok=True)
                descriptor, name = tempfile.mkstemp(dir=where.parent, prefix=f".{where.name}.", suffix=".tmp")
                temporary.callback(Path(name).unlink, missing_ok=True)  # Ctrl-C too leaves nothing behind
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_as_bytes(content))
                os.chmod(name, 0o666 & ~_umask())
                names.append((name, where))
            for name, where in names:
                os.replace(name, where)
    except OSError as error:
        raise OutputError(path=str(where), detail=error.strerror or str(error)) from None
    except ValueError as error:  # a NUL in the path
        raise OutputError(path=repr(str(where)), detail=str(error)) from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
