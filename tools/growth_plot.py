"""Draws what `benchmarks/test_growth.py` measured: `python -m tools.growth_plot growth.json docs/measurements/growth.svg`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure


def draw(measured: Path, out: Path) -> None:
    """One log-log panel for each thing that grows, one line a stage."""
    runs = json.loads(measured.read_text())["benchmarks"]
    panels, names = [run["extra_info"]["seconds"] for run in runs], [run["params"]["what"] for run in runs]
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tenferro-ref", "font.size": 8.0}):
        figure = Figure(figsize=(8, 3.4), layout="constrained")
        FigureCanvasSVG(figure)
        for axes, name, stages in zip(figure.subplots(1, len(panels)), names, panels, strict=True):
            for stage, took in stages.items():
                axes.loglog([int(size) for size in took], [1e3 * s for s in took.values()], marker=".", label=stage)
            axes.set(xlabel=name, ylabel="milliseconds of processor time")
            axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(out, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
