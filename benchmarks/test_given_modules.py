"""What it costs to give an executor a module as it is, beside the program that it is read as, written again; compile included."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fuzz.checking.subject import given_subject
from oracle.case import Case
from oracle.peers import Pool, attempt
from tests.libraries import module_or_skip
from tests.plugins import plugin_or_skip

MODULE = """module {{
  func.func @main(%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32> {{
    %c = stablehlo.constant dense<{constant}> : tensor<2x8x8x4xf32>
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {{pad = [[1, 1], [1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
      : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
    %1 = stablehlo.add %0, %c : tensor<2x8x8x4xf32>
    %2 = stablehlo.tanh %1 : tensor<2x8x8x4xf32>
    return %2 : tensor<2x8x8x4xf32>
  }}
}}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    plugin_or_skip("lam115")
    module_or_skip("jaxlib")
    made = Pool()
    yield made
    made.close()


@pytest.mark.parametrize("way", ["given", "written"])
def test_a_module(benchmark: BenchmarkFixture, pool: Pool, way: str) -> None:
    executor, numbers = pool.make("pjrt:lam115"), count()
    arrays = [np.ones((2, 8, 8, 3), np.float32), np.ones((3, 3, 3, 4), np.float32)]

    def fresh() -> tuple[tuple[Case], dict[str, object]]:
        """A module that was not compiled yet."""
        source = pool.reader.source(MODULE.format(constant=f"{next(numbers)}.5"), "m")
        case = given_subject(source, arrays, pool.reader).case
        assert case is not None
        return (case if way == "given" else case.written,), {}

    benchmark.pedantic(lambda case: attempt(executor, case), setup=fresh, rounds=20)
