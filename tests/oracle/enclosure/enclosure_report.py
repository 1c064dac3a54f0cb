"""How sound and how tight enclosures are: `python -m tests.oracle.enclosure.enclosure_report {soundness,tightness}`.

`soundness --runs 100000` is the long form of test_enclosure_soundness.py; it exits 1 at an escape.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from enclosure_programs import chain, complex_program, indexed_program, random_program
from perturbed import Perturbed

from oracle.compare import compare
from oracle.enclosure import MODELS, Enclosure, Model, enclose
from oracle.ulp import spacing_at
from tenferro_ref.program import GraphProgram, print_program

Made = tuple[GraphProgram, list[np.ndarray]]
KINDS: dict[str, Callable[[np.random.Generator], Made]] = {
    "real": partial(random_program, length=6),
    "chains": chain,
    "complex": partial(complex_program, length=6),
    "indices": indexed_program,
}


def with_all_slots(program: GraphProgram) -> GraphProgram:
    return replace(program, output_slots=tuple(s for ins in program.instructions for s in ins.output_slots))


def escapes(
    program: GraphProgram, inputs: list[np.ndarray], taken: Model, allowed: Model, runs: int, seed: int
) -> tuple[int, str]:
    """How many runs of a platform `taken` leave the enclosure under `allowed`, and the first in words."""
    e = enclose(program, inputs, allowed)
    found, first = 0, ""
    for run in range(runs):
        outputs = Perturbed(taken, np.random.default_rng((seed, run))).run(program, inputs)
        if all(x.shape == o.shape and x.contains(o).all() for x, o in zip(e, outputs, strict=True)):
            continue
        found += 1
        c = compare(e, None, outputs, outputs)
        where = f"{c.worst_output}{c.worst_index}"
        first = first or f"{print_program(program)}{inputs}\n{where}: {c.observed} not in {c.expected}"
    return found, first


def soundness(runs: int, seed: int) -> int:
    """Hostile runs, four a program, over all kinds of programs and all models; prints escapes."""
    done = found = 0
    while done < runs:
        for number, (kind, make) in enumerate(KINDS.items()):
            for model in MODELS.values():
                program, inputs = make(np.random.default_rng((seed, number)))
                escaped, first = escapes(with_all_slots(program), inputs, model, model, 4, seed)
                done, found = done + 4, found + escaped
                if first:
                    print(f"{kind}, {model.name}, seed {seed}: {first}", flush=True)
        seed += 1
        if seed % 200 == 0:
            print(f"{done} runs, {found} escapes", file=sys.stderr, flush=True)
    print(f"{done} runs, {found} escapes")
    return 1 if found else 0


def _median(values: list[float]) -> float:
    """NaN where nothing was seen."""
    return float(np.median(values)) if values else float("nan")


@dataclass
class Tightness:
    """Of enclosures beside hostile runs: widths over the observed spread, widths in ULPs, shares of what is decided."""

    elements: int = 0
    decided: int = 0
    ratios: list[float] = field(default_factory=list)
    ulps: list[float] = field(default_factory=list)

    def add(self, e: Enclosure, runs: list[np.ndarray]) -> None:
        """One output and what runs gave for it."""
        self.elements += e.size
        self.decided += int(e.decided.sum())
        for k, part in enumerate(e.parts if e.dtype.is_float or e.dtype.is_complex else ()):
            seen = np.stack([(r.real, r.imag)[k] for r in runs]).astype(float)
            with np.errstate(invalid="ignore", over="ignore"):
                spread, width = seen.max(0) - seen.min(0), part.hi - part.lo
                size = np.maximum(np.abs(part.lo), np.abs(part.hi))
            bounded = part.decided & ~part.nan & np.isfinite(width)
            self.ulps += (width / spacing_at(np.where(bounded, size, 1), part.dtype.numpy))[bounded].tolist()
            moving = bounded & (spread > 0)
            self.ratios += (width / np.where(moving, spread, 1))[moving].tolist()

    def __str__(self) -> str:
        return (
            f"{self.decided} of {self.elements} elements decided ({self.decided / max(self.elements, 1):.1%}), "
            f"median width {_median(self.ulps):.1f} ULP, {_median(self.ratios):.2f} times the observed spread"
        )


def tightness(kind: str, model: Model, programs: int, runs: int = 32, seed: int = 7) -> Tightness:
    result = Tightness()
    for number in range(programs):
        program, inputs = KINDS[kind](np.random.default_rng((seed, number)))
        outputs = [Perturbed(model, np.random.default_rng((number, r))).run(program, inputs) for r in range(runs)]
        for k, e in enumerate(enclose(program, inputs, model)):
            result.add(e, [o[k] for o in outputs])
    return result


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.enclosure.enclosure_report", description=__doc__)
    parser.add_argument("what", choices=("soundness", "tightness"))
    parser.add_argument("--runs", type=int, default=1200, help="soundness: hostile runs")
    parser.add_argument("--programs", type=int, default=200, help="tightness: of each kind")
    parser.add_argument("--model", choices=tuple(MODELS), action="append", help="default: numpy and xla")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    if args.what == "soundness":
        return soundness(args.runs, args.seed)
    for model in (MODELS[m] for m in args.model or ("numpy", "xla")):
        for kind in KINDS:
            print(f"{model.name:6} {kind:8} {tightness(kind, model, args.programs)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
