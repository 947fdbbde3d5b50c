"""Partitions of a table by values in the names of directories, as Hive and Spark have them: `minute=5/what=a%2Fb`.

What a query writes partitioned has beside its partitions the directory `_closed`. Its documents have the attributes of
the result, no tuples, and what each slice closes; Spark and others pass them over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from urllib.parse import unquote

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null, and for the empty string, which Hive does not tell apart from it."""

CLOSED = "_closed"
"""The directory of the documents that say what is closed."""

CLOSED_SUFFIX = ".closed"
"""The suffix of these documents, which are Parquet: another than that of those that have tuples."""

_PARTITION = re.compile(r"[^/]+=[^/]+")
_SLICE = re.compile(r"slice-(\d+)")


def is_partition(name: str) -> bool:
    """Whether a directory is so called as those of partitions are."""
    return _PARTITION.fullmatch(name) is not None


def partition_texts(path: str) -> Mapping[str, str | None]:
    """What a document's directories say of its tuples: by the names of attributes, the texts of values, None for null.

    >>> partition_texts("out/hour=7/what=a%2Fb/slice-000000000.parquet")
    {'hour': '7', 'what': 'a/b'}
    """
    found: dict[str, str | None] = {}
    for part in PurePath(path).parent.parts:
        name, equals, text = part.partition("=")
        if equals and name and text:
            found[unquote(name)] = None if text == NULL else unquote(text)
    return found


def partitioned_documents(directory: Path) -> Iterator[Path]:
    """The documents in the partitions of a directory, at any depth, and those that say what is closed."""
    for entry in directory.iterdir():
        if is_partition(entry.name) and entry.is_dir():
            yield from (inner for inner in entry.iterdir() if not inner.is_dir())
            yield from partitioned_documents(entry)
        elif entry.name == CLOSED and entry.is_dir():
            yield from entry.iterdir()


def in_order_of_slices(path: str) -> tuple[int, bool, str]:
    """The order of documents: by slice, each slice's closings behind all its tuples; others by name, before them."""
    name = PurePath(path)
    found = _SLICE.match(name.name)
    return int(found[1]) if found else -1, name.parent.name == CLOSED, path
