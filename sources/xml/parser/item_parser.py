"""From a text of a document to the items of one source in it: tuples, punctuations, and what was malformed.

The regular items of a text are peeled off it (`peel`); where that cannot be done, or nothing is regular, they are taken
from libxml2's tree; and where that finds something malformed, item by item, so that a bad item takes no other with it
and is named with its line. All three read alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from lxml import etree

from punct_ns.slices import POSITION
from sources.xml.options.source import SourceOptions
from sources.xml.parser.columns import Column
from sources.xml.parser.elements import DroppedError, ItemReader, StrayError
from sources.xml.parser.item_texts import UNKNOWN, Items, Rows, Texts, regular, together
from sources.xml.parser.malformed import Kind, Malformed
from sources.xml.parser.parsed import Content, Parsed
from sources.xml.parser.patterns import PatternTexts
from sources.xml.parser.sections import Ended, SectionWalk
from sources.xml.parser.structural_punctuations import Derivation, Places, Said
from sources.xml.parser.templates.template_scan import Peeled
from sources.xml.parser.text import UnreadableError
from sources.xml.splits.split_points import Fragment, fragments
from sources.xml.splits.tags import parse_content


class ItemParser:
    """Parses the items of one source."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        """Of tuples, the attributes `columns`; the texts of the others are looked at, for what is malformed."""
        self._options = options
        self.item = options.row_tag.rpartition("}")[2].encode()
        hidden = [index for index in options.structural.unique if options.schema[index].name not in columns]
        self._wanted = [*map(options.schema.index, columns), *hidden]
        self._columns = [Column.of(options, index) for index in self._wanted]
        self._unread = _doubtful(options, self._wanted)
        self._looked_at = [*self._wanted, *self._unread]
        self.reader = ItemReader(options, tuple(options.schema[index].name for index in self._looked_at))
        self._walk = SectionWalk(options, self.reader)
        self._derivation = Derivation(options) if options.structural else None
        self._all = range(len(options.schema))
        self._patterns = PatternTexts(options)
        self.tuple_schema = pa.schema(
            [pa.field(name, column.type) for name, column in zip(columns, self._columns, strict=False)]
            + [pa.field(POSITION, pa.int64(), nullable=False)]
        )
        self.punctuation_schema = pa.schema(
            [pa.field(POSITION, pa.int64(), nullable=False)]
            + [pa.field(name, pa.string()) for name in options.schema.names]
        )

    @property
    def read(self) -> frozenset[str]:
        """The attributes whose values are looked for."""
        return frozenset(self._options.schema[index].name for index in self._wanted)

    @property
    def stops(self) -> bool:
        """Whether what is malformed ends the reading."""
        return self._options.mode == "FAILFAST"

    @property
    def peels(self) -> bool:
        """Whether regular items can be told without what is around them."""
        return not self.reader.needs_siblings and not self._options.structural.sections

    def regular(self, peeled: Peeled, stream: int) -> Items | None:
        """Its items in a text that was taken apart, as those of one of several sources; None if one is malformed."""
        tuples, punctuations, void = Rows(), Rows(), Counter[str]()
        for ordinal, element, of in peeled.irregular:
            if of != stream:
                continue
            try:
                if self.reader.is_punctuation(element):
                    punctuations.add(ordinal, UNKNOWN, self.reader.patterns(element))
                else:
                    tuples.add(ordinal, UNKNOWN, self.reader.values(element))
            except DroppedError as dropped:
                void[dropped.leaf] += 1
            except UnreadableError:
                return None
        said = together(
            [*regular(peeled, stream, self._all, punctuations=True), punctuations.columns(self._all)], len(self._all)
        )
        if not self._patterns.are_readable(said.columns):
            return None
        read = [*regular(peeled, stream, self._looked_at, punctuations=False), tuples.columns(self._looked_at)]
        return Items(peeled.count, together(read, len(self._looked_at)), said, [], void)

    def items(self, text: Content, root: etree._Element | etree.XMLSyntaxError) -> Items:
        """All the items of a text that has been parsed.

        Of one that is not well-formed, what stands before the fault, which is the last thing that is malformed.
        """
        if isinstance(root, etree.XMLSyntaxError):
            return self._by_piece(text, root)
        tuples, punctuations, void, count, ended = Rows(), Rows(), Counter[str](), 0, list[Ended]()
        try:
            for found in self._walk.walk(root, len(text.after)):
                if isinstance(found, Ended):
                    ended.append(found)
                    continue
                try:
                    self._take(found, count, UNKNOWN, tuples, punctuations)
                except DroppedError as dropped:
                    void[dropped.leaf] += 1
                count += 1
        except UnreadableError:
            return self._by_piece(text)
        return Items(count, tuples.columns(self._looked_at), punctuations.columns(self._all), [], void, ended)

    def _by_piece(self, text: Content, fault: etree.XMLSyntaxError | None = None) -> Items:
        """The items of a text one by one, so that a bad one takes no other with it; if it has a fault, up to there."""
        tuples, punctuations, malformed, void, count = Rows(), Rows(), list[Malformed](), Counter[str](), 0
        ended: list[Ended] = []
        numbers: dict[int, int] = {}
        for piece in fragments(text.content, text.open, text.after, self.item):
            content = text.content[piece.start : piece.end]
            try:
                root = parse_content(content, piece.open, piece.after)
            except etree.XMLSyntaxError as error:
                malformed.append(_fault(error, text, count, piece.start, piece.end, piece.open))
                break
            for found in self._walk.walk(root, len(piece.after)):
                if isinstance(found, Ended):
                    ended.append(replace(found, after=count))
                    continue
                is_tuple = not self.reader.is_punctuation(found)
                outermost = sum(1 for _ in found.iterancestors()) <= (0 if piece.is_root else len(piece.open))
                # Of what stands in another item, the neighbours are there to be counted.
                number = _number(numbers, piece) if outermost and is_tuple else None
                try:
                    self._take(found, count, piece.start, tuples, punctuations, number)
                except DroppedError as dropped:
                    void[dropped.leaf] += 1
                except UnreadableError as error:
                    kind: Kind = "tuple" if is_tuple else "punctuation"
                    if isinstance(error, StrayError):
                        kind = "document"
                    one = _malformed(count, text, piece, kind, str(error))
                    if not outermost:
                        one = replace(one, raw=etree.tostring(found, encoding="unicode", with_tail=False))
                    malformed.append(one)
                    if kind == "document":
                        break
                count += 1
            if malformed and malformed[-1].kind == "document":
                break
        else:
            if fault is not None:
                malformed.append(_fault(fault, text, count, 0, len(text.content), text.open))
        columns = tuples.columns(self._looked_at), punctuations.columns(self._all)
        return Items(count, *columns, malformed, void, ended)

    def _take(
        self,
        element: etree._Element,
        ordinal: int,
        start: int,
        tuples: Rows,
        punctuations: Rows,
        number: int | None = None,
    ) -> None:
        if not self.reader.is_punctuation(element):
            tuples.add(ordinal, start, self.reader.values(element, number))
            return
        patterns = self.reader.patterns(element)
        self._patterns.check(patterns)
        punctuations.add(ordinal, start, patterns)

    def typed(self, items: Items, at: int, text: Content) -> Parsed:
        """The items of a text as record batches, the first at position `at`."""
        tuples = items.tuples
        columns, wrong, had = self._values(tuples.columns)
        if any(tuples.start[row] == UNKNOWN for row in wrong):
            return self.typed(self._by_piece(text), at, text)
        malformed, ordinals, starts = items.malformed, tuples.ordinal, tuples.start
        if wrong:
            malformed = sorted([*malformed, *_wrong(wrong, tuples, text, self.item)], key=lambda one: one.position)
            keep = np.ones(len(tuples), np.bool_)
            keep[list(wrong)] = False
            columns, ordinals = [column.filter(pa.array(keep)) for column in columns], ordinals[keep]
            starts = starts[keep]
        derived: list[Said] = []
        if self._derivation is not None:
            derived = self._derivation.of(dict(zip(self._wanted, columns, strict=True)), ordinals, items.ended)
        places = Places(at, derived)
        shown = columns[: len(self.tuple_schema) - 1]
        batch = pa.RecordBatch.from_arrays([*shown, pa.array(places.of(ordinals))], schema=self.tuple_schema)
        malformed = [replace(one, position=int(places.of(np.array(one.position)))) for one in malformed]
        said = items.punctuations
        punctuations = pa.RecordBatch.from_arrays(
            [pa.array(places.of(said.ordinal)), *self._patterns.quoted(said.columns)], schema=self.punctuation_schema
        )
        if derived:
            punctuations = self._with(punctuations, places.derived, derived)
        length = items.count + len(derived)
        return Parsed(batch, punctuations, malformed, items.void, tuple(had), length, starts, text)

    def one_by_one(self, text: Content) -> Parsed:
        """The items of a text once more, so that it is known where each begins; they are numbered from 0."""
        return self.typed(self._by_piece(text), 0, text)

    def _values(self, texts: Sequence[pa.StringArray]) -> tuple[list[pa.Array[Any]], dict[int, str], list[str]]:
        """The wanted attributes, typed; of each malformed row the first reason; and the names of which any had.

        Malformed is what any attribute of is, wanted or not.
        """
        columns: list[pa.Array[Any]] = []
        had: list[str] = []
        flaws: list[tuple[int, Mapping[int, str]]] = []
        for index, column, each in zip(self._wanted, self._columns, texts, strict=False):
            values, reasons = column.read(each)
            columns.append(values)
            flaws.append((index, reasons))
            if each.null_count < len(each):
                had.append(self._options.schema[index].name)
        for (index, column), each in zip(self._unread.items(), texts[len(columns) :], strict=True):
            flaws.append((index, column.flaws(each)))
        wrong: dict[int, str] = {}
        for _, reasons in sorted(flaws, key=itemgetter(0)):
            for row, reason in reasons.items():
                wrong.setdefault(row, reason)
        return columns, wrong, had

    def _with(self, punctuations: pa.RecordBatch, places: Sequence[int], derived: Sequence[Said]) -> pa.RecordBatch:
        columns = [places, *zip(*(one.texts for one in derived), strict=True)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.punctuation_schema, strict=True)]
        more = pa.RecordBatch.from_arrays(arrays, schema=self.punctuation_schema)
        both = pa.Table.from_batches([punctuations, more]).sort_by(POSITION)
        return both.combine_chunks().to_batches()[0]

    def nothing(self, closed_at: int | None = None, flaw: Malformed | None = None) -> Parsed:
        """No tuples; an all-wildcard punctuation at a position, or something malformed."""
        said = [] if closed_at is None else [{POSITION: closed_at}]
        return Parsed(
            pa.RecordBatch.from_pylist([], self.tuple_schema),
            pa.RecordBatch.from_pylist(said, self.punctuation_schema),
            [flaw] if flaw is not None else [],
            length=1,
        )


def _doubtful(options: SourceOptions, wanted: Sequence[int]) -> dict[int, Column]:
    """The attributes beside those that are wanted that a text may be no value of; a row's number is no text."""
    others = (index for index in range(len(options.schema)) if index not in wanted)
    columns = {index: Column.of(options, index) for index in others if options.paths[index].function != "position"}
    return {index: column for index, column in columns.items() if not column.takes_all}


def _number(numbers: dict[int, int], piece: Fragment) -> int:
    """Which tuple of its parent a piece is."""
    numbers[piece.parent] = numbers.get(piece.parent, 0) + 1
    return numbers[piece.parent]


def _wrong(wrong: Mapping[int, str], tuples: Texts, text: Content, item: bytes) -> Iterator[Malformed]:
    """Tuples that were read but have values not of their types."""
    found = text.fragments(item)
    for row, reason in wrong.items():
        piece = found[int(tuples.start[row])]
        yield _malformed(int(tuples.ordinal[row]), text, piece, "tuple", reason)


def _malformed(ordinal: int, text: Content, piece: Fragment, kind: Kind, reason: str) -> Malformed:
    raw, within = piece.original(text.content)
    return Malformed(
        ordinal,
        text.path,
        text.place(piece.start),
        kind,
        reason,
        raw.decode("utf-8", "replace"),
        within.decode("utf-8", "replace"),
    )


def _fault(
    error: etree.XMLSyntaxError, text: Content, ordinal: int, start: int, end: int, open_: tuple[bytes, ...]
) -> Malformed:
    """Where a text is not well-formed; a part of it that begins among the elements `open_` says so."""
    content = text.content[start:end]
    place = text.place(start + _offset(error, content, open_))
    reason = str(error.msg).partition(", line ")[0]
    return Malformed(ordinal, text.path, place, "document", reason, content.decode("utf-8", "replace"))


def _offset(error: etree.XMLSyntaxError, content: bytes, open_: tuple[bytes, ...]) -> int:
    """Where in the content the parser stopped."""
    line, column = error.position
    start = 0
    for _ in range(line - 1):
        start = content.find(b"\n", start) + 1
    before = len(b"".join(open_) or b"<x/>") if line == 1 else 0
    return max(0, min(start + column - 1 - before, len(content)))
