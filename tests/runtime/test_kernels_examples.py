"""Every kernel on the examples of its op: column-major arrays of the rule's types, the results and errors that are known."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import TenferroError
from tenferro_ref.ops import DEFAULT_POLICY, OPS, Op
from tenferro_ref.runtime import KERNELS
from tests.build import apply, same
from tests.op_examples import PAIRS, examples


@pytest.mark.parametrize(("op", "dtype"), PAIRS, ids=[f"{op.__name__}-{dtype.name}" for op, dtype in PAIRS])
def test_kernels_give_what_is_due(op: type[Op], dtype: DType) -> None:
    for example in examples(op, dtype):
        operands = tuple(map(np.asarray, example.operands))
        got = apply(example.op, *operands, policy=example.policy)
        assert example.result is None or same(got, example.result), (example.op, operands, got)
        if example.error:
            with pytest.raises(TenferroError) as caught:
                apply(example.op, *operands)
            assert re.match(example.error, f"{caught.value.kind}: {caught.value}")
            assert caught.value.facts()["op"] == op.__name__
        elif example.result is not None and example.policy is not DEFAULT_POLICY:
            assert same(apply(example.op, *operands), example.result)


def test_every_kernel_is_asked() -> None:
    assert {op for op, _ in PAIRS} == {op for op in OPS if op in KERNELS}
