"""Generated programs: valid ones by construction, and invalid ones with the error that they must raise.

In reading order: `config` and `settings` say what programs may contain; `choices` reads decisions from bytes, of which
`header` has those of the whole program; `shapes` are the shapes that are drawn, `values` makes arrays; `growth` is a program
being grown, to which `ops` (by `table`), `motifs` and `anchors` append instructions; `decode` makes a case of any bytes,
`batches` and `input_sets` those of a campaign, `strategies` those of Hypothesis, `faults` invalid ones; `describe` says what a
case contains.
"""

from fuzz.generate.config import CAMPAIGN, DEFAULT, Config

__all__ = ["CAMPAIGN", "DEFAULT", "Config"]
