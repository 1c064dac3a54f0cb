"""Hypothesis strategies that build valid programs by construction, and invalid ones with the error they must raise.

`graphs` and `cases` draw a header and a list of genes, one gene a step of growth, and `decode` makes a program of any
such bytes. Shrinking the list makes programs shorter, shrinking a byte makes one choice simpler.
"""

from __future__ import annotations

from hypothesis import strategies as st

from fuzz.generate.anchors import anchors
from fuzz.generate.config import DEFAULT, Config, default_ops
from fuzz.generate.decode import GENE, anchored, decode, grow
from fuzz.generate.growth import HEADER
from fuzz.generate.ops.extensions import STRATEGY
from oracle.case import Case
from tenferro_ref.program import GraphProgram


def _genome(config: Config) -> tuple[st.SearchStrategy[bytes], st.SearchStrategy[list[bytes]]]:
    gene = st.binary(min_size=GENE, max_size=GENE)
    genes = st.lists(gene, min_size=config.min_instructions, max_size=config.max_instructions)
    return st.binary(min_size=HEADER, max_size=HEADER), genes


def cases(config: Config = DEFAULT) -> st.SearchStrategy[Case]:
    """Valid programs with values for their inputs."""
    return st.builds(decode, st.just(config), *_genome(config))


def graphs(config: Config = DEFAULT) -> st.SearchStrategy[GraphProgram]:
    """Valid programs."""
    return st.builds(lambda header, genes: grow(config, header, genes).graph(), *_genome(config))


__all__ = [
    "DEFAULT",
    "GENE",
    "HEADER",
    "STRATEGY",
    "Config",
    "anchored",
    "anchors",
    "cases",
    "decode",
    "default_ops",
    "graphs",
]
