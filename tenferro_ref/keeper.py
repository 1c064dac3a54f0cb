"""A process beside this one that ends what this one has started, and removes its folders, however this one ends.

Killed outright, a process cleans nothing up: a command under test would live on without its limits, and so would what a
plugin has forked. The keeper reads from a pipe what there is; when the pipe closes, this process is gone. This process may end
between the start of another one and the line that says so, and what a command starts may leave its group: all of
them carry a variable by which the keeper finds them in `/proc`.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: Each line is `+` or `-`, `g` for a process group or `f` for a folder, and which one (a path as hexadecimal digits).
_SCRIPT = """
import os, shutil, signal, sys, time
def marked(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(mark) for entry in file.read().split(b"\\0"))
    except OSError:
        return False
mark = os.fsencode(sys.argv[1])
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
left = {}
for line in sys.stdin:
    (left.__setitem__ if line[0] == "+" else left.pop)(line[1:-1], None)
for thing in left:
    try:
        if thing[0] == "g":
            os.killpg(int(thing[1:]), signal.SIGKILL)
    except OSError:
        pass
# until there is none for 0.3 s: what is between fork and exec has the variable only then; a minute for what cannot be ended
clean, end = 0, time.monotonic() + 60
while os.path.isdir("/proc/1") and clean < 4 and time.monotonic() < end:
    found = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and marked(pid)]
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    clean = 0 if found else clean + 1
    time.sleep(0.1)
for thing in left:
    if thing[0] == "f":
        shutil.rmtree(bytes.fromhex(thing[1:]), ignore_errors=True)
"""
#: The variable of a command and of all that it starts. The first part of its value is this process's, the second the command's.
_MARK = "TENFERRO_KEEPER"
_mark = ""
#: The variable with its value, by process of a command.
_entries: dict[int, bytes] = {}
#: How many times the processes of a command are searched for: one that is killed may have started another meanwhile.
_SEARCHES = 20
_lock = threading.Lock()
_keeper: subprocess.Popen[str] | None = None


def start(command: Sequence[str], *, env: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command as the leader of a process group, which ends with this process at the latest.

    Parameters
    ----------
    env
        The variables of the command; one is added.
    options
        As of `subprocess.Popen`, and so are the errors.
    """
    _tell()
    value = f"{_mark}-{secrets.token_hex(8)}"
    process = subprocess.Popen(command, start_new_session=True, env={**env, _MARK: value}, **options)
    _entries[process.pid] = f"{_MARK}={value}".encode()
    _tell(f"+g{process.pid}")
    return process


def stop(process: subprocess.Popen[bytes]) -> int:
    """End a command that `start` started, and all that it has started, in its process group or not; gives its exit status."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    status = process.wait()
    entry = _entries.pop(process.pid, None)
    for _ in range(_SEARCHES):
        found = [] if entry is None else _carriers(entry)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            break
    _tell(f"-g{process.pid}")
    return status


def _carriers(entry: bytes) -> list[int]:
    """The processes with an entry among their variables; none where the system does not tell."""
    found = []
    for environ in glob.iglob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError), open(environ, "rb") as file:
            if entry in file.read().split(b"\0"):
                found.append(int(environ.split("/")[2]))
    return found


@contextlib.contextmanager
def folder(prefix: str) -> Iterator[str]:
    """A temporary folder, removed at the end of the block, or when this process ends before.

    Raises
    ------
    OSError
        It cannot be made.
    """
    path = os.path.join(tempfile.gettempdir(), f"{prefix}{secrets.token_hex(8)}")
    name = f"f{os.fsencode(path).hex()}"
    _tell(f"+{name}")
    try:
        os.mkdir(path, 0o700)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _tell(f"-{name}")


def _tell(*lines: str) -> None:
    """Write lines to the keeper, which is started first if there is none."""
    global _keeper, _mark
    with _lock:
        if _keeper is None or _keeper.poll() is not None:
            _mark = _mark or secrets.token_hex(16)
            _keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SCRIPT, f"{_MARK}={_mark}"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True, text=True, env={},
            )  # fmt: skip
        assert _keeper.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody has killed it
            _keeper.stdin.writelines(f"{line}\n" for line in lines)
            _keeper.stdin.flush()
