"""Worker processes: native code that may abort, hang or corrupt runs in one of these, never in the harness.

A worker is started from a clean process (spawned by exec, never forked), serves one engine (`tenferro_ref.isolation.engine`), and
talks over a socket pair in msgpack: nothing is ever unpickled.
"""

from tenferro_ref.isolation.process import Worker, WorkerSpec

__all__ = ["Worker", "WorkerSpec"]
