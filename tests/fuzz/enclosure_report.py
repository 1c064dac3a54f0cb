"""How sharp enclosures are on generated programs: `python -m tests.fuzz.enclosure_report {share,faults}`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence

from fuzz.generate.batches import generate
from fuzz.generate.config import Config
from oracle.case import Case
from oracle.enclosure import MODELS, Model, enclose
from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import Op
from tools.faults import FAULTS, detect, has

INEXACT_NAMES = ("F32", "F64", "C32", "C64")
#: Programs that the generator is asked for at once.
BATCH = 64


def share(programs: int, model: Model, seed: int) -> None:
    """A table of how many elements of the outputs of generated programs, as campaigns draw them by default, are decided."""
    elements: Counter[str] = Counter()
    decided: Counter[str] = Counter()
    refused = 0
    for first in range(0, programs, BATCH):
        for case in generate(seed, first // BATCH, min(BATCH, programs - first)):
            try:
                outputs = enclose(case.program, case.inputs, model)
            except TenferroError:
                refused += 1
                continue
            for e in outputs:
                for name in (e.dtype.name, "all"):
                    elements[name] += e.size
                    decided[name] += int(e.decided.sum())
    print(f"| {model.name}, seed {seed}: {programs} programs, {refused} without enclosure | elements | decided |")
    print("|---|---|---|")
    for name, count in sorted(elements.items()):
        print(f"| {name} | {count} | {decided[name] / max(count, 1):.2%} |", flush=True)


def cases_with(op: type[Op], programs: int, dtype: DType) -> Iterator[Case]:
    """Generated programs of a campaign that have `op`, of a few instructions."""
    config = Config(dtypes=(dtype, DType.I32, DType.Bool), max_instructions=6, weights=((op.__name__, 20.0),))
    batch = 0
    while programs > 0:
        for case in generate(9, batch, 16, config):
            if programs > 0 and has(case, op, dtype):
                programs -= 1
                yield case
        batch += 1


def faults(programs: int, model: Model, dtypes: Sequence[DType]) -> None:
    """A table of the detection of every seeded fault: programs that show it, of those that have the op.

    Marked are those that are seen within 200 programs with a chance of less than 99 % (`Detection.within`).
    """
    print(f"| {model.name}, ULP | {' | '.join(map(str, dtypes))} |\n|---|{'---|' * len(dtypes)}", flush=True)
    for op, sizes in FAULTS.items():
        found = [detect(cases_with(op, programs, dtype), op, dtype, sizes, model) for dtype in dtypes]
        for ulps in sizes:
            cells = [f"{d[ulps].seen}/{d[ulps].programs}{'' if d[ulps].within(200) >= 0.99 else ' (!)'}" for d in found]
            print(f"| {op.__name__} {ulps} | {' | '.join(cells)} |", flush=True)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.enclosure_report", description=__doc__)
    parser.add_argument("what", choices=("share", "faults"))
    parser.add_argument("--programs", type=int, default=200, help="share: of all; faults: of each op and dtype")
    parser.add_argument("--model", choices=tuple(MODELS), action="append", help="default: numpy and xla")
    parser.add_argument("--dtype", choices=INEXACT_NAMES, action="append", help="faults: default: all")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    for model in (MODELS[m] for m in args.model or ("numpy", "xla")):
        if args.what == "share":
            share(args.programs, model, args.seed)
        else:
            faults(args.programs, model, [DType[d] for d in args.dtype or INEXACT_NAMES])


if __name__ == "__main__":
    main()
