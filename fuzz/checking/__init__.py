"""Checking one program, StableHLO module or JAX function on executors: what `tenferro-ref check` does, for Python too."""

from fuzz.checking.judged import Checked, Judged, check
from fuzz.checking.subject import Subject

__all__ = ["Checked", "Judged", "Subject", "check"]
