"""What the oracle reads of configurations and shape expressions is what the engine reads."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import configurations
from oracle.extents import extents
from tenferro_ref.dims import DIM_KINDS, DimExpr, DimOp, InputDim, evaluate
from tenferro_ref.errors import InvalidArgument
from tenferro_ref.extensions import einsum, fft, linalg
from tenferro_ref.ops import Extension


@pytest.mark.parametrize("name", linalg.OPS)
def test_flags_are_those_of_the_engine_with_and_without_defaults(name: str) -> None:
    defaults = linalg.OPS[name].config
    other: dict[str, Any] = {
        key: linalg.OPS[name].gauge if key == "gauge" else not value if isinstance(value, bool) else 3 if key in ("start", "end") else 0.5
        for key, value in defaults.items()
    }  # fmt: skip
    for config in ({}, other):
        op = Extension.of(linalg.FAMILY, name, config)
        assert configurations.flags(op) == linalg.config_of(op)


def test_a_derivatives_epsilon_is_no_flag() -> None:
    op = Extension.of(linalg.FAMILY, "Svd", {"derivative_eps": 1e-9})
    assert configurations.flags(op) == {"gauge": "Raw"}
    assert configurations.derivative_eps(op) == linalg.derivative_eps(op) == 1e-9
    plain = Extension.of(linalg.FAMILY, "Svd", {})
    assert configurations.derivative_eps(plain) == linalg.derivative_eps(plain) == configurations.DERIVATIVE_EPS


@pytest.mark.parametrize(
    "text", ["ij,jk->ik", " ii -> i", ",->", "Ba,aB->", "λa,aβ->βλ", "zλyb,b->λzy", f"{ascii_uppercase}->A"]
)
def test_an_equation_is_that_of_the_engine_up_to_the_names_of_labels(text: str) -> None:
    op = Extension.of(einsum.FAMILY, "einsum", {"equation": text})
    ours, theirs = configurations.equation(op), einsum.parse(op)
    terms = "".join((*ours.inputs, ours.output)), "".join((*theirs.inputs, theirs.output))
    names = dict(zip(*terms, strict=True))
    assert len(names) == len(set(names.values())) == len({*text} - {*" ,->"})
    assert "".join(names[label] for label in terms[0]) == terms[1]
    assert [*map(len, ours.inputs)] == [*map(len, theirs.inputs)]
    assert {names[label] for label in ours.summed} == theirs.summed
    assert "".join(names[label] for label in ours.kept) == theirs.kept


@pytest.mark.parametrize("axis", range(-3, 3))
@pytest.mark.parametrize("norm", fft.NORMS)
def test_a_transform_is_that_of_the_engine(axis: int, norm: str) -> None:
    for config in ({"axis": axis, "norm": norm}, {"axis": axis, "norm": norm, "n": 5}):
        op = Extension.of(fft.FAMILY, "fft", config)
        theirs = fft.transform(op, 3)
        assert configurations.transform(op, 3) == configurations.Transform(theirs.n, theirs.axis, theirs.norm.lower())
    assert configurations.transform(Extension.of(fft.FAMILY, "fft", {}), 3) == configurations.Transform(
        None, 2, "backward"
    )


_DIMS: st.SearchStrategy[DimExpr] = st.recursive(
    st.integers(0, 9) | st.builds(InputDim, st.integers(0, 1), st.integers(0, 1)),
    lambda inner: st.builds(DimOp, st.sampled_from(DIM_KINDS), inner, inner),
    max_leaves=8,
)


@given(_DIMS, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=2))
def test_an_extent_is_that_of_the_engine(expression: DimExpr, shapes: list[tuple[int, int]]) -> None:
    try:
        expected = evaluate(expression, shapes)
    except InvalidArgument:  # no such extent: the oracle is not asked
        return
    assert extents([expression], shapes) == (expected,)
