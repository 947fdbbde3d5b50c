"""A directory of partitions, each a directory of documents, one per slice, which is marked once it is complete.

    bids/minute=2024-01-01T00%3A00%3A00Z/slice-000000003.parquet
    bids/minute=2024-01-01T00%3A00%3A00Z/_SUCCESS
    bids/_closed/slice-000000003.closed

A partition is complete when a punctuation says that no tuple of it follows: one that restricts nothing but what is
partitioned by. The mark is published with the slice of that punctuation, behind all documents, and says which it was.
Of Parquet all that a slice closes is in `_closed`, so that the whole is a punctuated source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa

from operators.storage.store import Place, hidden, shown
from punct_ns.domain import Value
from punct_ns.pattern import matches
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.slices import in_utc
from punct_ns.sql_type import StringType
from sources.parquet_table import CLOSED, CLOSED_SUFFIX
from xmlstream.sink.arrow_columns import plain
from xmlstream.sink.directory_sink import DocumentSink
from xmlstream.sink.document_names import SUCCESS, directory_of, documents_in, values_of
from xmlstream.sink.result_tables import ParquetForm
from xmlstream.sink.sink import ComputedSlice, Draft, Exactness, Form, together

Partition = tuple[Value | None, ...]


class PartitionedSink(DocumentSink):
    """One document per slice and partition; `form` is that of the schema without the attributes partitioned by.

    What a slice closes goes into a document of its own, beside the partitions, by the form `closings`, if there is one.
    All is drafted here: a task does not know of partitions.
    """

    def __init__(
        self, place: Place, form: Form, schema: Schema, by: Sequence[Attribute], closings: ParquetForm | None = None
    ) -> None:
        super().__init__(place, form)
        self._closings = closings
        self._is_told = any(name.startswith(f"{CLOSED}/") for name in documents_in(place) if name == shown(name))
        self._schema, self._by = schema, tuple(by)
        self._open: set[Partition] | None = None

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Writes hidden what the partitions get: documents where there are tuples, then marks of what is complete."""
        if self._open is None:
            self._open = self._found()
        tuples, punctuations = together(slice_.parts)
        drafts: list[tuple[str, str]] = []
        for values, rows in self._parts(tuples):
            directory = directory_of(self._by, values)
            if not self._is_marked(directory):
                self._open.add(values)
            pieces = self._form.document([(rows, ())], slice_.exactness, slice_.written)
            drafts.append(self._written(f"{directory}/slice-{slice_.number:09d}{self._form.suffix}", pieces))
        said = [p for p in punctuations if not self._is_lost(p)]
        # The first tells the attributes, whose types no partition has all of.
        if self._closings is not None and (said or (drafts and not self._is_told)):
            self._is_told = True
            pieces = self._closings.closings(said, slice_.exactness)
            drafts.append(self._written(f"{CLOSED}/slice-{slice_.number:09d}{CLOSED_SUFFIX}", pieces))
        closed = [values for values in self._open if any(self._covers(p, values) for p in punctuations)]
        for values in sorted(closed, key=repr):
            self._open.discard(values)
            mark = json.dumps({"slice": slice_.number, "exact": slice_.exactness is Exactness.EXACT}).encode()
            drafts.append(self._written(f"{directory_of(self._by, values)}/{SUCCESS}", [mark]))
        return Draft(*drafts[-1], drafts[:-1]) if drafts else None

    def _is_marked(self, directory: str) -> bool:
        """Whether it was complete once: a mark stays as it is, whatever tuple comes overdue."""
        mark = f"{directory}/{SUCCESS}"
        return any(self._store.size(key) is not None for key in (mark, hidden(mark)))

    def _found(self) -> set[Partition]:
        """The partitions that have documents and no mark."""
        published = [path.rpartition("/") for path in documents_in(self._store) if path == shown(path)]
        marked = {directory for directory, _, name in published if name == SUCCESS}
        found = (values_of(directory, self._by) for directory in {each for each, _, _ in published} - marked)
        return {values for values in found if values is not None}

    def _parts(self, tuples: pa.Table | None) -> Iterator[tuple[Partition, pa.Table]]:
        """The tuples of each partition, in their order, without what they are partitioned by.

        Values that share a name share a document: null and the empty string, 0.0 and -0.0.
        """
        if tuples is None or not tuples.num_rows:
            return
        names = [a.name for a in self._by]
        keys = [str(i) for i in range(len(names))]
        own = in_utc(pa.table([plain(tuples[name]) for name in names], keys))
        own = own.append_column("place", pa.array(range(len(own)), pa.int64()))
        # Grouped by one thread: what the documents hold, and their order, do not depend on which thread is first.
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
        """Whether it closes null and not the empty string, which is read as null: tuples might come after it."""
        strings = [a for a in self._by if a.domain.nullable and isinstance(a.domain.sql, StringType)]
        said = [punctuation.patterns[self._schema.index(a.name)] for a in strings]
        return any(matches(pattern, None) and not matches(pattern, "") for pattern in said)

    def _covers(self, punctuation: Punctuation, values: Partition) -> bool:
        """Whether it says that no tuple of the partition follows, whatever else is in it.

        Of strings the partition of null is that of the empty string too, and both are to be closed.
        """
        places = [self._schema.index(a.name) for a in self._by]
        if punctuation.lifespan is not None or not set(punctuation.restricted) <= set(places):
            return False
        said = zip((punctuation.patterns[place] for place in places), self._by, values, strict=True)
        return all(matches(pattern, each) for pattern, by, value in said for each in _named(by, value))


def _named(by: Attribute, value: Value | None) -> tuple[Value | None, ...]:
    """The values that share a partition's name with this one."""
    if value is not None:
        return (value,)
    return (*([None] if by.domain.nullable else []), *([""] if isinstance(by.domain.sql, StringType) else []))
