"""Grammar filter of a range: removes the tuples that an earlier punctuation of the range matches.

The task that parses a range knows neither the punctuations before the range nor when lifespans end: the reader of the
staged ranges checks those.

The check needs the attributes that a source's punctuations restrict, even if the query does not read them. A task
knows what its own punctuations restrict; for earlier ones it reads a file that the query writes. The file only
saves work: an attribute that it lacks is read later if it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.operators.storage.store import store_of
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.slices import LIFESPAN, POSITION
from xmlstream.sources.xml.grammar.late_tuples import BEFORE_ALL, LateTuple, violating_rows
from xmlstream.sources.xml.grammar.lifespans import without_lifespans
from xmlstream.sources.xml.grammar.punctuation_columns import (
    coalesced_punctuations,
    punctuations_at,
    read_punctuation_columns,
)
from xmlstream.sources.xml.options.arrow_text import Longs
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions

pc: Any = pyarrow.compute

RESTRICTED_FILE = "restricted.json"
"""The name of the file with the restricted attributes."""


def also_restricted(punctuations: pa.RecordBatch | pa.Table, columns: Collection[str]) -> frozenset[str]:
    """Returns the attributes outside `columns` that punctuations, given as pattern texts, restrict."""
    if not punctuations.num_rows:
        return frozenset()
    others = (name for name in punctuations.schema.names if name not in columns and name not in (POSITION, LIFESPAN))
    return frozenset(name for name in others if _is_restricted(punctuations[name]))


def _is_restricted(texts: Any) -> bool:
    return texts.null_count < len(texts) and bool(pc.any(pc.not_equal(pc.cast(texts, pa.string()), "*")).as_py())


def known_restricted(options: Reading) -> frozenset[str]:
    """Returns the attributes that earlier punctuations of a source have restricted, according to the file."""
    if options.restricted is None:
        return frozenset()
    try:
        store, key = store_of(options.restricted)
        names = json.loads(store.read(key))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(names).intersection(options.schema.names) if isinstance(names, list) else frozenset()


FILTER_WINDOW = 1 << 18
"""The number of tuples that are buffered at once."""


class GrammarFilter:
    """Takes the pieces of a range in order, and returns tables of grammatical tuples."""

    def __init__(self, options: SourceOptions, tuple_schema: pa.Schema) -> None:
        self._options, self._schema = options, options.schema
        self._tuple_schema = tuple_schema
        self._earlier = PunctuationSet(options.schema)
        self._tuples: list[pa.RecordBatch] = []
        self._punctuations: list[pa.RecordBatch] = []
        self._last: pa.Table | None = None
        self._count = 0
        self.late: list[LateTuple] = []

    def add(self, tuples: pa.RecordBatch, punctuations: pa.RecordBatch) -> pa.Table | None:
        """Adds the next piece; returns a table when enough tuples are buffered."""
        punctuations = without_lifespans(punctuations)
        self._tuples.append(tuples)
        self._count += tuples.num_rows
        if punctuations.num_rows:
            self._punctuations.append(punctuations)
        return self.rest() if self._count >= FILTER_WINDOW else None

    def rest(self) -> pa.Table:
        """Returns the remaining tuples."""
        table = pa.Table.from_batches(self._tuples, self._tuple_schema)
        if self._last is not None:
            # Coalesced only when a second window exists: most ranges have one.
            self._earlier.add_all(coalesced_punctuations(self._last, self._schema))
        punctuations = pa.Table.from_batches(self._punctuations) if self._punctuations else None
        if punctuations is not None or self._earlier:
            table = self._grammatical(table, punctuations)
        self._tuples, self._punctuations, self._last, self._count = [], [], punctuations, 0
        return table

    def _grammatical(self, table: pa.Table, punctuations: pa.Table | None) -> pa.Table:
        """Returns the tuples of a window that no earlier punctuation matches."""
        before: list[tuple[int, Punctuation]] = [(BEFORE_ALL, p) for p in self._earlier]
        if punctuations is None:
            found = violating_rows(table, before, self._schema)
            return self._without(table, found, before) if len(found) else table
        found = violating_rows(table, before, self._schema, read_punctuation_columns(punctuations, self._schema))
        if not len(found):
            return table
        at = punctuations[POSITION].to_numpy()
        each_one = punctuations_at(punctuations, np.arange(punctuations.num_rows), self._schema)
        return self._without(table, found, [*before, *((int(at[row]), p) for row, p in each_one)])

    def _without(self, table: pa.Table, found: Longs, punctuations: list[tuple[int, Punctuation]]) -> pa.Table:
        stops = self._options.ungrammatical == "fail"
        for row in table.take(found[:1] if stops else found).to_pylist():
            position = row.pop(POSITION)
            earlier = [p for at, p in punctuations if at < position]
            self.late.append(LateTuple.of(position, row, earlier, self._schema))
        if stops:
            return table
        stays = np.ones(table.num_rows, np.bool_)
        stays[found] = False
        return table.filter(pa.array(stays))
