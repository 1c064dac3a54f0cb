"""Errors of campaigns on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tenferro_ref.errors import EnvironmentFault


@dataclass(eq=False)
class ClusterFault(EnvironmentFault):
    """A cluster that cannot be reached, has no workers, or a machine of it that cannot do what the others do."""

    where: str
    detail: str
    template: ClassVar[str] = "cluster {where}: {detail}"
