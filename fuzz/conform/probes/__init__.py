"""Probes: small checks of the PJRT C API, each a function of a `Session` that says nothing where all is well."""

from fuzz.conform.probes import (  # the order of a report
    donation,
    errors,
    events,
    loading,
    memory,
    programs,
    serialisation,
    transfers,
    versions,
)  # isort: skip
from fuzz.conform.probes.session import Fails, Lacks, Session
from fuzz.conform.probes.table import PROBES

__all__ = ["PROBES", "Fails", "Lacks", "Session"]
