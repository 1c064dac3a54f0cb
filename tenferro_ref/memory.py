"""How much memory this process may have: what is larger is refused before anything is computed."""

from __future__ import annotations

import contextlib
import os
import resource
from functools import cache
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup/memory.max")


@cache
def limit() -> int:
    """Bytes of the machine's memory, or fewer where the address space or the control group of this process is limited."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    (space, _) = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY:
        limits.append(space)
    with contextlib.suppress(OSError, ValueError):  # no such file, or the word "max"
        limits.append(int(_CGROUP.read_text("ascii")))
    return min(limits)
