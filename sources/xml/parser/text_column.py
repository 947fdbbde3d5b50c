"""XML texts in a column: each is a document, or a fragment without a root, with tuples and punctuations in it.

A text is a document in memory, which `range_parser` reads like any other; short ones are parsed together
(`small_documents`). A *fragment* begins with a tuple or a punctuation, and may have several side by side, without an
element around them. It is read as if it were within an element that declares the prefix `punct`, as the root of a
document does: whoever writes `<punct:bid>` into a message alone has no other place for that.

A text counts as a whole: if it is not well-formed, it is one malformed item, and nothing else.

In: record batches with the texts, and with columns to keep. Out: for each batch the tuples with the columns kept, the
punctuations, and the malformed items, each with its position, which has the number of its text (`number_of_text`).
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from io import BytesIO
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa
from lxml import etree

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.storage.store import Store
from xmlstream.punct_ns.slices import POSITION
from xmlstream.punct_ns.xml_form import in_quotes
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.options.text_column import TextColumn
from xmlstream.sources.xml.parser.item_batches import concatenated
from xmlstream.sources.xml.parser.malformed import LocatedText, Malformed, set_aside
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.parser.structural_punctuations import StructuralPunctuations
from xmlstream.sources.xml.splits.byte_ranges import ByteRange, RangeEnd
from xmlstream.sources.xml.splits.documents import open_document, opener_of
from xmlstream.sources.xml.splits.namespaces import TupleNamespaces
from xmlstream.sources.xml.splits.prolog import Charset, FlawError, prolog_of_fragment, read_prolog, utf8_of
from xmlstream.sources.xml.splits.split_points import SplitPoint
from xmlstream.sources.xml.splits.tags import local_name

_BITS = 32
"""The position of an item is the number of its text, shifted by so many bits, and its number in the text."""

_LONGEST_SHOWN = 80
"""The number of characters that a message shows of a kept value."""


@dataclass(frozen=True, slots=True)
class ParsedTexts:
    """What the texts of a record batch have, each item with its position.

    Attributes:
        tuples: The attributes of the tuples, typed, then the columns kept, then `_position`.
        punctuations: `_position`, then the pattern text of every attribute and column kept, null for a wildcard; a last
            column has the lifespans, if there are any.
        malformed: The malformed items, each after its position.
        void: The number of ignored punctuations, by the undeclared leaf that they restrict.
        had: The attributes that at least one tuple had.
    """

    tuples: pa.RecordBatch
    punctuations: pa.RecordBatch
    malformed: list[tuple[int, DeadLetter]]
    void: Counter[str]
    had: frozenset[str]


class TextParser:
    """Parses the texts of a column, batch by batch."""

    def __init__(self, column: TextColumn) -> None:
        self._column = column
        # Each text is decoded before it is parsed, whatever encoding it declares. Ids are unique among all texts.
        options = column.options.replace(encoding="utf-8", columns=None, uniqueIds=None)
        self._parser, self._forms = RangeParser(options), _Forms(options)
        self._structural = StructuralPunctuations(column.options)

    def of(self, batch: pa.RecordBatch, at: int = 0) -> ParsedTexts:
        """Returns what the texts of a batch have; bad input raises no error: it is among the malformed items.

        Args:
            batch: The batch.
            at: The number of its first text.
        """
        texts = _Texts(self._column, batch, at, self._forms)
        pieces = [piece for (piece,) in self._parser.parse_many(texts.ranges, at_hand=True)]
        found = [*texts.undecoded, *(one for piece in pieces for one in piece.malformed)]
        broken = {number_of_text(one.position): one for one in found if one.kind == "document"}
        malformed = [one for one in found if number_of_text(one.position) not in broken]
        malformed += map(texts.as_one_item, broken.values())
        tuples = pa.Table.from_batches([piece.tuples for piece in pieces], self._parser.tuple_schema)
        tuples = _in_order(tuples, broken)
        schema = self._parser.punctuation_schema
        parts = [piece.punctuations for piece in pieces] + self._implied(tuples, schema)
        punctuations = _in_order(concatenated(parts, schema), broken)
        rows = pa.array(number_of_text(tuples[POSITION].to_numpy()) - at, pa.int64())
        place = len(self._column.options.schema)
        for number, name in enumerate(self._column.keep, place):
            column = batch.column(name).take(rows)
            tuples = tuples.add_column(number, batch.schema.field(name), column)
            punctuations = punctuations.add_column(number + 1, name, pa.nulls(len(punctuations), pa.string()))
        return ParsedTexts(
            _one_batch(tuples),
            _one_batch(punctuations),
            texts.letters(malformed),
            sum((piece.void for piece in pieces), Counter[str]()),
            frozenset(name for piece in pieces for name in piece.had),
        )

    def _implied(self, tuples: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
        """Returns what the unique ids of a batch imply; each punctuation has the position of the tuple before it."""
        unique = self._column.options.structural.unique
        if not unique or not len(tuples):
            return []
        values = {index: tuples.column(index).combine_chunks() for index in unique}
        at, names = tuples[POSITION].to_pylist(), self._column.options.schema.names
        implied = self._structural.of(values, np.arange(len(tuples)), [])
        rows = [{POSITION: at[one.after - 1], **dict(zip(names, one.texts, strict=True))} for one in implied]
        return [pa.RecordBatch.from_pylist(rows, schema)]


def number_of_text(position: Any) -> Any:
    """Returns the number of the text of an item by its position, or of many by theirs."""
    return position >> _BITS


def _in_order(items: pa.Table, without: Iterable[int]) -> pa.Table:
    """Returns items by position, without those of some texts."""
    at = items[POSITION].to_numpy()
    order = np.argsort(at, kind="stable")
    order = order[~np.isin(number_of_text(at[order]), np.array([*without], np.int64))]
    return items.take(pa.array(order, pa.int64()))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns: list[Any] = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


class _Texts:
    """The texts of a record batch: a store of documents, whose keys are the rows.

    Attributes:
        ranges: The range of each text that is not blank; texts of one form are neighbours, and are parsed together.
        undecoded: The texts that are not in their encoding.
    """

    def __init__(self, column: TextColumn, batch: pa.RecordBatch, first: int, forms: _Forms) -> None:
        self._batch, self._column, self._forms = batch, column, forms
        self._texts: dict[str, bytes] = {}
        self.undecoded: list[Malformed] = []
        self._values = batch.column(column.column)
        is_binary = pa.types.is_binary(self._values.type) or pa.types.is_large_binary(self._values.type)
        encoding = column.options.encoding if is_binary else "utf-8"
        found: list[tuple[bytes, str, ByteRange]] = []
        for row, value in enumerate(self._values.cast(pa.large_binary()).to_pylist()):
            if value is None:
                continue
            document, at = Document(cast(Store, self), str(row)), (first + row) << _BITS
            self._texts[document.key] = value
            try:
                form = forms.of(utf8_of(self._decompressed(document), encoding))
            except FlawError as flaw:
                self.undecoded.append(Malformed(at, document, flaw.offset, "document", flaw.reason, None))
                continue
            if form is not None:
                self._texts[document.key] = form.text
                ends: RangeEnd = "split" if form.open else "root"
                end = len(form.text)
                one = ByteRange(document, at, 0, end, form.open, ends, namespaces=form.tuples)
                found.append((form.begins, str(form.tuples), one))
        self.ranges = [one for *_, one in sorted(found, key=itemgetter(0, 1))]
        self._fragments = {one.document.key: one.open for one in self.ranges if one.open}

    def open(self, key: str, tag: str | None = None, size: int | None = None) -> BinaryIO:
        """Opens the text of a row."""
        return BytesIO(self._texts[key])

    def source(self, key: str, tag: str | None = None, size: int | None = None) -> BinaryIO:
        """Opens the text of a row."""
        return BytesIO(self._texts[key])

    def _decompressed(self, document: Document) -> bytes:
        """Returns a text that may be compressed; FlawError if it cannot be decompressed, or is too long."""
        text, limit = self._texts[document.key], self._column.options.max_item_bytes
        if opener_of(text) is None:
            return text
        try:
            with open_document(document) as file:
                text = file.read(limit + 1)
        except FlawError as flaw:
            raise FlawError(flaw.reason, 0) from None
        if len(text) > limit:
            raise FlawError(f"the text has more than {limit} bytes when it is decompressed", 0)
        return text

    def where(self, key: str = "") -> str:
        """Names the text of a row by the columns kept; by its own column if there are none."""
        values = ((name, self._batch.column(name)[int(key)].as_py()) for name in self._column.keep)
        return ", ".join(f"{name}={_shown(value)}" for name, value in values) or self._column.options.path

    def as_one_item(self, fault: Malformed) -> Malformed:
        """Returns the text of a fault as one malformed item."""
        text = self._texts[fault.document.key]
        around = tuple(tag.encode() for tag in self._fragments.get(fault.document.key, ()))
        if around and isinstance(LocatedText(text, around, around, fault.document, 0, "utf-8").tree(), Exception):
            # Without the end of what is around it, the message names only the text's own elements.
            located = LocatedText(text, around, (), fault.document, 0, "utf-8")
            error = located.tree()
            assert isinstance(error, etree.XMLSyntaxError)
            fault = replace(located.fault(error, 0, 0, len(text), around), position=fault.position)
        given = self._values[int(fault.document.key)].as_py()
        raw = given if isinstance(given, str) else text.decode("utf-8", "replace")
        return replace(fault, kind="tuple", raw=raw, within=None)

    def letters(self, malformed: Iterable[Malformed]) -> list[tuple[int, DeadLetter]]:
        """Returns malformed items as they are set aside, in order, each after its position."""
        around = self._forms.around
        found = set_aside(malformed, "utf-8", whole=self._column.options.mode == "PERMISSIVE")
        within = [(letter.within or "").removeprefix(around) or None for letter in found]
        return [(one.position, replace(one, position=-1, within=tags)) for one, tags in zip(found, within, strict=True)]


def _shown(value: Any) -> str:
    """Returns a value as a message shows it, with bytes as text."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else "null" if value is None else str(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


_UTF8 = Charset()


class _Form(NamedTuple):
    """How a text is read.

    Attributes:
        text: The text, that of a fragment without its prolog.
        begins: What it begins with, up to the end of the first tag of a document; the same for texts of one form.
        open: The tag around a fragment.
        tuples: The namespace of its tuples, as far as it matters.
    """

    text: bytes
    begins: bytes
    open: tuple[str, ...]
    tuples: tuple[str | None, ...]


class _Forms:
    """Tells documents from fragments, and finds the namespace of the tuples of each text, which stands by itself."""

    def __init__(self, options: SourceOptions) -> None:
        self._options, self._names = options, options.unsplit
        self.around = f"<texts xmlns:punct={in_quotes(options.punctuation_namespace)}>"
        uri = re.escape(options.punctuation_namespace.encode())
        self._of_tag = lru_cache(maxsize=256)(self._of_first)
        self._declares_punctuations = re.compile(rb"xmlns:[^\s=]+\s*=\s*(?:\"" + uri + rb"\"|'" + uri + rb"')")

    def of(self, text: bytes) -> _Form | None:
        """Returns how a text in UTF-8 is read; None if it is blank."""
        first, begin = _FIRST_TAG.match(text), 0
        if first is None:
            if not text.strip(_BLANKS):
                return None
            with contextlib.suppress(FlawError):  # the parser will report it
                begin = prolog_of_fragment(text, self._options.doctype)
            first = _FIRST_TAG.match(text, begin)
        if first is None or local_name(first[0].strip(_BLANKS)) not in self._names:
            end = text.find(b">", begin) + 1
            return _Form(text, text[:end], (), self._namespaces(text, end, None))
        # Lines and columns stay. What is before the first element has been read, and is not allowed in another.
        text = _NO_BREAK.sub(b" ", text[:begin]) + text[begin:] if begin else text
        return _Form(text, b"", (self.around,), self._namespaces(text, 0, self.around.encode()))

    def _namespaces(self, text: bytes, end: int, root: bytes | None) -> tuple[str | None, ...]:
        """Returns the namespace of the tuples of a text: that of the first one; nothing if it does not matter.

        Args:
            text: The text.
            end: The offset up to which it is that of many.
            root: The start tag around a fragment.
        """
        begins = text[:end]
        if text.find(b"xmlns", end) < 0 and begins.count(b"xmlns") == len(
            self._declares_punctuations.findall(begins) if begins else ()
        ):
            return ("",)
        if root is None:
            try:
                prolog = read_prolog(text, complete=True, encoding="utf-8")
            except FlawError:
                return ()  # the parser will report it
            assert prolog is not None
            return self._of_first(text[prolog.content :], prolog.root)
        tag = text[: text.find(b">") + 1]
        return (self._of_tag(tag, root) if len(tag) < _LONGEST_KNOWN else ()) or self._of_first(text, root)

    def _of_first(self, text: bytes, root: bytes) -> tuple[str | None, ...]:
        names = TupleNamespaces(self._options, ())
        names.look(text, SplitPoint(0, (root,)), _UTF8)
        return names.known


_LONGEST_KNOWN = 1 << 10  # bytes of a tag whose namespaces are remembered
_BLANKS = b" \t\r\n"
_NO_BREAK = re.compile(rb"[^\r\n]")
_FIRST_TAG = re.compile(rb"[ \t\r\n]*<[^\s<>/!?\"'=]+")
