"""Names in an output directory: of slices' documents, of partitions' directories, and of marks of complete partitions.

Partitions are named as in Hive and Spark, `minute=2024-01-01T00%3A00%3A00Z`, and nest. A moment is written in ISO 8601,
in UTC if it has a zone, whatever the session's zone is. Spark infers a string from it, and reads a moment if the
table's schema declares TIMESTAMP.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

from xmlstream.operators.storage.store import Place, shown, store_at
from xmlstream.punct_ns.domain import Value
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.sql_type import OpaqueType
from xmlstream.sink.sink import Draft
from xmlstream.sources.parquet_table import CLOSED, CLOSED_SUFFIX, NULL, is_partition

SUCCESS = "_SUCCESS"
"""Name of the file that marks a partition's directory as complete."""

_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{}\[\]^]")


def directory_of(attributes: Sequence[Attribute], values: Sequence[Value | None]) -> str:
    """The path of a partition below the output.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> directory_of(Schema.parse("hour INT, what STRING").attributes, [7, "a/b"])
    'hour=7/what=a%2Fb'
    """
    return "/".join(
        f"{_escaped(a.name)}={_escaped(_text(a, value))}" for a, value in zip(attributes, values, strict=True)
    )


def values_of(path: str, attributes: Sequence[Attribute]) -> tuple[Value | None, ...] | None:
    """The values of a partition, from its path below the output; None if the path names none by these attributes.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> values_of("hour=7/what=a%2Fb", Schema.parse("hour INT, what STRING").attributes)
    (7, 'a/b')
    """
    found: list[Value | None] = []
    parts = path.split("/")
    if len(parts) != len(attributes):
        return None
    for part, attribute in zip(parts, attributes, strict=True):
        name, _, text = part.partition("=")
        if unquote(name) != attribute.name or not text:
            return None
        try:
            found.append(None if text == NULL else attribute.domain.read(unquote(text)))
        except ValueError:
            return None
    return tuple(found)


def require_partitions(schema: Schema, names: Sequence[str]) -> tuple[Attribute, ...]:
    """The attributes to partition a result by.

    Raises:
        QueryError: There is no such attribute, its type has no text, or no other attribute is left.
    """
    found = tuple(dict.fromkeys(schema.attribute(name) for name in names))
    for attribute in found:
        if isinstance(attribute.domain.sql, OpaqueType):
            what = f"cannot partition by {attribute.name}, which is {attribute.domain.type}"
            raise QueryError(what, hint="partition by a value that can be part of a path")
    if len(found) == len(schema):
        raise QueryError(
            "the result is partitioned by all of its attributes", hint="leave at least one attribute for the documents"
        )
    return found


def _text(attribute: Attribute, value: Value | None) -> str:
    return NULL if value is None or value == "" else attribute.domain.write(value)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


# Of any form: a sink that somebody adds names its documents so, and a restart finds them.
_NAME = re.compile(r"(?:[^/]+=[^/]+/)*slice-(\d+)(?:-\d+)?\.[a-z]+(?:\.punct)?")
_CLOSINGS = re.compile(rf"{CLOSED}/slice-(\d+)\{CLOSED_SUFFIX}")


def slice_of(name: str) -> int | None:
    """The number of the slice in a document's name; None if the name is not a document's.

    >>> slice_of("slice-000000007.xml"), slice_of("hour=3/slice-000000007.csv"), slice_of("slice-000000007.xml.punct")
    (7, 7, 7)
    >>> slice_of("_closed/slice-000000007.closed"), slice_of("slices.xml"), slice_of("slice-000000007.xml.gz")
    (7, None, None)
    """
    found = _NAME.fullmatch(name) or _CLOSINGS.fullmatch(name)
    return int(found[1]) if found else None


def require_slice(number: int | None, last: int, output: str) -> None:
    """Makes sure that an output has a slice; raises UsageError."""
    if number is not None and not 0 <= number <= last:
        raise UsageError(f"{output} has no slice {number}: its last one is {last}", hint="slices count from 0")


def is_document(name: str) -> bool:
    """Whether the name is that of a query's document or draft: a slice's document, or the mark of a partition."""
    directory, _, last = shown(name).rpartition("/")
    return slice_of(shown(name)) is not None or (bool(directory) and last == SUCCESS)


def sizes_of_documents(place: Place) -> Iterator[tuple[str, int]]:
    """The documents and drafts in a store, with their sizes; files in other folders than partitions are none."""
    return ((name, size) for name, size in store_at(place).sizes(_has_documents) if is_document(name))


def in_slice_order(names: Iterable[str]) -> list[str]:
    """Names of documents and drafts in the order of their publication, marks last."""
    return sorted(names, key=lambda name: (shown(name).endswith(f"/{SUCCESS}"), name))


def names_of(draft: Draft) -> list[str]:
    """The names of a draft's documents, in order."""
    return [*(name for name, _ in draft.parts), draft.name]


def _has_documents(folder: str) -> bool:
    return folder == CLOSED or is_partition(folder.rpartition("/")[2])
