"""`rng_bit_generator` as it is read gives XLA's bits: on the CPU plugins and on jaxlib's client, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.case import Case
from oracle.judge import Reference
from oracle.peers import Execution, Executor, NativeExecutor, Pool, attempt_source
from oracle.reference import compare_all
from oracle.verdict import Comparison
from tenferro_ref.errors import UnsupportedOp
from tenferro_ref.stablehlo.loader import load
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

module_or_skip("jax")

pytestmark = pytest.mark.once

#: Builds that compile these modules as slowly and give the same bits.
OTHERS = ("jax", "pjrt:xla081", "pjrt:lam115")
#: A key, and a counter that wraps.
STATE = np.array([0xFFFFFFFF12345678, 0xFFFFFFFFFFFFFFFE], np.uint64)
#: No even extent, one, several; no block that is filled; nothing at all.
TYPES = [
    *(f"{shape}{element}" for shape in ("", "1x1x", "7x", "3x6x", "4x3x", "3x5x", "0x3x") for element in ("ui32", "ui64")),
    "3x5xui8", "3x5xui16",
]  # fmt: skip


def module(algorithm: str, results: list[str], words: int = 2) -> str:
    state, types = f"tensor<{words}xui64>", [f"tensor<{t}>" for t in results]
    lines = [
        f"%s{i + 1}, %r{i} = stablehlo.rng_bit_generator %s{i}, algorithm = {algorithm} : ({state}) -> ({state}, {t})"
        for i, t in enumerate(types)
    ]
    values = ", ".join((f"%s{len(types)}", *(f"%r{i}" for i in range(len(types)))))
    declared = ", ".join((state, *types))
    return "\n".join(
        [f"func.func @main(%s0: {state}) -> ({declared}) {{", *lines, f"return {values} : {declared}", "}"]
    )


@pytest.fixture(params=("pjrt:fas106", *(pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS)))
def executor(request: pytest.FixtureRequest, pool: Pool) -> Executor:
    if request.param != "jax":
        plugin_or_skip(request.param.partition(":")[2])
    return pool.make(request.param)


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX"])
def test_one_state_after_another_gives_the_bits_of_every_build(algorithm: str, executor: Executor, pool: Pool) -> None:
    text = module(algorithm, TYPES)
    loaded = load(text)
    reference = Reference(Case.of(loaded.program, loaded.inputs((STATE,))), NativeExecutor())
    given = attempt_source(executor, pool.reader.source(text, "m"), [STATE])
    assert isinstance(given, Execution), given
    comparison = compare_all({reference: given.outputs}, executor.model)[reference]
    assert isinstance(comparison, Comparison)
    assert (comparison.outside, comparison.decided) == (0, comparison.elements)
    wrong = (given.outputs[0], np.bitwise_xor(given.outputs[1], np.uint32(1)), *given.outputs[2:])
    comparison = compare_all({reference: wrong}, executor.model)[reference]
    assert isinstance(comparison, Comparison)
    assert comparison.outside == 1


@pytest.mark.parametrize(
    ("algorithm", "words", "result", "reason"),
    [
        ("DEFAULT", 2, "4xui32", "different algorithms"),
        ("THREE_FRY", 3, "4xui32", "ui64[2]"),
        ("PHILOX", 3, "4xui32", "ui64[2]"),
        ("PHILOX", 2, "4xf32", "only as integers"),
    ],
)
def test_what_implementations_choose_for_themselves_is_refused(
    algorithm: str, words: int, result: str, reason: str
) -> None:
    with pytest.raises(UnsupportedOp, match="rng_bit_generator") as raised:
        load(module(algorithm, [result], words))
    assert reason in str(raised.value)
