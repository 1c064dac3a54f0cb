"""A process beside this one that ends what this one has started, and removes its folders, however this one ends.

Killed outright, a process cleans nothing up: a command under test would live on without its limits, and so would what a
plugin has forked. The keeper reads from a pipe what there is; when the pipe closes, this process is gone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import Any

#: In the environment of a command: which start it comes from, since this process may be killed before it knows the command's number.
_MARK = "_TENFERRO_STARTED"
#: Each line is `+` or `-`, `g` for a process group, `m` for the mark of a start or `f` for a folder, and which one (a path as
#: hexadecimal digits). The pipe closes after a command that was being started has its environment: until then it holds the pipe.
_SCRIPT = f"""
import os, shutil, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
left = {{}}
for line in sys.stdin:
    (left.__setitem__ if line[0] == "+" else left.pop)(line[1:-1], None)
groups = [int(thing[1:]) for thing in left if thing[0] == "g"]
marks = {{b"{_MARK}=" + thing[1:].encode() for thing in left if thing[0] == "m"}}
for name in os.listdir("/proc") if marks else ():
    try:
        with open(f"/proc/{{name}}/environ", "rb") as environment:
            if name.isdigit() and marks & set(environment.read().split(b"\\0")):
                groups.append(os.getpgid(int(name)))
    except OSError:
        pass
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
for thing in left:
    if thing[0] == "f":
        shutil.rmtree(bytes.fromhex(thing[1:]), ignore_errors=True)
"""
_lock = threading.Lock()
_keeper: subprocess.Popen[str] | None = None


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command as the leader of a process group, which ends with this process at the latest.

    Parameters
    ----------
    options
        As of `subprocess.Popen`, and so are the errors.
    """
    mark = secrets.token_hex(8)
    environment = {**(options.pop("env", None) or os.environ), _MARK: mark}
    _tell(f"+m{mark}")
    try:
        process = subprocess.Popen(command, start_new_session=True, env=environment, **options)
        _tell(f"+g{process.pid}")
    finally:
        _tell(f"-m{mark}")
    return process


def stop(process: subprocess.Popen[bytes]) -> int:
    """End a command that `start` started, and all that it has started; gives its exit status."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    status = process.wait()
    _tell(f"-g{process.pid}")
    return status


@contextlib.contextmanager
def folder(prefix: str) -> Iterator[str]:
    """A temporary folder, removed at the end of the block, or when this process ends before.

    Raises
    ------
    OSError
        It cannot be made.
    """
    path = tempfile.mkdtemp(prefix=prefix)
    name = f"f{os.fsencode(path).hex()}"
    _tell(f"+{name}")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _tell(f"-{name}")


def _tell(line: str) -> None:
    """Write one line to the keeper, which is started first if there is none."""
    global _keeper
    with _lock:
        if _keeper is None or _keeper.poll() is not None:
            _keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True, text=True, env={},
            )  # fmt: skip
        assert _keeper.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody has killed it
            _keeper.stdin.write(line + "\n")
            _keeper.stdin.flush()
