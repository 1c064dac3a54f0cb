"""Errors of executors that are not this package's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenferro_ref.errors import EnvironmentFault, TenferroError


@dataclass(eq=False)
class EngineFault(EnvironmentFault):
    """An executor that is no PJRT plugin (JAX, the interpreter, IREE, a command under test) fails on a program."""

    engine: str
    detail: str
    template: ClassVar[str] = "{engine}: {detail}"


@dataclass(eq=False)
class CommandRefused(TenferroError):
    """A file names a command to run or a library to load that the user has not allowed; nothing was run."""

    where: str
    wants: str
    executor: str
    template: ClassVar[str] = (
        "{where}: wants to {wants}; a file may not do that by itself: look at it, then allow it with --allow-commands, "
        "or name this executor on the command line"
    )
