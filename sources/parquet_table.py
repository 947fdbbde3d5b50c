"""Punctuated Parquet tables: the footers of their documents, their partitions, and the source that reads them.

`CREATE TABLE hottest USING punctuated_parquet OPTIONS (path 'hottest.parquet')`: the output of another query
`USING parquet` is a source. Its documents are read in the order of their commits; each has its tuples, and after them
the punctuations in its metadata. Columns and schemes are those of the result, unless they are declared.

The partitions of a table have values in the names of directories, as in Hive and Spark: `minute=5/what=a%2Fb`. The
partitioned output of a query has the directory `_closed` beside its partitions. The documents there have the attributes
of the result, no tuples, and the punctuations of each slice; Spark and others skip them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from urllib.parse import unquote

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.object_urls import shown
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.sources.places import Document, is_glob, located, place_of

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The directory value for null, and for the empty string, which Hive does not distinguish from null."""

CLOSED = "_closed"
"""The directory of the documents with punctuations."""

CLOSED_SUFFIX = ".closed"
"""The suffix of these documents, which are Parquet; it differs from that of documents with tuples."""

_PARTITION = re.compile(r"[^/]+=[^/]+")
_SLICE = re.compile(r"slice-(\d+)")


def is_partition(name: str) -> bool:
    """Whether a directory's name is that of a partition."""
    return _PARTITION.fullmatch(name) is not None


def partition_texts(path: str) -> Mapping[str, str | None]:
    """Returns the values in a document's path, as texts by attribute name; None for null.

    >>> partition_texts("out/hour=7/what=a%2Fb/slice-000000000.parquet")
    {'hour': '7', 'what': 'a/b'}
    """
    found: dict[str, str | None] = {}
    for part in PurePath(path).parent.parts:
        name, equals, text = part.partition("=")
        if equals and name and text:
            found[unquote(name)] = None if text == NULL else unquote(text)
    return found


def in_partition(names: Sequence[str]) -> bool:
    """Whether these names of directories lead to a partition of a table, or to its documents with punctuations.

    >>> in_partition(["hour=7", "what=a"]), in_partition(["_closed"]), in_partition(["_closed", "hour=7"])
    (True, True, False)
    """
    *above, last = names
    return all(map(is_partition, above)) and (is_partition(last) or last == CLOSED)


def in_order_of_slices(path: str) -> tuple[int, bool, str]:
    """Returns the sort key of a document: by slice, its punctuations after all its tuples; others first, by name."""
    name = PurePath(path)
    found = _SLICE.match(name.name)
    return int(found[1]) if found else -1, name.parent.name == CLOSED, path


PUNCTUATIONS = b"punctuations"
"""The metadata key for punctuations: a JSON list of them in their notation."""

SCHEMA = b"schema"
"""The metadata key for the attributes of the punctuations, as Spark DDL."""

SCHEMES = b"schemes"
"""The metadata key for the schemes that the result promises, as in the option `schemes`."""

EXACT = b"exact"
"""The metadata key that is `false` once kept tuples were overdue."""

ASIDE, VOID = b"aside", b"void"
"""The metadata keys for rows of a stream that are no items, a JSON list of dead letters, and for the number of ignored
punctuations by the undeclared leaf that they restrict."""


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """The number of a document's items, its attributes and its schemes; the latter are None if they are missing."""

    items: int
    schema: str | None
    schemes: str | None


def parquet_footer(document: Document) -> ParquetFooter | None:
    """Reads the footer of a document; None if it is not Parquet, or incomplete."""
    # XML never needs this import, which would slow down the start of the process that plans slices.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(document.source()) as file:
            metadata = file.schema_arrow.metadata or {}
            items = file.metadata.num_rows + len(json.loads(metadata.get(PUNCTUATIONS, b"[]")))
    except (OSError, ValueError, pa.ArrowException):
        return None
    schema, schemes = (metadata[key].decode() if key in metadata else None for key in (SCHEMA, SCHEMES))
    return ParquetFooter(items, schema, schemes)


_KNOWN = (
    "path",
    "schema",
    "schemes",
    "domains",
    "documents",
    "cleanSource",
    "sourceArchiveDir",
    "ungrammatical",
    "unfinished",
    "unfinishedAge",
    "badDocuments",
    "maxBytesPerSlice",
    "maxFilesPerSlice",
    "rate",
)
"""Options of a source that apply to Parquet."""


def parquet_options(given: Mapping[str, str], columns: str | None = None) -> dict[str, str]:
    """Returns the options of the source for such a table.

    Args:
        given: Options of any source that do not concern XML.
        columns: Spark DDL of its columns, if they are declared.

    Raises:
        UsageError: An option concerns XML, there is no path, or the columns are unknown.
    """
    proper = {name.lower(): name for name in _KNOWN}
    given = located(given)
    for key in given:
        if key.lower() not in proper:
            raise UsageError(f"punctuated Parquet has no option {key}", hint=f"it has {', '.join(_KNOWN)}")
    options = {proper[key.lower()]: value for key, value in given.items()}
    if not options.get("path"):
        raise UsageError("the source has no path", hint="path names a file, a directory or a glob")
    if columns is not None:
        options["schema"] = columns
    if "schema" not in options or "schemes" not in options:
        footer = next(filter(None, map(parquet_footer, _documents(options["path"]))), None)
        if footer is not None:
            stored = {"schema": footer.schema, "schemes": footer.schemes}
            options = {**{name: text for name, text in stored.items() if text is not None}, **options}
    if "schema" not in options:
        hint = "declare them, as in CREATE TABLE t (hour INT, maxtemp DOUBLE) USING punctuated_parquet …"
        raise UsageError(f"no document at {shown(options['path'])} has the columns", hint=hint)
    return {"rowTag": "row", "format": "parquet", **options}


def _documents(path: str) -> list[Document]:
    """Returns a document from which the columns can be read: the first in a directory, or beside its partitions."""
    if is_glob(path):
        raise UsageError(f"the columns of {shown(path)} are not known", hint="declare them where the path is a glob")
    try:
        place = place_of(path, one=False, directories=False, partition=in_partition)
        there = [place.only()] if place.single else [place.found(*each) for each in place.present()]
    except InputError:
        return []
    found = sorted(there, key=lambda one: one.where)
    closings = [each for each in found if PurePath(each.where).parent.name == CLOSED]
    return (closings or [each for each in found if each.where.endswith(".parquet")])[:1]
