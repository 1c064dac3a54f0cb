"""No holes: every op is in every table, or declared unsupported there with a reason."""

from __future__ import annotations

import pytest

from fuzz.findings.reduce.links import LINKS
from fuzz.findings.reduce.rank import WITHOUT
from fuzz.generate import STRATEGY
from oracle.enclosure import ENCLOSE
from oracle.enclosure.complexes import COMPLEX
from oracle.peers.engines.lax import JAX
from tenferro_ref import ops
from tenferro_ref.ops import OPS, PHASE1
from tenferro_ref.runtime import KERNELS
from tenferro_ref.runtime.semiring import SEMIRING
from tenferro_ref.stablehlo.emit import EMIT
from tenferro_ref.table import Table

TABLES = [KERNELS, EMIT, ENCLOSE, JAX, STRATEGY]
#: Of every op too, but with good reasons for more of them.
PARTIAL = [SEMIRING, COMPLEX, LINKS, WITHOUT]


@pytest.mark.parametrize("table", [*TABLES, *PARTIAL], ids=lambda t: t.name)
def test_every_op_has_a_row_or_a_reason(table: Table[object]) -> None:
    assert table.holes(OPS) == []
    for op in OPS:
        reason = table.reason(op)
        assert reason is None or len(reason) > 10, f"{table.name} gives no reason for {op.__name__}"


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_table_covers_phase_1_and_branching(table: Table[object]) -> None:
    assert [op.__name__ for op in (*PHASE1, ops.Compare, ops.Select, ops.Maximum, ops.Minimum) if op not in table] == []
