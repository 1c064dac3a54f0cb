"""Memory: what is given back is given back."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path

from fuzz.conform.probes.session import F32_4, SUM, Fails, Lacks, Session, X, Y
from fuzz.conform.probes.table import probe

#: Resident memory may grow by so much in the second half of a series: allocators keep some.
_ALLOWED = 4 << 20
#: By so much it may never grow.
_FAR = 256 << 20


def _resident() -> int:
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        raise Lacks("this system does not tell a process's memory") from None
    return int(pages) * os.sysconf("SC_PAGESIZE")


def settled() -> int:
    """Resident bytes once what Python and the C library keep free is given back: a leak served from it would not show."""
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc's
        libc.malloc_trim(0)
    return _resident()


def _grows(step: Callable[[], object], count: int) -> None:
    """Run `step` `count` times; memory must not grow in the second half, nor much in the first."""
    start = before = settled()
    for i in range(count):
        if i == count // 2:
            before = settled()
        elif i % 64 == 0 and (grown := _resident() - start) > _FAR:
            raise Fails(f"{grown >> 20:,} MiB more after {i:,} of {count:,}")
        step()
    grown = settled() - before
    if grown > _ALLOWED:
        raise Fails(f"{grown >> 10:,} KiB more after the last {count - count // 2:,} of {count:,}")


@probe("memory", "10,000 executions with upload and download")
def _(s: Session) -> None:
    _grows(lambda: s.sum.run([X, Y]), 10_000)


@probe("memory", "10,000 uploads and downloads")
def _(s: Session) -> None:
    def step() -> None:
        with s.client.put(X) as buffer:
            buffer.numpy()

    _grows(step, 10_000)


@probe("memory", "200 compiles")
def _(s: Session) -> None:
    _grows(lambda: s.compile(SUM, F32_4, F32_4).close(), 200)
