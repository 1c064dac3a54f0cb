"""Invalid programs: each breaks one rule and comes with the error that it must raise."""

from fuzz.generate.faults.invalid import WHOLE, decode_invalid, faults, invalid, invalid_cases, kinds, simplest_of

from fuzz.generate.faults import indexing as indexing  # isort: skip  # adds its faults to the list

__all__ = ["WHOLE", "decode_invalid", "faults", "invalid", "invalid_cases", "kinds", "simplest_of"]
