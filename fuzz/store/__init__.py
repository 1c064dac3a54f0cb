"""Findings stores: SQLite files that outlive any crash of what writes to them."""

from fuzz.store.counts import Counts
from fuzz.store.database import MEMORY, Lock, is_database
from fuzz.store.model import STATUSES, Batch, Disagreement, Group, Mark, Plan, StoredFinding, Stream, digest
from fuzz.store.store import Store

__all__ = [
    "MEMORY",
    "STATUSES",
    "Batch",
    "Counts",
    "Disagreement",
    "Group",
    "Lock",
    "Mark",
    "Plan",
    "Store",
    "StoredFinding",
    "Stream",
    "digest",
    "is_database",
]
