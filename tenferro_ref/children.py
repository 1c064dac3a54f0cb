"""What processes that this one starts are given: an environment without its secrets, a log that cannot fill the disk."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

#: Further variables that children get, as `MY_ENGINE_HOME,MY_ENGINE_THREADS`: a build may need some of its own.
EXTRA_VARIABLE = "TENFERRO_PASS_ENV"
#: Where programs and libraries are, whose files, which language and time; threads; our own; those of engines; Python's.
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|DYLD_\w+"
    r"|(OMP|OPENBLAS|GOTO|MKL|KMP|BLIS|VECLIB|NUMEXPR)_\w+"
    r"|(TENFERRO|JAX|JAXLIB|XLA|PJRT|IREE|TPU|LIBTPU|CUDA|NVIDIA|ROCM|ROCR|HIP|HSA|TF_CPP|PYENV)_\w+"
)
_PYTHON = re.compile(r"PYTHON\w+")
#: Where pip finds packages, and the way there.
_PIP = re.compile(r"PIP_\w+|XDG_CONFIG_HOME|(?i:(https?|no|all|ftp)_proxy)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE")
_ROOT = str(Path(__file__).resolve().parents[1])
#: Bytes of a child's log that are kept on the disk, about.
LOG_BYTES = 64 << 20
#: Set while this process is being interrupted: whatever waits for a child gives up and ends it, in every thread.
interrupted = threading.Event()


def environment(
    *, python: bool = True, pip: bool = False, given: Mapping[str, str] | None = None, **more: str
) -> dict[str, str]:
    """The variables of a child: what is on the list of this module, and `more`; no token that happens to be in ours.

    Parameters
    ----------
    python
        With PYTHONPATH and the like; without them, an interpreter sees nothing of ours.
    pip
        With the variables that pip reads: index, proxy, certificates.
    given
        What is chosen from; this process's own by default.
    """
    given = os.environ if given is None else given
    named = {name.strip() for name in given.get(EXTRA_VARIABLE, "").split(",")}
    kinds = [_PASSED, *([_PYTHON] if python else []), *([_PIP] if pip else [])]
    return {k: v for k, v in given.items() if k in named or any(kind.fullmatch(k) for kind in kinds)} | more


def own_environment() -> dict[str, str]:
    """The variables of a child that imports this package, from where it is imported here."""
    path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH", "")]))
    return environment(PYTHONPATH=path)


def keep_short(log: IO[bytes]) -> None:
    """Free the disk of a child's log if it is long; the child goes on writing where it was, so that its end is kept."""
    if os.fstat(log.fileno()).st_blocks * 512 > LOG_BYTES:
        os.ftruncate(log.fileno(), 0)


def tail(log: IO[bytes], size: int) -> bytes:
    """The last bytes of a log, without the hole that `keep_short` may have left."""
    end = log.seek(0, os.SEEK_END)
    log.seek(max(0, end - size))
    return log.read(size).lstrip(b"\0")


def ending(status: int) -> str:
    """How a child ended, in words: "signal SIGSEGV", "exit status 3"."""
    if status >= 0:
        return f"exit status {status}"
    return f"signal {next((s.name for s in signal.Signals if s == -status), -status)}"
