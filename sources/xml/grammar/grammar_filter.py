"""Grammar filter of a range: takes out the tuples that a punctuation before them in the range matches.

The task that parses a range knows neither the punctuations before the range nor when lifespans end: the reader of the
staged ranges checks those.

The check must see the attributes that a source's punctuations restrict, whatever else is read. A task knows what its
own punctuations restrict. What earlier ones did, it finds in a file that the query writes. That only spares work: an
attribute that the file lacks is read once more where it turns out to matter.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from operators.storage.store import store_of
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.slices import LIFESPAN, POSITION
from sources.xml.grammar.late_tuples import BEFORE_ALL, LateTuple, violating_rows
from sources.xml.grammar.lifespans import without_lifespans
from sources.xml.grammar.punctuation_columns import coalesced_punctuations, punctuations_at, read_punctuation_columns
from sources.xml.options.arrow_text import Longs
from sources.xml.options.source import SourceOptions

pc: Any = pyarrow.compute

RESTRICTED_FILE = "restricted.json"
"""The name of that file."""


def also_restricted(said: pa.RecordBatch | pa.Table, columns: Collection[str]) -> frozenset[str]:
    """The attributes beside those columns that punctuations restrict; `said` has their pattern texts."""
    if not said.num_rows:
        return frozenset()
    others = (name for name in said.schema.names if name not in columns and name not in (POSITION, LIFESPAN))
    return frozenset(name for name in others if _is_restricted(said[name]))


def _is_restricted(texts: Any) -> bool:
    return texts.null_count < len(texts) and bool(pc.any(pc.not_equal(pc.cast(texts, pa.string()), "*")).as_py())


def known_restricted(options: SourceOptions) -> frozenset[str]:
    """What punctuations of a source have restricted before, as far as the file says."""
    if options.restricted is None:
        return frozenset()
    try:
        store, key = store_of(options.restricted)
        names = json.loads(store.read(key))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(names).intersection(options.schema.names) if isinstance(names, list) else frozenset()


FILTER_WINDOW = 1 << 18
"""Tuples that are held back at once."""


class GrammarFilter:
    """Takes pieces of a range in order; gives tables of grammatical tuples."""

    def __init__(self, options: SourceOptions, tuple_schema: pa.Schema) -> None:
        self._options, self._schema = options, options.schema
        self._tuple_schema = tuple_schema
        self._earlier = PunctuationSet(options.schema)
        self._tuples: list[pa.RecordBatch] = []
        self._said: list[pa.RecordBatch] = []
        self._last: pa.Table | None = None
        self._count = 0
        self.late: list[LateTuple] = []

    def add(self, tuples: pa.RecordBatch, said: pa.RecordBatch) -> pa.Table | None:
        """The next piece; a table once there is enough for one."""
        said = without_lifespans(said)
        self._tuples.append(tuples)
        self._count += tuples.num_rows
        if said.num_rows:
            self._said.append(said)
        return self.rest() if self._count >= FILTER_WINDOW else None

    def rest(self) -> pa.Table:
        """What is left at the end."""
        table = pa.Table.from_batches(self._tuples, self._tuple_schema)
        if self._last is not None:
            # Only now does it matter: most ranges are one window.
            self._earlier.add_all(coalesced_punctuations(self._last, self._schema))
        said = pa.Table.from_batches(self._said) if self._said else None
        if said is not None or self._earlier:
            table = self._grammatical(table, said)
        self._tuples, self._said, self._last, self._count = [], [], said, 0
        return table

    def _grammatical(self, table: pa.Table, said: pa.Table | None) -> pa.Table:
        """The tuples of a window without those that something said before them matches."""
        before: list[tuple[int, Punctuation]] = [(BEFORE_ALL, p) for p in self._earlier]
        if said is None:
            found = violating_rows(table, before, self._schema)
            return self._without(table, found, before) if len(found) else table
        found = violating_rows(table, before, self._schema, read_punctuation_columns(said, self._schema))
        if not len(found):
            return table
        at = said[POSITION].to_numpy()
        each_one = punctuations_at(said, np.arange(said.num_rows), self._schema)
        return self._without(table, found, [*before, *((int(at[row]), p) for row, p in each_one)])

    def _without(self, table: pa.Table, found: Longs, said: list[tuple[int, Punctuation]]) -> pa.Table:
        stops = self._options.ungrammatical == "fail"
        for row in table.take(found[:1] if stops else found).to_pylist():
            position = row.pop(POSITION)
            earlier = [p for at, p in said if at < position]
            self.late.append(LateTuple.of(position, row, earlier, self._schema))
        if stops:
            return table
        stays = np.ones(table.num_rows, np.bool_)
        stays[found] = False
        return table.filter(pa.array(stays))
