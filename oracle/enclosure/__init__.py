"""Enclosures: for each element of each value, the set of results that a correct implementation may produce.

`docs/explanation/enclosures.md` has the mathematics. Nothing here shares code with the kernels or the emitter that it judges.
"""

from oracle.enclosure.executor import enclose, enclose_sets, of_set, some_sets
from oracle.enclosure.model import IEEE, MODELS, NUMPY, XLA, Model
from oracle.enclosure.rule import COMPLEX, ENCLOSE
from oracle.enclosure.sets import sets_at_once
from oracle.enclosure.value import Enclosure, Interval, Rectangle, joined

__all__ = [
    "COMPLEX",
    "ENCLOSE",
    "IEEE",
    "MODELS",
    "NUMPY",
    "XLA",
    "Enclosure",
    "Interval",
    "Model",
    "Rectangle",
    "enclose",
    "enclose_sets",
    "joined",
    "of_set",
    "sets_at_once",
    "some_sets",
]
