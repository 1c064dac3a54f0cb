"""The programs in the pages of docs/findings/, from the corpus.

`python -m tools.finding_pages` writes, between `<!-- tests/corpus/NAME.toml -->` and `<!-- end -->`, the program of that case,
its inputs and its StableHLO. The rest of a page is written by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from fuzz.findings.corpus import ModuleCase, ReadModule, load
from oracle.peers.modules import module_or_reason
from tenferro_ref.program import print_program

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "findings"
#: Elements of an input that a page shows.
_READ = 100
_PART = re.compile(r"(<!-- (tests/corpus/[\w-]+\.toml) -->\n).*?(<!-- end -->)", re.S)


def generated(path: Path) -> str:
    """Program, inputs and StableHLO of one case, in Markdown."""
    case = load(path).case
    if isinstance(case, ModuleCase | ReadModule):
        names = re.findall(r"(%\w+): ", case.stablehlo.partition(")")[0])
        values = f"{_values(names, case.inputs)}:\n\n" if case.inputs else ""
        return f"{values}{_block(case.stablehlo)}"
    names = [f"%{slot}" for slot in case.program.input_slots]
    values = f"{_values(names, case.inputs)}. " if names else ""
    return f"{_block(print_program(case.program))}\n{values}As StableHLO:\n\n{_block(module_or_reason(case))}"


def _values(names: list[str], inputs: tuple[np.ndarray, ...]) -> str:
    values = (f"`{name}` = {_shown(array)}" for name, array in zip(names, inputs, strict=True))
    return f"with {'; '.join(values)}"


def _shown(array: np.ndarray) -> str:
    """The elements; of an array that nobody reads, its shape and its one value, or where the others are."""
    if array.size <= _READ:
        return str(array.tolist())
    shape = " x ".join(map(str, array.shape))
    first = array.flat[0]
    return f"{shape} times {first.item()}" if (array == first).all() else f"{shape} numbers of the file named above"


def _block(text: str) -> str:
    return f"```\n{text.strip()}\n```\n"


def with_programs(page: str) -> str:
    """A page with what is generated in it made again."""
    return _PART.sub(lambda part: f"{part[1]}\n{generated(ROOT / part[2])}\n{part[3]}", page)


def main() -> None:
    """Write all pages."""
    for path in sorted(PAGES.glob("[0-9]*.md")):
        path.write_text(with_programs(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
