"""Attributes that are arrays: all the leaves at a path, in document order, instead of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute

from punct_ns.domain import Domain

pc: Any = pyarrow.compute

SEPARATOR = "\x1f"
"""Between the texts of an array's elements: a character that no XML document can hold."""

_ARRAY = re.compile(r"(?i)array\s*<\s*(.+?)\s*>")


def element_of(domain: Domain) -> Domain | None:
    """The domain of the elements; None of what is no array, or one of what cannot be read from a text.

    >>> element_of(Domain("ARRAY<INT>")), element_of(Domain("ARRAY<ARRAY<INT>>")), element_of(Domain("INT"))
    (Domain(type='INT', nullable=True, low=None, high=None), None, None)
    """
    found = _ARRAY.fullmatch(domain.type)
    element = Domain(found[1]) if found else None
    return None if element is None or element.opaque else element


def read_array(
    texts: Any, read: Callable[[Any], tuple[pa.Array[Any], Mapping[int, str]]]
) -> tuple[pa.Array[Any], dict[int, str]]:
    """Arrays from texts of several elements each, which `read` reads; and by row the reason why one cannot be read."""
    parts = pc.split_pattern(texts, SEPARATOR)
    values, wrong = read(parts.flatten())
    rows = pc.list_parent_indices(parts)
    reasons = {rows[element].as_py(): reason for element, reason in wrong.items()}
    kind = pa.list_(pa.field("element", values.type))
    return pa.ListArray.from_arrays(parts.offsets, values, type=kind, mask=pc.is_null(parts)), reasons
