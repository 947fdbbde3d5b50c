"""Dead letters: tuples that were set aside, each with its element as it stands in its document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sources.xml.parser.originals import Original, originals
from sources.xml.spark.staged_rows import StagedRange


def with_elements(letters: Sequence[dict[str, Any]], ranges: Sequence[StagedRange]) -> list[dict[str, Any]]:
    """Dead letters of a source's tuples, by their positions, each with its element in place of its values.

    Args:
        letters: Each has a `_position`, and values as its `raw`.
        ranges: Where the tuples came from.
    """
    found: dict[int, Original] = {}
    for range_ in ranges:
        if range_.first_position is not None and range_.last_position is not None:
            inside = range(range_.first_position, range_.last_position + 1)
            positions = [letter["_position"] for letter in letters if letter["_position"] in inside]
            found |= originals(range_.part, positions) if positions else {}
    return [_with_element(letter, found.get(letter["_position"])) for letter in letters]


def _with_element(letter: dict[str, Any], original: Original | None) -> dict[str, Any]:
    if original is None:
        return letter
    where = {"document": original.document, "line": original.line, "column": original.column}
    return {**letter, **where, "raw": original.raw, "within": original.within}
