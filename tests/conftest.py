"""Hypothesis for the whole run: the profile, and one seed a run, shown in the header, from which each test has its own."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings
from hypothesis import seed as seeded

from oracle.peers import Pool
from tenferro_ref.children import EXTRA_VARIABLE
from tenferro_ref.errors import TenferroError
from tenferro_ref.pjrt import Client, load_plugin
from tests import profiles
from tests.fake_plugin.build import build_fake_plugin, c_compiler
from tests.plugins import CPU_PLUGINS, plugin_or_skip

#: Workers of pytest-xdist inherit the controller's seed here.
_SEED = "TENFERRO_TEST_SEED"

profiles.register()
#: What tells the fake plugin, in processes that are given few variables, how to misbehave.
os.environ[EXTRA_VARIABLE] = "FAKE_PJRT_DELAY,FAKE_PJRT_MODE,FAKE_PJRT_ONCE,FAKE_PJRT_TRIGGER"


def _run_seed(config: pytest.Config) -> str:
    given = config.getoption("--hypothesis-seed", None)
    return (
        str(given) if given is not None else os.environ.setdefault(_SEED, str(random.SystemRandom().randrange(2**32)))
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half as many again as there are cores: many tests wait, for a process to end or for a time limit."""
    cores = len(os.sched_getaffinity(0))
    return cores + cores // 2


def pytest_configure(config: pytest.Config) -> None:
    _run_seed(config)
    name = config.getoption("--hypothesis-profile", None)
    name = name or os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev")
    try:
        profiles.load(name, os.environ.get(profiles.EXAMPLES, ""))
    except TenferroError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = _run_seed(config)
    shared = os.environ.get(profiles.EXAMPLES)
    return [
        f"hypothesis seed: {seed} (profile {settings.get_current_profile_name()}; repeat with --hypothesis-seed={seed})",
        *([f"hypothesis examples: those of {shared}, too"] if shared else []),
    ]


def pytest_runtest_setup(item: pytest.Item) -> None:
    # a seed for each test rather than the global one, which would keep failing examples of earlier runs from being replayed
    test = getattr(item, "function", None)
    if test is not None and is_hypothesis_test(test):
        seeded(f"{_run_seed(item.config)} {item.nodeid}")(test)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ.pop(_SEED, None)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """For searches that a test begins itself: follows from the seed of the run."""
    return random.Random(f"{_run_seed(request.config)} {request.node.nodeid}")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Makes executors. A worker process that is left to the garbage collector fails some later test, so it is closed."""
    with closing(Pool()) as made:
        yield made


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin that misbehaves on demand, built once."""
    if c_compiler() is None:
        pytest.skip("no C compiler to build the fake plugin with")
    return build_fake_plugin(tmp_path_factory.mktemp("fake_plugin"))


@pytest.fixture(scope="session", params=CPU_PLUGINS)
def xla_client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of each installed CPU plugin."""
    with Client(load_plugin(plugin_or_skip(request.param))) as client:
        yield client
