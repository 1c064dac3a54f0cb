"""StableHLO modules with operations that programs lack."""

from fuzz.generate.modules.cases import module_case, readable, with_modules
from fuzz.generate.modules.statements import STATEMENTS

__all__ = ["STATEMENTS", "module_case", "readable", "with_modules"]
