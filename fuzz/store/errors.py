"""Errors of findings stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenferro_ref.errors import EnvironmentFault, TenferroError


@dataclass(eq=False)
class StoreDamaged(TenferroError):
    """A findings store that is no store, or whose content contradicts itself; it was not changed."""

    path: str
    detail: str
    template: ClassVar[str] = "{path}: damaged, or not a findings store: {detail}"


@dataclass(eq=False)
class StoreVersion(TenferroError):
    """A findings store of a later version than this one reads; it was not changed."""

    path: str
    version: int
    newest: int
    template: ClassVar[str] = (
        "{path}: a findings store of schema version {version}; this tenferro-ref knows {newest}: use a newer one"
    )


@dataclass(eq=False)
class StoreLocked(EnvironmentFault):
    """Another process holds the findings store."""

    path: str
    holder: str
    template: ClassVar[str] = "{path}: in use by {holder}; wait for it, or use another store and `fuzz merge`"
