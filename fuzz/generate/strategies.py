"""Hypothesis strategies: valid cases and programs, invalid ones, arrays.

They draw the bytes that `decode` reads: shrinking the list of genes makes programs shorter, shrinking a byte makes one choice
simpler.
"""

from __future__ import annotations

from hypothesis import strategies as st

from fuzz.generate.choices import Choices
from fuzz.generate.config import DEFAULT, Config, Regime
from fuzz.generate.decode import GENE, decode
from fuzz.generate.faults import LONGEST, decode_invalid
from fuzz.generate.header import HEADER
from fuzz.generate.values.recipes import array_of, draw_recipe
from oracle.case import Case
from tenferro_ref.dtype import DType
from tenferro_ref.program import GraphProgram
from tenferro_ref.tensor import Array

_HEADER = st.binary(min_size=HEADER, max_size=HEADER)
_GENE = st.binary(min_size=GENE, max_size=GENE)


def cases(config: Config = DEFAULT) -> st.SearchStrategy[Case]:
    """Valid programs with values for their inputs."""
    genes = st.lists(_GENE, min_size=config.min_instructions, max_size=config.max_instructions)
    return st.builds(decode, st.just(config), _HEADER, genes)


def graphs(config: Config = DEFAULT) -> st.SearchStrategy[GraphProgram]:
    """Valid programs."""
    return cases(config).map(lambda case: case.program)


def invalid_cases(config: Config = DEFAULT, kind: str | None = None) -> st.SearchStrategy[Case]:
    """Invalid programs, of any kind of error or of one (`fuzz.generate.faults.kinds`)."""
    least = config.min_instructions
    genes = st.lists(_GENE, min_size=least, max_size=max(LONGEST, least))
    return st.builds(decode_invalid, st.just(config), st.just(kind), _HEADER, genes, _GENE)


def arrays(dtype: DType, shape: tuple[int, ...], regime: Regime = "hostile") -> st.SearchStrategy[Array]:
    """Arrays of a dtype and shape, column-major; they shrink towards all ones, then zeros and small integers."""
    recipes = st.binary(min_size=12, max_size=12).map(lambda data: draw_recipe(Choices(data), dtype, regime))
    return recipes.map(lambda recipe: array_of(recipe, dtype, shape))
