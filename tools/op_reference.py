"""docs/reference/ops.md, generated from the vocabulary: what each op means, its attributes and dtypes, and an example that was run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tenferro_ref.compiler import compile_std_to_exec
from tenferro_ref.dtype import DType
from tenferro_ref.ops import ELEMENTWISE, Op
from tenferro_ref.program import print_program
from tenferro_ref.runtime import GraphExecutor
from tests.known import Example
from tests.op_examples import EXAMPLES, admitted, program_of
from tools.op_table import GROUPS

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/ops.md"
_HEAD = """# Ops

Generated from the vocabulary by `python -m tools.op_reference`; each example was run by the native executor. Rules, cases that are left open and their
sources are in [semantics](semantics.md); a program is put together as [programs](programs.md) shows.
"""
_WORDS = {"F64": 0, "C64": 1, "I64": 2}


def markdown() -> str:
    """The page."""
    return "\n".join([_HEAD, *(line for group, members in GROUPS.items() for line in _group(group, members))])


def _group(group: str, members: tuple[type[Op], ...]) -> Iterator[str]:
    yield f"## {group.capitalize()}\n"
    for op in members:
        yield f"### {op.__name__}\n"
        yield " ".join((op.__doc__ or "").partition("\n\n")[0].split()) + "\n"
        attributes = ", ".join(f"`{f.name}`: {f.type}" for f in dataclasses.fields(op))
        dtypes = " ".join(d.name for d in DType if d in op.dtypes)
        yield f"Dtypes: {dtypes}.{f' Attributes: {attributes}.' if attributes else ''}\n"
        yield from _example(op)


def _example(op: type[Op]) -> Iterator[str]:
    """The smallest example of the tests, as a program with its results."""
    if op not in EXAMPLES:
        return
    dtype = min(admitted(op), key=lambda d: _WORDS.get(d.name, 9))
    small = min((_cut(example) for example in EXAMPLES[op](op, dtype)), key=_size)
    program, arrays = program_of([small])
    results = GraphExecutor().eval_exec_ir(compile_std_to_exec(program), arrays)
    yield f"```text\n{print_program(program).rstrip()}"
    for name, values in (("input", arrays), ("output", results)):
        yield from (f"{name} {n}: {_shown(array)}" for n, array in enumerate(values))
    yield "```\n"


def _cut(example: Example) -> Example:
    """Three ordinary elements of a long line of them."""
    if type(example.op) not in ELEMENTWISE:
        return example
    return dataclasses.replace(example, operands=tuple(a[-3:] if np.ndim(a) == 1 else a for a in example.operands))


def _size(example: Example) -> tuple[bool, int]:
    """Examples of a few elements first, empty ones and scalars last."""
    sizes = [np.size(a) for a in example.operands]
    return min(sizes, default=2) < 2, sum(sizes)


def _shown(array: Any) -> str:
    return " ".join(np.array2string(np.asarray(array), precision=6, max_line_width=100, threshold=60).split())


if __name__ == "__main__":
    PAGE.write_text(markdown(), "utf-8")
