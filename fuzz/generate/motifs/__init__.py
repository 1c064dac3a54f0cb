"""Motifs: what passes of ours look for and compilers rewrite or get wrong; chance alone makes few of them.

A motif appends several instructions; it is used only if the config has all of its ops, and if there is room for them. This is the
one place that imports all files of motifs, and with that fills the table.
"""

from fuzz.generate.motifs import arithmetic, contractions, corners, decompositions, formulas, structure, windows
from fuzz.generate.motifs.table import GROUPS, MOTIFS, Motif

__all__ = [
    "GROUPS",
    "MOTIFS",
    "Motif",
    "arithmetic",
    "contractions",
    "corners",
    "decompositions",
    "formulas",
    "structure",
    "windows",
]
