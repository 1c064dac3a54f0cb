"""The help of every command, beside an interpreter that imports click alone: 0.4 s are to do on a machine of two cores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

COMMANDS = sorted(json.loads((Path(__file__).parents[1] / "tenferro_ref/interface.json").read_text("utf-8")))


def run(*words: str) -> None:
    subprocess.run([sys.executable, *words], check=True, capture_output=True)


@pytest.mark.benchmark(group="help")
def test_an_interpreter_with_click(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(run, ("-c", "import click"), rounds=5)


@pytest.mark.benchmark(group="help")
@pytest.mark.parametrize("command", COMMANDS)
def test_help(benchmark: BenchmarkFixture, command: str) -> None:
    benchmark.pedantic(run, ("-m", "tenferro_ref", command, "--help"), rounds=5)
