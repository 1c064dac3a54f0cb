"""Errors of derivative programs (SEMANTICS B.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tenferro_ref.errors import TenferroError, ValidationError


@dataclass(eq=False)
class UnsupportedAdRule(TenferroError):
    """An op without a rule for a transform, or a use of it that has none; never a zero in its place."""

    transform: str
    op: str
    reason: str
    template: ClassVar[str] = "{op} has no {transform} rule: {reason}"


@dataclass(eq=False)
class UnsupportedMetadata(ValidationError):
    """A derivative that needs an extent which only the running program knows."""

    detail: str
    template: ClassVar[str] = "{op}: its derivative needs constant extents; {detail}"


@dataclass(eq=False)
class ActivityArity(TenferroError):
    """A list of active inputs or outputs that names one that does not exist, or names one twice."""

    transform: str
    field: str
    detail: str
    template: ClassVar[str] = "{transform}: {field}: {detail}"


@dataclass(eq=False)
class NonScalarGrad(TenferroError):
    """A gradient of something that is no single real number."""

    type: Any
    template: ClassVar[str] = (
        "grad needs one active output of rank 0 and a real dtype, not {type}; use vjp with a cotangent"
    )
