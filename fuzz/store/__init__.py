"""Findings stores: SQLite files that outlive any crash of what writes to them."""

from fuzz.store.database import MEMORY, Lock, is_database
from fuzz.store.store import STATUSES, Doubt, Found, Job, Kin, Mark, Plan, Store, Stream, digest, unpack

__all__ = [
    "MEMORY",
    "STATUSES",
    "Doubt",
    "Found",
    "Job",
    "Kin",
    "Lock",
    "Mark",
    "Plan",
    "Store",
    "Stream",
    "digest",
    "is_database",
    "unpack",
]
