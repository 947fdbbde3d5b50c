"""Directory of partitions: each is a directory of documents, one per slice, and is marked once it is complete.

    bids/minute=2024-01-01T00%3A00%3A00Z/slice-000000003.parquet
    bids/minute=2024-01-01T00%3A00%3A00Z/_SUCCESS
    bids/_closed/slice-000000003.closed

A partition is complete once a punctuation covers it that restricts partition attributes only. The mark is published
with the slice of that punctuation, after all documents, and holds the slice's number. For Parquet, `_closed` holds all
punctuations of a slice, so that the directory is a punctuated source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from xmlstream.operators.storage.store import Place, shown
from xmlstream.punct_ns.domain import Value
from xmlstream.punct_ns.pattern import matches
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import in_utc
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.sink.arrow_columns import plain_array
from xmlstream.sink.directory_sink import DocumentSink
from xmlstream.sink.document_names import SUCCESS, directory_of, values_of
from xmlstream.sink.output import Output
from xmlstream.sink.result_tables import ParquetForm
from xmlstream.sink.sink import ComputedSlice, Draft, Exactness, Form, one_part
from xmlstream.sources.parquet_table import CLOSED, CLOSED_SUFFIX

Partition = tuple[Value | None, ...]


class PartitionedSink(DocumentSink):
    """One document per slice and partition; `form` encodes the schema without the partition attributes.

    The form `closings`, if there is one, writes the punctuations of a slice into a document beside the partitions. The
    driver writes all documents: tasks do not know of partitions.
    """

    def __init__(
        self,
        place: Place | Output,
        form: Form,
        schema: Schema,
        by: Sequence[Attribute],
        closings: ParquetForm | None = None,
    ) -> None:
        super().__init__(place, form)
        self._closings = closings
        self._has_attributes = False
        self._schema, self._by = schema, tuple(by)
        self._open: set[Partition] | None = None

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Writes hidden documents of the partitions with tuples, then marks of the partitions that are complete."""
        if self._open is None:
            self._open = self._found()
        tuples, punctuations = one_part(slice_.parts)
        drafts: list[tuple[str, str]] = []
        for values, rows in self._parts(tuples):
            directory = directory_of(self._by, values)
            # A mark stays even if an overdue tuple follows.
            if values not in self._open and not self._output.exists(f"{directory}/{SUCCESS}"):
                self._open.add(values)
            pieces = self._form.document([(rows, ())], slice_.exactness, slice_.written)
            drafts.append(self._written(f"{directory}/slice-{slice_.number:09d}{self._form.suffix}", pieces))
        kept = [p for p in punctuations if not self._is_lost(p)]
        # The first one holds the attributes of the whole result, which no partition's documents have.
        if self._closings is not None and (kept or (drafts and not self._has_attributes)):
            self._has_attributes = True
            pieces = self._closings.closings(kept, slice_.exactness)
            drafts.append(self._written(f"{CLOSED}/slice-{slice_.number:09d}{CLOSED_SUFFIX}", pieces))
        closed = [values for values in self._open if any(self._covers(p, values) for p in punctuations)]
        for values in sorted(closed, key=repr):
            self._open.discard(values)
            mark = json.dumps({"slice": slice_.number, "exact": slice_.exactness is Exactness.EXACT}).encode()
            drafts.append(self._written(f"{directory_of(self._by, values)}/{SUCCESS}", [mark]))
        return Draft(*drafts[-1], tuple(drafts[:-1])) if drafts else None

    def _found(self) -> set[Partition]:
        """The partitions with documents and without a mark; notes whether documents with punctuations exist."""
        names = [name for name in self._output.documents() if name == shown(name)]
        self._has_attributes = any(name.startswith(f"{CLOSED}/") for name in names)
        published = [name.rpartition("/") for name in names]
        marked = {directory for directory, _, name in published if name == SUCCESS}
        found = (values_of(directory, self._by) for directory in {each for each, _, _ in published} - marked)
        return {values for values in found if values is not None}

    def _parts(self, tuples: pa.Table | None) -> Iterator[tuple[Partition, pa.Table]]:
        """The tuples of each partition, in order, without the partition attributes.

        Values with the same name share a document: null and the empty string, 0.0 and -0.0.
        """
        if tuples is None or not tuples.num_rows:
            return
        names = [a.name for a in self._by]
        keys = [str(i) for i in range(len(names))]
        own = in_utc(pa.table([plain_array(tuples[name]) for name in names], keys))
        own = own.append_column("place", pa.array(range(len(own)), pa.int64()))
        # Group in one thread, so that the contents of the documents and their order do not depend on timing.
        grouped = own.group_by(keys, use_threads=False).aggregate([("place", "list")])
        found: dict[str, tuple[Partition, list[int]]] = {}
        for row in grouped.to_pylist():
            read = [row[key] for key in keys]
            values = tuple(
                None if value is None or value == "" else a.domain.normal(value)
                for a, value in zip(self._by, read, strict=True)
            )
            found.setdefault(directory_of(self._by, values), (values, []))[1].extend(row["place_list"])
        others = tuples.drop_columns(names)
        for values, places in found.values():
            yield values, others.take(pa.array(sorted(places), pa.int64()))

    def _is_lost(self, punctuation: Punctuation) -> bool:
        """Whether to leave the punctuation out: it closes null, not the empty string, which reads back as null."""
        strings = [a for a in self._by if a.domain.nullable and isinstance(a.domain.sql, StringType)]
        patterns = [punctuation.patterns[self._schema.index(a.name)] for a in strings]
        return any(matches(pattern, None) and not matches(pattern, "") for pattern in patterns)

    def _covers(self, punctuation: Punctuation, values: Partition) -> bool:
        """Whether the punctuation closes the whole partition, whatever the other attributes are.

        For strings, null and the empty string share a partition, so that both must be closed.
        """
        places = [self._schema.index(a.name) for a in self._by]
        if punctuation.lifespan is not None or not set(punctuation.restricted) <= set(places):
            return False
        zipped = zip((punctuation.patterns[place] for place in places), self._by, values, strict=True)
        return all(matches(pattern, each) for pattern, by, value in zipped for each in _named(by, value))


def _named(by: Attribute, value: Value | None) -> tuple[Value | None, ...]:
    """The values that share this value's partition."""
    if value is not None:
        return (value,)
    return (*([None] if by.domain.nullable else []), *([""] if isinstance(by.domain.sql, StringType) else []))
