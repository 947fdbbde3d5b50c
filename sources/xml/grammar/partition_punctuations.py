"""Punctuations of a partition that close the same tuples of all: those that fix what the partitions are made by.

Where the tuples of one auction come by one partition, none of another partition is of it. So a punctuation that has one
auction, or several, for its pattern is true of every partition as soon as its own has said it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from punct_ns.scheme import Term

pc: Any = pyarrow.compute

_OF_MANY = r"^(\*$|[\[(])"
"""What the text of a wildcard or of a range begins with; that of a constant which begins so is quoted."""


def of_own_values(said: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Those punctuations of a staged range, as pattern texts, that restrict each key to a constant or a list.

    Args:
        said: The range's punctuations.
        keys: The attributes that the partitions are made by.
    """
    for key in keys:
        of_many = pc.match_substring_regex(pc.cast(said[key], pa.string()), _OF_MANY)
        said = said.filter(pc.invert(pc.fill_null(of_many, True)))
    return said


def said_of_partitions(said: Mapping[str, int], keys: Sequence[str]) -> dict[str, int]:
    """Of the counts of punctuations by their schemes (`Findings.said`) those that may fix the keys.

    >>> said_of_partitions({"auction, ts prefix": 2, "ts prefix": 9}, ["auction"])
    {'auction, ts prefix': 2}
    """
    each = {str(Term(key, "each")) for key in keys}
    return {scheme: count for scheme, count in said.items() if each <= set(scheme.split(", "))}
