"""No holes: every op is in every table, or declared unsupported there with a reason."""

from __future__ import annotations

import pytest

import oracle.decompositions  # noqa: F401 - the checks of decompositions
from fuzz.findings.reduce.links import LINKS
from fuzz.findings.reduce.rank import WITHOUT
from fuzz.generate.ops import STRATEGY
from oracle.checks import CHECK_EXTENSION
from oracle.enclosure import COMPLEX, ENCLOSE
from oracle.enclosure.extensions import ENCLOSE_EXTENSION
from oracle.peers.engines.jax_extensions import JAX_EXTENSION
from oracle.peers.engines.lax import JAX
from oracle.peers.front_end import WORDS
from tenferro_ref import ops
from tenferro_ref.extensions import linalg, standard_ops_of
from tenferro_ref.extensions.einsum import EINSUM
from tenferro_ref.extensions.fft import FFT
from tenferro_ref.extensions.lapack import LAPACK
from tenferro_ref.extensions.linalg import LINALG
from tenferro_ref.ops import OPS, PHASE1
from tenferro_ref.runtime import KERNELS
from tenferro_ref.runtime.semiring import SEMIRING
from tenferro_ref.stablehlo.emit import EMIT, EMIT_EXTENSION
from tenferro_ref.table import Table

TABLES = [KERNELS, EMIT, ENCLOSE, JAX, STRATEGY]
#: Of every op too, but with good reasons for more of them.
PARTIAL = [SEMIRING, COMPLEX, LINKS, WITHOUT, WORDS]


@pytest.mark.parametrize("table", [*TABLES, *PARTIAL], ids=lambda t: t.name)
def test_every_op_has_a_row_or_a_reason(table: Table[object]) -> None:
    assert table.holes(OPS) == []
    for op in OPS:
        reason = table.reason(op)
        assert reason is None or len(reason) > 10, f"{table.name} gives no reason for {op.__name__}"


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_table_covers_phase_1_and_branching(table: Table[object]) -> None:
    assert [op.__name__ for op in (*PHASE1, ops.Compare, ops.Select, ops.Maximum, ops.Minimum) if op not in table] == []


EXTENSION_OPS = [*EINSUM.keys, *FFT.keys, *LINALG.keys, *LAPACK.keys]


@pytest.mark.parametrize("table", [EMIT_EXTENSION, ENCLOSE_EXTENSION, JAX_EXTENSION], ids=lambda t: t.name)
def test_every_op_of_a_family_has_a_row_or_a_reason(table: Table[object]) -> None:
    needed = [key for key in EXTENSION_OPS if table is not EMIT_EXTENSION or not standard_ops_of(ops.Extension(*key))]
    assert table.holes(needed) == []


def test_what_has_no_enclosure_has_backward_error_checks() -> None:
    assert {key for key in EXTENSION_OPS if key not in ENCLOSE_EXTENSION} == {*CHECK_EXTENSION}
    assert {*LINALG.keys, *LAPACK.keys} - {*CHECK_EXTENSION} == {
        (linalg.FAMILY, f"{name}FromLuFactor") for name in ("SignDet", "LogAbsDet")
    }
