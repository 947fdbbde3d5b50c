"""Parquet documents as pieces of a punctuated stream: the output of `USING parquet`, read like an XML document.

The tuples come first, in order, then the punctuations in the file's metadata. A document is one range.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.sources.parquet_table import ASIDE, PUNCTUATIONS, SCHEMA, VOID, partition_texts
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.prolog import FlawError

_ROWS = 1 << 18
"""The number of rows in one batch."""


@dataclass(frozen=True, slots=True)
class ParquetPiece:
    """Consecutive items: tuples as columns of the wanted attributes, pattern texts of punctuations, or what is neither.

    `aside` has the rows of a stream that were no items, as dead letters without positions; `void` counts punctuations
    that were ignored.
    """

    columns: list[Any]
    texts: list[tuple[str | None, ...]]
    rows: int
    aside: list[DeadLetter] = field(default_factory=list)
    void: Counter[str] = field(default_factory=Counter)


def parquet_pieces(document: Document, options: SourceOptions, wanted: pa.Schema) -> Iterator[ParquetPiece]:
    """Yields the items of a document: the attributes of tuples with the wanted types, then the punctuations.

    Raises:
        FlawError: It is not Parquet, lacks a column, or has values that are not of the declared types.
    """
    try:
        with pq.ParquetFile(document.source()) as file:
            there = {name.lower(): name for name in file.schema_arrow.names}
            values = _partition_values(document, there.keys(), options.schema)
            for attribute in options.schema:
                if attribute.name.lower() not in there.keys() | values.keys():
                    known = ", ".join(file.schema_arrow.names)
                    raise FlawError(f"it has no column {attribute.name}; it has {known}", 0)
            names = [there.get(field.name.lower()) for field in wanted]
            for batch in file.iter_batches(_ROWS, columns=[name for name in names if name is not None]):
                columns = [
                    pa.array([values[field.name.lower()]] * batch.num_rows, field.type)
                    if name is None
                    else _cast(batch[name], field)
                    for name, field in zip(names, wanted, strict=True)
                ]
                yield ParquetPiece(columns, [], batch.num_rows)
            metadata = file.schema_arrow.metadata or {}
            punctuations = _punctuations(metadata, options.schema)
            aside = [DeadLetter.from_json(letter) for letter in json.loads(metadata.get(ASIDE, b"[]"))]
            void = Counter[str](json.loads(metadata.get(VOID, b"{}")))
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FlawError(f"it cannot be read as Parquet: {str(error).splitlines()[0]}", 0) from None
    if punctuations:
        yield ParquetPiece([], punctuations, len(punctuations))
    if aside or void:
        yield ParquetPiece([], [], len(aside), aside, void)


def _partition_values(document: Document, there: Collection[str], schema: Schema) -> dict[str, object]:
    """Returns the values of the attributes that a document's directories contain instead of the file, by lower name.

    Directories do not distinguish null from the empty string: for an attribute that is NOT NULL it is the latter.
    """
    texts = {name.lower(): text for name, text in partition_texts(document.where).items()}
    found: dict[str, object] = {}
    for attribute in schema:
        name, domain = attribute.name.lower(), attribute.domain
        if name in there or name not in texts:
            continue
        text = texts[name]
        try:
            if text is None:
                found[name] = "" if isinstance(domain.sql, StringType) and not domain.nullable else None
            else:
                found[name] = domain.read(text)
        except ValueError as error:
            raise FlawError(f"its directory has an invalid value of {attribute.name}: {error}", 0) from None
    return found


def _cast(column: pa.Array[Any], field: pa.Field[Any]) -> pa.Array[Any]:
    try:
        return column if column.type == field.type else column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise FlawError(
            f"column {field.name} has Parquet type {column.type}, but is read as {field.type}: {reason}", 0
        ) from None


def _punctuations(metadata: dict[bytes, bytes], schema: Schema) -> list[tuple[str | None, ...]]:
    """Returns the punctuations that restrict only declared attributes, as pattern texts of these.

    Those with a lifespan are left out: a document contains tuples of one life beside those of the next.
    """
    texts = json.loads(metadata.get(PUNCTUATIONS, b"[]"))
    if not texts:
        return []
    written = Schema.parse(metadata[SCHEMA].decode()) if SCHEMA in metadata else schema
    try:
        punctuations = [Punctuation.parse(text, written) for text in texts]
    except XmlStreamError as error:
        raise FlawError(f"a punctuation of its metadata cannot be read: {error.what}", 0) from None
    places = {name.lower(): at for at, name in enumerate(written.names)}
    chosen = [places[name.lower()] for name in schema.names]
    return [
        tuple(None if isinstance(p.patterns[at], Wildcard) else _text(p, at) for at in chosen)
        for p in punctuations
        if p.lifespan is None and set(p.restricted) <= set(chosen)
    ]


def _text(punctuation: Punctuation, at: int) -> str:
    return format_pattern(punctuation.patterns[at], punctuation.schema[at].domain)


def parquet_batches(
    piece: ParquetPiece, at: int, tuples: pa.Schema, punctuations: pa.Schema
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Converts a piece to record batches, its first item at position `at`."""
    positions = pa.array(range(at, at + piece.rows), pa.int64())
    none: Sequence[Any] = [pa.array([], field.type) for field in tuples]
    if piece.texts:
        columns = [pa.array(texts, pa.string()) for texts in zip(*piece.texts, strict=True)]
        batch = pa.RecordBatch.from_arrays([positions, *columns], schema=punctuations)
        return pa.RecordBatch.from_arrays(none, schema=tuples), batch
    nothing = [pa.array([], field.type) for field in punctuations]
    rows = pa.RecordBatch.from_arrays(none if piece.aside or piece.void else [*piece.columns, positions], schema=tuples)
    return rows, pa.RecordBatch.from_arrays(nothing, schema=punctuations)
