"""Reads the kept rows of an operator and the closed strings of a source from a checkpoint, without Spark.

Commit records have the punctuations of a source, except strings that were closed one by one: these are in sorted files
(`xmlstream.operators.state.closed_set`), whose names the records have. The files are only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.operators.required_punctuations import Row
from xmlstream.operators.state.ages import FIRST, Since
from xmlstream.operators.state.closed_set import among
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.storage.durable import data_files
from xmlstream.operators.storage.records import LogRecord, PartRecord, SegmentRecord
from xmlstream.punct_ns.domain import Value
from xmlstream.punct_ns.pattern import List, matches
from xmlstream.punct_ns.punctuation import Punctuation, listed
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import in_utc

_AT_ONCE = 1000


class ClosedOnDisk:
    """The closed strings of a source, by attribute, from the files in its state that a commit record names.

    Raises:
        OSError, pa.ArrowException: While reading: a file is gone because the query has continued.
    """

    def __init__(self, state: Path, schema: Schema, kept: Mapping[str, LogRecord]) -> None:
        recorded = {i: kept.get(f"added {a.name}", LogRecord()) for i, a in enumerate(schema)}
        self._schema = schema
        self._files = {i: [state / part.name for part in one.segments] for i, one in recorded.items()}
        self.rows = {schema[i].name: one.rows for i, one in recorded.items() if one.segments}

    def named(self, p: Punctuation) -> Iterator[Punctuation]:
        """Punctuations for the closed strings among those that a punctuation lists."""
        for i, paths in self._files.items():
            strings = [value for value in listed(p.patterns[i]) if isinstance(value, str)]
            if strings and paths:
                yield from self._closing(i, sorted(self._among(strings, paths)))

    def all(self) -> Iterator[Punctuation]:
        """Punctuations for all closed strings."""
        for i, paths in self._files.items():
            for path in paths:
                values = _values(path).to_pylist()
                for begin in range(0, len(values), _AT_ONCE):
                    yield from self._closing(i, values[begin : begin + _AT_ONCE])

    def _closing(self, i: int, values: Sequence[str]) -> Iterator[Punctuation]:
        if values:
            yield Punctuation.of(self._schema, {self._schema[i].name: List(tuple(values))})

    @staticmethod
    def _among(strings: Sequence[str], paths: Sequence[Path]) -> set[str]:
        wanted: Any = pa.array(strings, pa.string())
        found = set[str]()
        for path in paths:
            values = _values(path)
            found.update(wanted.filter(pa.array(among(values, wanted))).to_pylist())
        return found


def _values(path: Path) -> Any:
    with pa.ipc.open_file(pa.memory_map(str(path))) as file:
        return file.get_batch(0).column(0)


MOST = 1000
"""Most rows that are listed one by one when a punctuation waits for all of them."""

_Values: TypeAlias = tuple[Value | None, ...]


class KeptRows:
    """The rows in the logs of an operator, as of a commit.

    Raises:
        OSError, pa.ArrowException: While reading: a segment is gone because the query has continued.
    """

    def __init__(self, directory: Path, declared: Mapping[str, LogSchema], record: Mapping[str, LogRecord]) -> None:
        """Takes the commit's record of each log by name, whose segments are in the directory."""
        self._directory, self._declared, self._record = directory, declared, record
        self._known: dict[tuple[str, tuple[Attribute, ...]], dict[_Values, Since | None]] = {}

    def count(self, log: str) -> int:
        """Number of rows in a log."""
        return self._record[log].rows if log in self._record else 0

    def rows(
        self, log: str, attributes: Sequence[Attribute], like: Sequence[Punctuation], schema: Schema
    ) -> list[Row] | None:
        """The distinct rows over these attributes that match one of the punctuations.

        Args:
            log: Name of the log.
            attributes: The attributes of the returned rows.
            like: Punctuations over `schema`; their patterns for attributes that the log lacks are ignored.
            schema: Attributes that rows may have.

        Returns:
            The rows, or None if there are more than `MOST`.
        """
        restricted = {i for p in like for i in p.restricted}
        there = self._columns(log)
        compared = [schema[i] for i in sorted(restricted) if schema[i].name.lower() in there]
        names = {a.name.lower() for a in attributes}
        whole = [*attributes, *(a for a in compared if a.name.lower() not in names)]
        matching: dict[tuple[Value | None, ...], Row] = {}
        for row, _ in self.with_ages(log, whole):
            folded = {name.lower(): value for name, value in row.items()}
            if any(all(matches(p.patterns[i], folded[schema[i].name.lower()]) for i in p.restricted
                       if schema[i].name.lower() in folded) for p in like):  # fmt: skip
                values = {a.name: row[a.name] for a in attributes}
                matching[tuple(values.values())] = values
                if len(matching) > MOST:
                    return None
        return list(matching.values())

    def _columns(self, log: str) -> set[str]:
        """Column names of a log, in lower case."""
        if not self.count(log):
            return set()
        (path, *_) = data_files(self._directory / self._record[log].segments[0].name)
        return {name.lower() for name in pq.ParquetFile(path).schema_arrow.names}

    def with_ages(self, log: str, attributes: Sequence[Attribute]) -> Iterator[tuple[Row, Since | None]]:
        """The distinct rows over these attributes, sorted, null first, each with the time of its first occurrence.

        The time is None if the log records no ages.
        """
        if not self.count(log):
            return
        query = log, tuple(attributes)
        if query not in self._known:
            known: dict[_Values, Since | None] = {}
            for part in self._record[log].segments:
                for values, since in self._of(part, log, attributes):
                    known[values] = _first(since, known.get(values))
            order = sorted(known, key=lambda values: [(v is not None, v) for v in values])
            self._known[query] = {values: known[values] for values in order}
        for values, since in self._known[query].items():
            yield {a.name: value for a, value in zip(attributes, values, strict=True)}, since

    def _of(
        self, part: PartRecord, log: str, attributes: Sequence[Attribute]
    ) -> Iterator[tuple[_Values, Since | None]]:
        """The rows of a segment that were neither purged nor removed later, with the time of each."""
        purging = self._declared[log].purging
        purged = PunctuationSet(purging)
        purged.add_all(Punctuation.parse(text, purging) for text in self._record[log].purging[part.since :])
        removed = [self._removed(one) for one in part.removed]
        gone = [name for names, _ in removed for name in names]
        names = [*(a.name for a in attributes), *(purging.names if purged else ()), *gone]
        table = self._table(part.name, [*names, FIRST])
        table, first = _distinct(table)
        if not table.column_names:
            yield (), first[0]
            return
        domains = {a.name.lower(): a for a in (*attributes, *purging)}
        columns = {name.lower(): _normal(table[name], domains.get(name.lower())) for name in table.column_names}
        for i, since in enumerate(first):
            here = {name: column[i] for name, column in columns.items()}
            if purged and purged.matches([here[name.lower()] for name in purging.names]):
                continue
            if any(tuple(here[name] for name in of) in rows for of, rows in removed):
                continue
            yield tuple(here[a.name.lower()] for a in attributes), since

    def _removed(self, segment: SegmentRecord) -> tuple[tuple[str, ...], set[tuple[Any, ...]]]:
        table = in_utc(self._table(segment.name, None))
        columns = [_normal(column, None) for column in table.columns]
        return tuple(name.lower() for name in table.column_names), set(zip(*columns, strict=True))

    def _table(self, segment: str, names: Sequence[str] | None) -> pa.Table:
        """Columns of a segment by case-insensitive names; all columns if `names` is None."""
        parts = [pq.ParquetFile(part) for part in data_files(self._directory / segment)]
        if not parts:
            raise FileNotFoundError(segment)
        wanted = None if names is None else {name.lower() for name in names}
        there = [name for name in parts[0].schema_arrow.names if wanted is None or name.lower() in wanted]
        return pa.concat_tables([part.read(columns=there) for part in parts])


def _distinct(table: pa.Table) -> tuple[pa.Table, list[Since | None]]:
    """The distinct rows of a table, and the time of the first of each: a group of many tuples is one row."""
    own = [name for name in table.column_names if name != FIRST]
    has_ages = FIRST in table.column_names
    found = in_utc(table.group_by(own).aggregate([(FIRST, "min")] if has_ages else []))
    numbers = found[f"{FIRST}_min"].to_pylist() if has_ages else [None] * (found.num_rows or 1)
    return found.select(own), [None if number is None else Since.first(number) for number in numbers]


def _first(one: Since | None, other: Since | None) -> Since | None:
    return min(one, other) if one is not None and other is not None else one or other


def _normal(column: Any, attribute: Attribute | None) -> list[Any]:
    """The values of a column in the normal form that punctuations use."""
    values = column.to_pylist()
    if attribute is None or attribute.domain.opaque:
        return list(values)
    return [None if value is None else attribute.domain.normal(value) for value in values]


def log_attributes(names: Sequence[str], schemas: Sequence[Schema]) -> list[Attribute]:
    """The attributes of these names, each from the first schema that has it, spelt as in `names`."""
    attributes = []
    for name in names:
        schema = next(schema for schema in schemas if name.lower() in map(str.lower, schema.names))
        attributes.append(Attribute(name, schema.attribute(name).domain))
    return attributes
