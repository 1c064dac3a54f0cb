"""Checking one program, StableHLO module or JAX function on executors: what `check` does, on the command line and from Python."""

from fuzz.checking.checker import Checker, Result
from fuzz.checking.judged import Checked, Judged, check
from fuzz.checking.subject import Subject

__all__ = ["Checked", "Checker", "Judged", "Result", "Subject", "check"]
