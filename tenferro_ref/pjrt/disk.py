"""Serialised executables in a folder that processes share.

A serialised executable is machine code: write access to the folder is the power to decide what runs here. So the folder must be this user's, and
nobody else may write into it. Files are written whole or not at all, and the least recently used go when there is too much.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from tenferro_ref.errors import OutputError, UsageError
from tenferro_ref.files import write_atomically

CACHE_VARIABLE = "TENFERRO_PJRT_CACHE"
LIMIT_VARIABLE = "TENFERRO_PJRT_CACHE_BYTES"
_LIMIT = 1 << 30
_SUFFIX = ".pjrt"


@lru_cache(maxsize=1)
def processor() -> str:
    """SHA-256 of what machine code may depend on: architecture and features of the processor, as the kernel tells them."""
    features: set[str] = set()
    try:
        for line in Path("/proc/cpuinfo").read_text("ascii", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features", "model name", "CPU part"):
                features.update(value.split())
    except OSError:
        features.add(platform.processor())
    return sha256(" ".join([platform.machine(), *sorted(features)]).encode()).hexdigest()


@dataclass(frozen=True)
class DiskCache:
    """The folder.

    Attributes
    ----------
    folder
        Made, for this user alone, if it is not there.
    limit
        Bytes that all files together may take.

    Raises
    ------
    UsageError
        The folder is not a folder, belongs to somebody else, or others may write into it.
    OutputError
        It cannot be made.
    """

    folder: Path
    limit: int = _LIMIT

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> DiskCache | None:
        """The folder that TENFERRO_PJRT_CACHE names, of at most TENFERRO_PJRT_CACHE_BYTES bytes; None if it names none.

        Raises
        ------
        UsageError, OutputError
            As the class; or the number of bytes is none.
        """
        folder, limit = environ.get(CACHE_VARIABLE), environ.get(LIMIT_VARIABLE) or str(_LIMIT)
        if not folder:
            return None
        if not re.fullmatch("[0-9]{1,18}", limit):
            raise UsageError(detail=f"{LIMIT_VARIABLE} is {limit!r}, which is no number of bytes")
        return cls(Path(folder), int(limit))

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = os.stat(self.folder)
        except FileExistsError:
            raise UsageError(detail=f"{self.folder}: not a folder, so that no executables can be kept in it") from None
        except (OSError, ValueError) as error:
            raise OutputError(path=str(self.folder), detail=f"cannot be made: {error}") from None
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UsageError(
                detail=f"{self.folder}: others may write into it, and executables are code that runs here: chmod go-w it, or name "
                "another folder"
            )

    def read(self, digest: str) -> bytes | None:
        """The bytes kept under a digest, None if there are none."""
        path = self._path(digest)
        try:
            data = path.read_bytes()
            os.utime(path)  # recently used
        except OSError:
            return None
        return data

    def write(self, digest: str, data: bytes) -> bool:
        """Keep bytes under a digest, and remove the least recently used ones beyond the limit; whether they are kept.

        A full disk, or bytes beyond the limit, are no error of the program whose executable it is.
        """
        if len(data) > self.limit:
            return False
        try:
            write_atomically(self._path(digest), data)
        except OutputError:
            return False
        self._shrink()
        return True

    def remove(self, digest: str) -> None:
        """Forget what is kept under a digest."""
        with contextlib.suppress(OSError):
            self._path(digest).unlink()

    def usage(self) -> tuple[int, int]:
        """Number of executables, and their bytes."""
        sizes = [size for _, size, _ in self._files()]
        return len(sizes), sum(sizes)

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}{_SUFFIX}"

    def _files(self) -> list[tuple[int, int, str]]:
        """Time of last use, size and path of each file; those that another process removes meanwhile are left out."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.name.endswith(_SUFFIX):
                        about = entry.stat()
                        found.append((about.st_mtime_ns, about.st_size, entry.path))
        return sorted(found)

    def _shrink(self) -> None:
        files = self._files()
        excess = sum(size for _, size, _ in files) - self.limit
        for _, size, path in files:
            if excess <= 0:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            excess -= size
