"""Record batches of items: their texts become typed columns, and the punctuations they imply are added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from punct_ns.slices import LIFESPAN, POSITION
from sources.xml.options.source import SourceOptions
from sources.xml.parser.columns import ColumnReader
from sources.xml.parser.item_texts import Items, ItemTexts
from sources.xml.parser.located_text import LocatedText
from sources.xml.parser.malformed import Malformed
from sources.xml.parser.parsed import Parsed
from sources.xml.parser.patterns import PatternReader
from sources.xml.parser.structural_punctuations import ImpliedPunctuation, ItemPositions, StructuralPunctuations
from sources.xml.splits.split_points import ElementNames


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """The values of tuples.

    Attributes:
        columns: Of the wanted attributes, typed.
        reasons: Of each malformed row the first reason; malformed is what any attribute of is, wanted or not.
        had: The names of the attributes of which any tuple had a value.
    """

    columns: list[pa.Array[Any]]
    reasons: dict[int, str]
    had: tuple[str, ...]


class ItemBatches:
    """Makes record batches of one source's items.

    Attributes:
        read: The attributes whose values are looked for.
        looked_at: Places of the attributes whose texts are needed: of those, and of what may be malformed beside them.
        tuple_schema: Of a batch of tuples: the attributes asked for, then `_position`.
        punctuation_schema: Of a batch of punctuations: `_position`, then the pattern text of every attribute; where any
            has a lifespan, behind them the texts of these.
    """

    def __init__(
        self, options: SourceOptions, columns: tuple[str, ...], items: ElementNames, patterns: PatternReader
    ) -> None:
        """Of tuples, the attributes `columns`; `items` are the local names of the items' elements."""
        self._names, self._items, self._patterns = options.schema.names, items, patterns
        hidden = [index for index in options.structural.unique if options.schema[index].name not in columns]
        self._wanted = [*map(options.schema.index, columns), *hidden]
        self._columns = [ColumnReader.of(options, index) for index in self._wanted]
        self._unread = _doubtful(options, self._wanted)
        self.read = frozenset(self._names[index] for index in self._wanted)
        self.looked_at = [*self._wanted, *self._unread]
        self._structural = StructuralPunctuations(options) if options.structural else None
        self.tuple_schema = pa.schema(
            [pa.field(name, column.type) for name, column in zip(columns, self._columns, strict=False)]
            + [pa.field(POSITION, pa.int64(), nullable=False)]
        )
        self.punctuation_schema = pa.schema(
            [pa.field(POSITION, pa.int64(), nullable=False)] + [pa.field(name, pa.string()) for name in self._names]
        )

    def values(self, texts: ItemTexts) -> TypedColumns:
        """The values of tuples whose texts are those of the attributes that are looked at."""
        columns: list[pa.Array[Any]] = []
        had: list[str] = []
        flaws: list[tuple[int, Mapping[int, str]]] = []
        for index, column, each in zip(self._wanted, self._columns, texts.columns, strict=False):
            values, reasons = column.read(each)
            columns.append(values)
            flaws.append((index, reasons))
            if each.null_count < len(each):
                had.append(self._names[index])
        for (index, column), each in zip(self._unread.items(), texts.columns[len(columns) :], strict=True):
            flaws.append((index, column.flaws(each)))
        first: dict[int, str] = {}
        for _, reasons in sorted(flaws, key=itemgetter(0)):
            for row, reason in reasons.items():
                first.setdefault(row, reason)
        return TypedColumns(columns, first, tuple(had))

    def parsed(self, items: Items, values: TypedColumns, at: int, text: LocatedText) -> Parsed:
        """The items of a text as record batches, the first at position `at`; it is known where malformed ones begin."""
        tuples, columns, malformed = items.tuples, values.columns, items.malformed
        ordinals, starts = tuples.ordinal, tuples.start
        if values.reasons:
            more = _malformed(values.reasons, tuples, text, self._items)
            malformed = sorted([*malformed, *more], key=lambda one: one.position)
            keep = np.ones(len(tuples), np.bool_)
            keep[list(values.reasons)] = False
            columns, ordinals = [column.filter(pa.array(keep)) for column in columns], ordinals[keep]
            starts = starts[keep]
        implied: list[ImpliedPunctuation] = []
        if self._structural is not None:
            implied = self._structural.of(dict(zip(self._wanted, columns, strict=True)), ordinals, items.ended)
        positions = ItemPositions(at, implied)
        shown = columns[: len(self.tuple_schema) - 1]
        batch = pa.RecordBatch.from_arrays([*shown, pa.array(positions.of(ordinals))], schema=self.tuple_schema)
        malformed = [replace(one, position=int(positions.of(np.array(one.position)))) for one in malformed]
        said = items.punctuations
        *patterns, lifespans = self._patterns.quoted(said.columns)
        at_ = pa.array(positions.of(said.ordinal))
        punctuations = pa.RecordBatch.from_arrays([at_, *patterns], schema=self.punctuation_schema)
        if lifespans.null_count < len(lifespans):
            punctuations = punctuations.append_column(LIFESPAN, lifespans)
        if implied:
            punctuations = self._with(punctuations, positions.implied, implied)
        length = items.count + len(implied)
        return Parsed(batch, punctuations, malformed, items.void, values.had, length, starts, text)

    def nothing(self, closed_at: int | None = None, flaw: Malformed | None = None) -> Parsed:
        """No tuples; an all-wildcard punctuation at a position, or something malformed."""
        said = [] if closed_at is None else [{POSITION: closed_at}]
        return Parsed(
            pa.RecordBatch.from_pylist([], self.tuple_schema),
            pa.RecordBatch.from_pylist(said, self.punctuation_schema),
            [flaw] if flaw is not None else [],
            length=1,
        )

    def _with(
        self, punctuations: pa.RecordBatch, positions: Sequence[int], implied: Sequence[ImpliedPunctuation]
    ) -> pa.RecordBatch:
        columns = [positions, *zip(*(one.texts for one in implied), strict=True)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.punctuation_schema, strict=True)]
        more = pa.RecordBatch.from_arrays(arrays, schema=self.punctuation_schema)
        both = concatenated([punctuations, more], self.punctuation_schema).sort_by(POSITION)
        return both.combine_chunks().to_batches()[0]


def concatenated(said: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The punctuations of several batches, of some of which some have lifespans."""
    tables = [schema.empty_table(), *(pa.Table.from_batches([batch]) for batch in said)]
    return pa.concat_tables(tables, promote_options="default")


def _doubtful(options: SourceOptions, wanted: Sequence[int]) -> dict[int, ColumnReader]:
    """The attributes beside those that are wanted that a text may be no value of; a row's number is no text."""
    others = (index for index in range(len(options.schema)) if index not in wanted)
    columns = {
        index: ColumnReader.of(options, index) for index in others if options.paths[index].function != "position"
    }
    return {index: column for index, column in columns.items() if not column.takes_all}


def _malformed(
    reasons: Mapping[int, str], tuples: ItemTexts, text: LocatedText, items: ElementNames
) -> Iterator[Malformed]:
    """Tuples that were read but have values not of their types."""
    found = text.fragments(items)
    for row, reason in reasons.items():
        yield text.malformed(int(tuples.ordinal[row]), found[int(tuples.start[row])], "tuple", reason)
