"""Exactness of a result: whether tuples below it were purged by age, and how its documents say so."""

from __future__ import annotations

from enum import Enum

INEXACT = b' exact="false"'
"""What the root's start tag says of a result that is not exact any more."""


class Exactness(Enum):
    """Whether a result is exact; kept tuples may have been overdue, in the slice in hand for the first time."""

    EXACT = "exact"
    LOST = "lost"
    INEXACT = "inexact"
