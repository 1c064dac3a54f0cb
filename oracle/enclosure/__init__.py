"""Enclosures: for each element of each value, the set of results that a correct implementation may produce.

`docs/enclosures.md` has the mathematics. Nothing here shares code with the kernels or the emitter that it judges.
"""

from oracle.enclosure.complexes import COMPLEX
from oracle.enclosure.executor import ENCLOSE, enclose
from oracle.enclosure.model import IEEE, MODELS, NUMPY, XLA, Model
from oracle.enclosure.stacked import enclose_stacked, sets_at_once
from oracle.enclosure.value import Enclosure, joined

__all__ = [
    "COMPLEX",
    "ENCLOSE",
    "IEEE",
    "MODELS",
    "NUMPY",
    "XLA",
    "Enclosure",
    "Model",
    "enclose",
    "enclose_stacked",
    "joined",
    "sets_at_once",
]
