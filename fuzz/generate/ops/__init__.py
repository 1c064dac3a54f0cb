"""The rows of `STRATEGY`, one file a group of ops.

This is the one place that imports all of them, and with that fills the table: who reads it imports it from here. The order of
the imports does not matter.
"""

from fuzz.generate.ops import contractions, elementwise, extensions, indexing, structural
from fuzz.generate.table import NEEDS_AXES, STRATEGY, usable

__all__ = [
    "NEEDS_AXES",
    "STRATEGY",
    "contractions",
    "elementwise",
    "extensions",
    "indexing",
    "structural",
    "usable",
]
