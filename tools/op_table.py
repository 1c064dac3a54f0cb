"""The table of ops in docs/architecture.md, generated from the tables: `python -m tools.op_table` writes it there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fuzz.generate.ops import STRATEGY
from oracle.enclosure import ENCLOSE
from oracle.peers.engines.lax import JAX
from tenferro_ref.autodiff import JVP, TRANSPOSE
from tenferro_ref.ops import CONTRACTIONS, ELEMENTWISE, INDEXING, REDUCTIONS, STRUCTURAL, Constant, Extension, Op
from tenferro_ref.runtime import KERNELS
from tenferro_ref.stablehlo.emit import EMIT
from tenferro_ref.table import Table

PAGE = Path(__file__).resolve().parents[1] / "docs/architecture.md"
START, END = "<!-- op table: python -m tools.op_table -->", "<!-- end of op table -->"
GROUPS: dict[str, tuple[type[Op], ...]] = {
    "elementwise": ELEMENTWISE,
    "structural": (*STRUCTURAL, Constant),
    "reduction": REDUCTIONS,
    "indexing": INDEXING,
    "contraction": CONTRACTIONS,
    "extension": (Extension,),
}
LAYERS: dict[str, Table[Any]] = {
    "kernel": KERNELS,
    "JVP": JVP,
    "transpose": TRANSPOSE,
    "StableHLO": EMIT,
    "enclosure": ENCLOSE,
    "JAX": JAX,
    "generator": STRATEGY,
}


def markdown() -> str:
    """One line a set of ops that the same layers handle."""
    lines = [f"| group | ops | {' | '.join(LAYERS)} |", "|---|---|" + "---|" * len(LAYERS)]
    for group, ops in GROUPS.items():
        by_support: dict[tuple[bool, ...], list[str]] = {}
        for op in ops:
            by_support.setdefault(tuple(op in table for table in LAYERS.values()), []).append(op.__name__)
        for support, names in sorted(by_support.items(), reverse=True):
            marks = " | ".join("yes" if s else "-" for s in support)
            lines.append(f"| {group} | {' '.join(names)} | {marks} |")
    return "\n".join(lines)


def updated(text: str) -> str:
    """The page with the table as it should be."""
    return re.sub(f"{START}.*?{END}", lambda _: f"{START}\n{markdown()}\n{END}", text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")
