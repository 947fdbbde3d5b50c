"""Record batches of items: converts the texts of items to typed columns, and adds implied punctuations.

Every way of reading items produces texts, column by column. The pattern texts of punctuations remain texts; they are
checked, and blanks that belong to a constant are quoted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.punct_ns.domain import BLANKS
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.numeric_type import DecimalType, IntegerType
from xmlstream.punct_ns.slices import LIFESPAN, POSITION
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import TimestampType
from xmlstream.punct_ns.xml_form import pattern_from_text, punctuation_from_texts
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.arrow_text import (
    dereferenced,
    has_blank_ends,
    reordered,
    repeated,
    slots,
    without_line_breaks,
)
from xmlstream.sources.xml.options.formats import PrefixRewriting
from xmlstream.sources.xml.options.local_times import LocalTimes
from xmlstream.sources.xml.options.locales import LocaleNumbers
from xmlstream.sources.xml.options.nested_values import text_type
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.elements import UnreadableError
from xmlstream.sources.xml.parser.item_reader import quoted_constant
from xmlstream.sources.xml.parser.item_templates import Matches, TextWindow
from xmlstream.sources.xml.parser.leaf_columns import TextTypes
from xmlstream.sources.xml.parser.malformed import LocatedText, Malformed
from xmlstream.sources.xml.parser.structural_punctuations import (
    ClosedSection,
    ImpliedPunctuation,
    ItemPositions,
    StructuralPunctuations,
)
from xmlstream.sources.xml.parser.template_scan import ScannedWindow
from xmlstream.sources.xml.parser.typed_columns import ColumnReader, PlainNumbers
from xmlstream.sources.xml.splits.all_tags import ElementNames, Offsets


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of a piece of a document; positions increase from item to item and from piece to piece.

    Attributes:
        tuples: The wanted attributes, typed, then `_position`.
        punctuations: `_position`, then the pattern text of every attribute, null for a wildcard.
        malformed: The items that could not be parsed.
        void: The number of ignored punctuations, by the undeclared leaf that they restrict.
        had: The attributes that at least one tuple had.
        length: The number of positions that the piece uses.
        starts: The offset of each tuple in the text; negative if unknown.
        aside: The items of a stream of Spark's that were set aside before.
    """

    tuples: pa.RecordBatch
    punctuations: pa.RecordBatch
    malformed: list[Malformed]
    void: Counter[str] = field(default_factory=Counter)
    had: tuple[str, ...] = ()
    length: int = 0
    starts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    text: LocatedText | None = None
    aside: list[DeadLetter] = field(default_factory=list)

    @property
    def is_last(self) -> bool:
        """Whether reading ends here: the document is not well-formed, or cannot be read further."""
        return bool(self.malformed) and self.malformed[-1].kind == "document"


pc: Any = pyarrow.compute


class PatternReader:
    """Checks the pattern texts of one source's punctuations, attribute by attribute."""

    def __init__(self, options: SourceOptions) -> None:
        self._schema = options.schema
        self._trims = options.ignore_surrounding_spaces
        written = {place: _ways(options, place) for place in range(len(options.schema))}
        self._written = {place: _of_patterns(ways) for place, ways in written.items() if ways}
        self._local = LocalTimes.of(TimestampType(zoned=True), options.time_zone)

    def _lifespan(self, text: str | None) -> str | None:
        """A lifespan's text with moments for local times; NotationError if it is none."""
        if text is None or self._local is None:
            return text
        read = Lifespan.read(text, self._schema)
        moments = [bound for bound in read.bounds if bound.domain.sql == TimestampType(zoned=True)]
        if not moments:
            return text
        bounds = (replace(b, value=self._local.text(b.value)) if b in moments else b for b in read.bounds)
        return " and ".join([*([] if read.duration is None else [str(read.duration)]), *map(str, bounds)])

    def check(self, texts: Sequence[str | None]) -> None:
        """Checks the texts of one punctuation, the last being its lifespan; UnreadableError with the reason."""
        try:
            *bare, lifespan = texts
            if lifespan is not None:
                Lifespan.read(self._lifespan(lifespan) or "", self._schema)
            for place, written in self._written.items():
                text = texts[place]
                bare[place] = None if text is None else written(text)
            punctuation_from_texts(bare, self._schema, trim=self._trims)
        except ValueError as error:
            raise UnreadableError(str(getattr(error, "what", error))) from None

    def are_readable(self, columns: Sequence[pa.StringArray]) -> bool:
        """Whether all texts are valid: patterns of their attributes, and lifespans in the last column."""
        *columns, lifespans = columns
        try:
            for text in pc.drop_null(lifespans.unique()).to_pylist():
                Lifespan.read(self._lifespan(text) or "", self._schema)
        except ValueError:
            return False
        for index, texts in enumerate(columns):
            domain, written = self._schema[index].domain, self._written.get(index)
            try:
                for text in self._doubtful(index, texts):
                    pattern_from_text(written(text) if written else text, domain, trim=self._trims)
            except ValueError:
                return False
        return True

    def _doubtful(self, index: int, texts: Any) -> list[str]:
        if texts.null_count == len(texts):
            return []
        type_ = self._schema[index].domain.sql
        # Any number with so few digits is a valid pattern.
        digits = type_.free_digits if isinstance(type_, IntegerType) and index not in self._written else 0
        if digits and PlainNumbers(digits).are_all(texts.drop_null()):
            return []
        different = texts.unique()
        if digits and len(different) > 1:
            plain = rf"^(\*|-?\d{{1,{digits}}})$"
            different = different.filter(pc.invert(pc.match_substring_regex(different, plain)))
        return [text for text in different.to_pylist() if text is not None and text != "*"]

    def quoted(self, columns: Sequence[pa.StringArray]) -> list[pa.StringArray]:
        """Quotes constants whose blanks count, since the notation ignores blanks outside quotes.

        Strips the prefix from values that have one, and writes times without a zone in UTC, in lifespans, too.
        """
        *columns, lifespans = columns
        columns = [
            _each(texts, self._written[place]) if place in self._written else texts
            for place, texts in enumerate(columns)
        ]
        if self._local is not None:
            lifespans = _each(lifespans, self._lifespan)
        if self._trims:
            return [*columns, lifespans]
        return [
            _quoted(texts) if isinstance(attribute.domain.sql, StringType) and has_blank_ends(texts) else texts
            for texts, attribute in zip(columns, self._schema, strict=True)
        ] + [lifespans]


def _ways(options: SourceOptions, place: int) -> list[PrefixRewriting | LocalTimes | LocaleNumbers]:
    """How an attribute's constants are written otherwise than in the notation."""
    type_, prefix = options.schema[place].domain.sql, options.prefixes[place]
    ways: list[PrefixRewriting | LocalTimes | LocaleNumbers] = [PrefixRewriting(prefix)] if prefix else []
    if options.locale is not None and isinstance(type_, DecimalType):
        ways.append(LocaleNumbers(options.locale))
    if (local := LocalTimes.of(type_, options.time_zone)) is not None:
        ways.append(local)
    return ways


def _of_patterns(ways: Sequence[PrefixRewriting | LocalTimes | LocaleNumbers]) -> Callable[[str], str]:
    """What maps the text of a pattern in all these ways, one after the other."""
    return lambda text: reduce(lambda so_far, way: way.of_pattern(so_far), ways, text)


def _each(texts: Any, of: Callable[[Any], str | None]) -> pa.StringArray:
    """Maps each distinct text."""
    distinct = texts.dictionary_encode()
    mapped: pa.StringArray = pa.array(map(of, distinct.dictionary.to_pylist()), pa.string()).take(distinct.indices)
    return mapped


def _quoted(texts: Any) -> pa.StringArray:
    return _each(texts, lambda text: quoted_constant(text) if _is_blank_ended(text) else text)


def _is_blank_ended(text: str) -> bool:
    """Whether a text is an unquoted constant that begins or ends with a blank."""
    tidy = text.strip(BLANKS)
    return tidy != text and tidy not in ("*", "null") and tidy[:1] not in ('"', "[", "(", "{")


UNKNOWN_START = -1
"""The start of an item whose offset in the text is unknown."""


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """Items of one kind, in order.

    Attributes:
        ordinal: Their numbers among all items of the text.
        start: Their offsets in the text, or UNKNOWN_START.
        columns: The texts of each attribute; null for an absent leaf.
    """

    ordinal: Offsets
    start: Offsets
    columns: list[Any]

    def __len__(self) -> int:
        return len(self.ordinal)


@dataclass(slots=True)
class Items:
    """The items of one text.

    Attributes:
        count: The number of items, including invalid ones.
        tuples: The texts of the attributes that are read.
        punctuations: The pattern texts of all attributes, then the texts of lifespans.
        malformed: The items that could not be parsed; positions are ordinals, offsets are in the text.
        void: The number of punctuations that close nothing, by the undeclared leaf that they restrict.
        ended: The sections that end between the items.
        starts: The offset of each item in the text, if all are known.
    """

    count: int
    tuples: ItemTexts
    punctuations: ItemTexts
    malformed: list[Malformed] = field(default_factory=list)
    void: Counter[str] = field(default_factory=Counter)
    ended: list[ClosedSection] = field(default_factory=list)
    starts: Offsets | None = None


@dataclass(slots=True)
class TextRows:
    """Items of one kind, collected row by row."""

    ordinal: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    texts: list[Sequence[Any]] = field(default_factory=list)

    def add(self, ordinal: int, start: int, texts: Sequence[Any]) -> None:
        """Adds one item."""
        self.ordinal.append(ordinal)
        self.start.append(start)
        self.texts.append(texts)

    def columns(self, wanted: TextTypes) -> ItemTexts:
        """Returns the columns of the attributes with these indexes, of these types."""
        columns = [pa.array([row[index] for row in self.texts], kind) for index, kind in wanted.items()]
        return ItemTexts(np.array(self.ordinal, np.int64), np.array(self.start, np.int64), columns)


def template_texts(scanned: ScannedWindow, stream: int, wanted: TextTypes, *, punctuations: bool) -> list[ItemTexts]:
    """Returns the regular items of one kind of a source, by template."""
    return [
        ItemTexts(
            group.ordinal,
            group.matches.start,
            [_column(scanned.window, group.matches, index, kind) for index, kind in wanted.items()],
        )
        for group in scanned.groups
        if group.matches.template.stream == stream and group.matches.template.is_punctuation == punctuations
    ]


def merged_texts(parts: list[ItemTexts], columns: TextTypes) -> ItemTexts:
    """Merges items of one kind, with these columns, in their order."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        nothing = np.zeros(0, np.int64)
        return ItemTexts(nothing, nothing, [pa.array([], kind) for kind in columns.values()])
    ordinal = np.concatenate([part.ordinal for part in parts])
    order = np.argsort(ordinal, kind="stable")
    merged = [reordered(pa.concat_arrays([part.columns[at] for part in parts]), order) for at in range(len(columns))]
    return ItemTexts(ordinal[order], np.concatenate([part.start for part in parts])[order], merged)


def _column(window: TextWindow, matches: Matches, index: int, kind: Any) -> Any:
    source = matches.template.sources[index]
    if source is None:
        return pa.nulls(len(matches), kind)
    if not isinstance(source, int):
        return repeated(source, len(matches))
    texts = slots(window.text, *matches.slot(source))
    texts = without_line_breaks(texts) if matches.template.quoted[source] else texts
    return dereferenced(texts) if window.has_references else texts


@dataclass(frozen=True, slots=True)
class TypedColumns:
    """The values of tuples.

    Attributes:
        columns: The typed columns of the wanted attributes.
        reasons: The first reason for each malformed row; any attribute, wanted or not, can make a row malformed.
        had: The names of the attributes for which any tuple had a value.
    """

    columns: list[pa.Array[Any]]
    reasons: dict[int, str]
    had: tuple[str, ...]


class ItemBatches:
    """Builds record batches of one source's items.

    Attributes:
        read: The attributes whose values are read.
        closes_with_document: Whether the end of a document closes something.
        looked_at: The attributes whose texts are needed, these and others that may be malformed: the types of their
            texts by index.
        tuple_schema: The schema of a batch of tuples: the requested attributes, then `_position`.
        punctuation_schema: The schema of a batch of punctuations: `_position`, then the pattern text of every
            attribute; a last column has the lifespans, if there are any.
    """

    def __init__(
        self, options: SourceOptions, columns: tuple[str, ...], items: ElementNames, patterns: PatternReader
    ) -> None:
        """Reads the attributes `columns` of tuples; `items` are the local names of the items' elements."""
        self._names, self._items, self._patterns = options.schema.names, items, patterns
        hidden = [index for index in options.structural.unique if options.schema[index].name not in columns]
        self._wanted = [*map(options.schema.index, columns), *hidden]
        self._columns = [ColumnReader.of(options, index) for index in self._wanted]
        self._unread = _doubtful(options, self._wanted)
        self.read = frozenset(self._names[index] for index in self._wanted)
        self.looked_at = {
            index: text_type(options.schema[index].domain, options.structures[index])
            for index in (*self._wanted, *self._unread)
        }
        of = [options.paths[index] for index in self.looked_at]
        self._of_document = {place: path for place, path in enumerate(of) if path.function == "document"}
        self._structural = StructuralPunctuations(options) if options.structural else None
        self.closes_with_document = bool(options.structural.documents)
        self.tuple_schema = pa.schema(
            [pa.field(name, column.type) for name, column in zip(columns, self._columns, strict=False)]
            + [pa.field(POSITION, pa.int64(), nullable=False)]
        )
        self.punctuation_schema = pa.schema(
            [pa.field(POSITION, pa.int64(), nullable=False)] + [pa.field(name, pa.string()) for name in self._names]
        )

    def values(self, texts: ItemTexts, documents: Sequence[Document], of: Offsets | None = None) -> TypedColumns:
        """Converts the texts of tuples to values; the texts are those of the attributes in `looked_at`.

        Args:
            texts: The texts of the tuples.
            documents: The documents of the tuples.
            of: The index of each tuple's document; None if there is one.
        """
        found = list(texts.columns)
        for place, path in self._of_document.items():
            names = [path.of_document(document.where) for document in documents]
            one, many = names[0], pa.array(names, pa.string())
            found[place] = repeated(one, len(texts)) if of is None else reordered(many, of)
        columns: list[pa.Array[Any]] = []
        had: list[str] = []
        flaws: list[tuple[int, Mapping[int, str]]] = []
        for index, column, each in zip(self._wanted, self._columns, found, strict=False):
            values, reasons = column.read(each)
            columns.append(values)
            flaws.append((index, reasons))
            if each.null_count < len(each):
                had.append(self._names[index])
        for (index, column), each in zip(self._unread.items(), found[len(columns) :], strict=True):
            flaws.append((index, column.flaws(each)))
        first: dict[int, str] = {}
        for _, reasons in sorted(flaws, key=itemgetter(0)):
            for row, reason in reasons.items():
                first.setdefault(row, reason)
        return TypedColumns(columns, first, tuple(had))

    def parsed(self, items: Items, values: TypedColumns, at: int, text: LocatedText) -> Parsed:
        """Builds the record batches of a text's items, the first at position `at`; their start offsets are known."""
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
        notations = items.punctuations
        *patterns, lifespans = self._patterns.quoted(notations.columns)
        at_ = pa.array(positions.of(notations.ordinal))
        punctuations = pa.RecordBatch.from_arrays([at_, *patterns], schema=self.punctuation_schema)
        if lifespans.null_count < len(lifespans):
            punctuations = punctuations.append_column(LIFESPAN, lifespans)
        if implied:
            punctuations = self._with(punctuations, positions.implied, implied)
        length = items.count + len(implied)
        return Parsed(batch, punctuations, malformed, items.void, values.had, length, starts, text)

    def ended(self, document: Document, at: int) -> Parsed:
        """Builds a piece with what the end of a document closes, from a position on."""
        implied = self._structural.of_document(document) if self._structural is not None else []
        nothing = self.nothing()
        punctuations = self._with(nothing.punctuations, range(at, at + len(implied)), implied) if implied else None
        return replace(nothing, punctuations=punctuations or nothing.punctuations, length=len(implied))

    def nothing(self, closed_at: int | None = None, flaw: Malformed | None = None) -> Parsed:
        """Builds a piece without tuples; with a punctuation of wildcards at a position, or a malformed item."""
        rows = [] if closed_at is None else [{POSITION: closed_at}]
        return Parsed(
            pa.RecordBatch.from_pylist([], self.tuple_schema),
            pa.RecordBatch.from_pylist(rows, self.punctuation_schema),
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


def concatenated(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Concatenates the punctuations of batches, of which only some may have a column of lifespans."""
    tables = [schema.empty_table(), *(pa.Table.from_batches([batch]) for batch in batches)]
    return pa.concat_tables(tables, promote_options="default")


def _doubtful(options: SourceOptions, wanted: Sequence[int]) -> dict[int, ColumnReader]:
    """Attributes that the query does not read, but whose texts are validated; `position()` has no text."""
    others = (index for index in range(len(options.schema)) if index not in wanted)
    columns = {
        index: ColumnReader.of(options, index) for index in others if options.paths[index].function != "position"
    }
    return {index: column for index, column in columns.items() if not column.takes_all}


def _malformed(
    reasons: Mapping[int, str], tuples: ItemTexts, text: LocatedText, items: ElementNames
) -> Iterator[Malformed]:
    """Yields the tuples with values that are not of their types."""
    found = text.fragments(items)
    for row, reason in reasons.items():
        yield text.malformed(int(tuples.ordinal[row]), found[int(tuples.start[row])], "tuple", reason)
