"""Invalid programs: each breaks one rule and comes with the error that it must raise.

`fault` defines what a fault is; `operands`, `axes`, `arguments`, `graph` and `indexing` declare them by group, `table` joins
them; `decode` makes an invalid case of any bytes, `batches` puts them into the batches of a campaign.
"""

from fuzz.generate.faults.decode import LONGEST, decode_fault, decode_invalid, simplest_of
from fuzz.generate.faults.table import faults, kinds

__all__ = ["LONGEST", "decode_fault", "decode_invalid", "faults", "kinds", "simplest_of"]
