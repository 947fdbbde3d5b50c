"""Attributes that are arrays: all the leaves at a path, in document order, instead of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from sources.xml.options.arrow_text import characters

pc: Any = pyarrow.compute

SEPARATOR = "\x1f"
"""Between the texts of an array's elements: a character that no XML document can hold."""

LACKING = "\x1e"
"""The text of an element that is null: another such character."""


def keep_places(texts: list[str | None], sibling_arrays: Sequence[int], had: Sequence[Sequence[int]]) -> None:
    """Put nulls into arrays whose leaves are in the same elements, for those elements that lack the leaf.

    Where such an element has a leaf several times there are no places, and an array without any leaf is null.

    Args:
        texts: Of all attributes, which are changed.
        sibling_arrays: The attributes that are the arrays.
        had: For each of the elements, how many leaves of each array it has.
    """
    places = [leaves for leaves in had if any(leaves)]
    if any(max(leaves) > 1 for leaves in places):
        return
    for array, index in enumerate(sibling_arrays):
        leaves = iter((texts[index] or "").split(SEPARATOR))
        if texts[index] is not None:
            texts[index] = SEPARATOR.join(next(leaves) if place[array] else LACKING for place in places)


def read_array(
    texts: Any, read: Callable[[Any], tuple[pa.Array[Any], Mapping[int, str]]]
) -> tuple[pa.Array[Any], dict[int, str]]:
    """Arrays from texts of several elements each, which `read` reads; and by row the reason why one cannot be read."""
    parts = pc.split_pattern(texts, SEPARATOR)
    flat = parts.flatten()
    if (characters(flat) == ord(LACKING)).any():
        flat = pc.if_else(pc.equal(flat, LACKING), pa.scalar(None, pa.string()), flat)
    values, wrong = read(flat)
    rows = pc.list_parent_indices(parts)
    reasons = {rows[element].as_py(): reason for element, reason in wrong.items()}
    kind = pa.list_(pa.field("element", values.type))
    return pa.ListArray.from_arrays(parts.offsets, values, type=kind, mask=pc.is_null(parts)), reasons
