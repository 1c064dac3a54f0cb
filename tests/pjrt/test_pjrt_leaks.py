"""Ten thousand executions leave nothing behind, on any plugin; a plugin that leaks is seen."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from fuzz.conform.probes.memory import settled
from tenferro_ref.dtype import DType
from tenferro_ref.pjrt import Client, TensorSpec
from tests.pjrt.conftest import MakeClient
from tests.pjrt.test_pjrt_contract import X, Y, compiled
from tests.plugins import on_one_build

SPEC: TensorSpec = (DType.F32, (64,))
DOUBLE = "func.func public @main(%a: tensor<64xf32>) -> tensor<64xf32> {%0 = stablehlo.add %a, %a : tensor<64xf32>\n return %0 : tensor<64xf32>}"
RUNS = 10_000
#: Bytes a run that resident memory may grow by: a leaked event or buffer takes more.
MOST = 100


def growth(once: Callable[[], object], runs: int) -> float:
    """Bytes a run, after some that fill pools and caches."""
    for _ in range(runs // 5):
        once()
    before = settled()
    for _ in range(runs):
        once()
    return (settled() - before) / runs


@on_one_build
@pytest.mark.once
def test_ten_thousand_executions(client: Client) -> None:
    x = np.ones(64, np.float32)
    with client.compile(DOUBLE, parameters=[SPEC]) as executable, client.put(x) as buffer:
        assert growth(lambda: executable.run([x]), RUNS) < MOST

        def chained() -> None:
            (first,) = executable.execute([buffer])
            (second,) = executable.execute([first])
            with second.ready_event() as event:
                event.on_ready(lambda error: None)
            second.numpy()

        assert growth(chained, RUNS // 2) < MOST


def free_memory_in_the_heap() -> None:
    """Leave about 64 MiB free and resident below a block that stays, from which a leak of 1 MiB a run is then served."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_size_t],
        [ctypes.c_void_p],
    )
    libc.free(libc.malloc(32 << 20))  # from now on, blocks of 1 MiB come from the heap and not from mmap
    blocks = [libc.malloc(64 << 10) for _ in range(1024)]
    for block in blocks:
        ctypes.memset(block, 1, 64 << 10)
    libc.malloc(64 << 10)
    for block in blocks:
        libc.free(block)


def test_a_plugin_that_leaks_is_seen(fake_client: MakeClient) -> None:
    executable = compiled(fake_client("leak"))
    free_memory_in_the_heap()
    assert growth(lambda: executable.run([X, Y]), 20) > 100 * MOST
