"""The parser of one source's items: turns a text of a document into tuples, punctuations, and malformed items.

Regular items of a text are matched against templates (`template_scan`). If that is impossible, or no item is
regular, the items are read from libxml2's tree; if the tree has something malformed, item by item, so that a bad item
affects no other and is reported with its line. All three ways give the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from lxml import etree

from xmlstream.sources.xml.options.schema_documents import validator
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.elements import StrayElementError, UnreadableError
from xmlstream.sources.xml.parser.item_batches import (
    UNKNOWN_START,
    ItemBatches,
    Items,
    ItemTexts,
    Parsed,
    PatternReader,
    TextRows,
    merged_texts,
    template_texts,
)
from xmlstream.sources.xml.parser.item_reader import ItemReader, VoidPunctuationError
from xmlstream.sources.xml.parser.malformed import LocatedText, Malformed, MalformedKind
from xmlstream.sources.xml.parser.structural_punctuations import ClosedSection, SectionWalk
from xmlstream.sources.xml.parser.template_scan import ScannedWindow
from xmlstream.sources.xml.parser.token_items import OtherItem, TokenReader
from xmlstream.sources.xml.parser.token_window import TokenWindow, UndecidedError
from xmlstream.sources.xml.splits.all_tags import Fragment, Offsets, Tags, fragments
from xmlstream.sources.xml.splits.split_points import TOO_LONG
from xmlstream.sources.xml.splits.tags import (
    is_too_deep,
    is_well_formed,
    local_name,
    parse_content,
    parse_reason,
    tag_name,
)


class ItemParser:
    """Parses the items of one source.

    Attributes:
        names: The local names of their elements.
        reader: The reference reader of one item.
        batches: The builder of their record batches.
        stops: Whether a malformed item ends the reading.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        """Reads the attributes `columns` of tuples; the texts of the others are only checked."""
        self.names = frozenset(name.encode() for name in options.row_names)
        self._patterns = PatternReader(options)
        self.batches = ItemBatches(options, columns, self.names, self._patterns)
        self._looked_at = self.batches.looked_at
        self.reader = ItemReader(options, tuple(options.schema[index].name for index in self._looked_at))
        self._tokens = TokenReader(options, self.reader, self._looked_at)
        self._validator = validator(options.validate, options.row_tags) if options.validate else None
        self._walk = SectionWalk(options, self.reader)
        # The attributes, and the lifespan.
        self._all = dict.fromkeys(range(len(options.schema) + 1), pa.string())
        self._has_sections = bool(options.structural.sections)
        self.stops = options.mode == "FAILFAST"

    @property
    def has_templates(self) -> bool:
        """Whether regular items can be read without their surroundings, and without their elements."""
        return not (self.reader.needs_siblings or self._has_sections or self.reader.parents or self._validator)

    @property
    def reads_tokens(self) -> bool:
        """Whether items can be read from tokens."""
        return self._tokens.is_able and self._validator is None

    def template_items(self, scanned: ScannedWindow, stream: int) -> Items | None:
        """Returns the items of one of several sources in a scanned text; None if one of them is malformed."""
        regular = template_texts(scanned, stream, self._all, punctuations=True)
        values = template_texts(scanned, stream, self._looked_at, punctuations=False)
        irregular = [OtherItem(ordinal, element, None) for ordinal, element, of in scanned.irregular if of == stream]
        return self._with_others(scanned.count, values, regular, irregular)

    def token_items(self, window: TokenWindow) -> Items | None:
        """Returns the items of a text from its tokens; None if that is not possible, or one of them is malformed."""
        try:
            found = self._tokens.items(window)
        except UndecidedError:
            return None
        starts = window.start[found.elements]
        if found.is_nested:
            starts = np.full(len(starts), UNKNOWN_START, np.int64)
        decided = ItemTexts(found.decided, starts[found.decided], found.columns)
        items = self._with_others(len(starts), [decided], [], found.others, starts)
        return None if items is None else replace(items, ended=found.ended, starts=None if found.is_nested else starts)

    def _with_others(
        self,
        count: int,
        values: list[ItemTexts],
        patterns: list[ItemTexts],
        others: list[OtherItem],
        starts: Offsets | None = None,
    ) -> Items | None:
        """Returns `count` items, with the other items read from their elements; None if one of these is malformed."""
        tuples, punctuations, void = TextRows(), TextRows(), Counter[str]()
        for other in others:
            ordinal, element = other.ordinal, other.element
            start = UNKNOWN_START if starts is None else int(starts[ordinal])
            try:
                if self.reader.is_punctuation(element):
                    texts = [*self.reader.patterns(element), self.reader.lifespan(element)]
                    punctuations.add(ordinal, start, texts)
                else:
                    tuples.add(ordinal, start, self.reader.values(element, other.number))
            except VoidPunctuationError as error:
                void[error.leaf] += 1
            except UnreadableError:
                return None
        pattern_texts = merged_texts([*patterns, punctuations.columns(self._all)], self._all)
        if not self._patterns.are_readable(pattern_texts.columns):
            return None
        read = merged_texts([*values, tuples.columns(self._looked_at)], self._looked_at)
        return Items(count, read, pattern_texts, [], void)

    def items(self, text: LocatedText, root: etree._Element | etree.XMLSyntaxError) -> Items:
        """Returns all items of a parsed text.

        If the text is not well-formed: the items before the fault; the fault is the last malformed entry.
        """
        if isinstance(root, etree.XMLSyntaxError):
            return self._nothing_but(text, root) if self.reader.needs_unit else self._by_fragment(text, root)
        tuples, punctuations, void, count, ended = TextRows(), TextRows(), Counter[str](), 0, list[ClosedSection]()
        try:
            for found in self._walk.walk(root, len(text.after)):
                if isinstance(found, ClosedSection):
                    ended.append(found)
                    continue
                try:
                    self._take(found, count, UNKNOWN_START, tuples, punctuations)
                except VoidPunctuationError as error:
                    void[error.leaf] += 1
                count += 1
        except UnreadableError:
            return self._by_fragment(text)
        return Items(count, tuples.columns(self._looked_at), punctuations.columns(self._all), [], void, ended)

    def too_long(self, text: LocatedText, limit: int) -> Items:
        """Returns an item that begins with this text, and is too long, as malformed; nothing for other elements."""
        tags = Tags.of(text.content, len(text.open))
        tag = text.content[: tags.end[0]] if len(tags.end) else b"<" + local_name(text.content) + b">"
        empty = tag + b"</" + tag_name(tag) + b">"
        found = next(self.reader.items(parse_content(empty, text.open, text.open)), None)
        none, malformed = TextRows(), list[Malformed]()
        if found is not None:
            kind: MalformedKind = "punctuation" if self.reader.is_punctuation(found) else "tuple"
            fragment = Fragment(0, len(text.content), text.open, text.open, tag)
            malformed.append(text.malformed(0, fragment, kind, f"{TOO_LONG} {limit} bytes"))
        return Items(len(malformed), none.columns(self._looked_at), none.columns(self._all), malformed)

    def _nothing_but(self, text: LocatedText, fault: etree.XMLSyntaxError) -> Items:
        """Returns the fault of a text, without items: they cannot be read, as their surroundings are incomplete."""
        none = TextRows()
        malformed = [text.fault(fault, 0, 0, len(text.content), text.open)]
        return Items(0, none.columns(self._looked_at), none.columns(self._all), malformed)

    def _by_fragment(self, text: LocatedText, fault: etree.XMLSyntaxError | None = None) -> Items:
        """Reads the items of a text one by one, so that a bad item affects no other; up to a fault, if there is one."""
        tuples, punctuations, malformed, void, count = TextRows(), TextRows(), list[Malformed](), Counter[str](), 0
        ended: list[ClosedSection] = []
        numbers: dict[int, int] = {}
        wholes = self._wholes(text)
        for fragment in fragments(text.content, text.open, text.after, self.names):
            content = text.content[fragment.start : fragment.end]
            try:
                found_here = self._walk.walk(parse_content(content, fragment.open, fragment.after), len(fragment.after))
            except etree.XMLSyntaxError as error:
                malformed.append(self._unparsed(error, text, fragment, count, numbers))
                count += malformed[-1].kind != "document"
                found_here = iter(())
            for found in found_here:
                if isinstance(found, ClosedSection):
                    ended += [] if self.reader.needs_unit else [replace(found, after=count)]
                    continue
                whole = next(wholes, None)
                is_tuple = not self.reader.is_punctuation(found)
                outermost = sum(1 for _ in found.iterancestors()) <= (0 if fragment.is_root else len(fragment.open))
                # An item inside another one still has its neighbours, which count it.
                number = _number(numbers, fragment) if outermost and is_tuple else None
                try:
                    self._take(found, count, fragment.start, tuples, punctuations, number, whole)
                except VoidPunctuationError as void_error:
                    void[void_error.leaf] += 1
                except UnreadableError as error:
                    kind: MalformedKind = "tuple" if is_tuple else "punctuation"
                    if isinstance(error, StrayElementError):
                        kind = "document"
                    one = text.malformed(count, fragment, kind, str(error))
                    if not outermost:
                        one = replace(one, raw=etree.tostring(found, encoding="unicode", with_tail=False))
                    malformed.append(one)
                    if kind == "document":
                        break
                count += 1
            if malformed and malformed[-1].kind == "document":
                break
        else:
            if fault is not None and not (is_too_deep(fault) and malformed):
                malformed.append(text.fault(fault, count, 0, len(text.content), text.open))
        columns = tuples.columns(self._looked_at), punctuations.columns(self._all)
        # A section whose leaf counts is read as a whole.
        ended += [each for each in self._whole_ends(text) if each.after <= count]
        return Items(count, *columns, malformed, void, ended)

    def _whole_ends(self, text: LocatedText) -> Iterator[ClosedSection]:
        """Yields the ends of sections, each with the elements around it if the reader needs them."""
        root = text.tree() if self.reader.needs_unit and self._has_sections else None
        if isinstance(root, etree._Element):
            yield from (each for each in self._walk.walk(root, len(text.after)) if isinstance(each, ClosedSection))

    def _unparsed(
        self, error: etree.XMLSyntaxError, text: LocatedText, fragment: Fragment, count: int, numbers: dict[int, int]
    ) -> Malformed:
        """Reports an unparsed fragment: an item nested too deeply is malformed alone, other faults end the reading."""
        content = text.content[fragment.start : fragment.end]
        may_go_on = is_too_deep(error) and fragment.tag and not fragment.is_root
        if may_go_on and is_well_formed(content, fragment.open, fragment.after):
            start_tag = fragment.tag + b"</" + tag_name(fragment.tag) + b">"
            found = next(self.reader.items(parse_content(start_tag, fragment.open, fragment.open)), None)
            if found is not None and self.reader.is_punctuation(found):
                return text.malformed(count, fragment, "punctuation", parse_reason(error))
            if found is not None:
                _number(numbers, fragment)
                return text.malformed(count, fragment, "tuple", parse_reason(error))
        return text.fault(error, count, fragment.start, fragment.end, fragment.open)

    def _wholes(self, text: LocatedText) -> Iterator[etree._Element]:
        """Yields the items of a text within their surroundings, if the reader needs these."""
        root = text.tree() if self.reader.needs_unit else None
        if isinstance(root, etree._Element):
            yield from list(self.reader.items(root))

    def _take(
        self,
        element: etree._Element,
        ordinal: int,
        start: int,
        tuples: TextRows,
        punctuations: TextRows,
        number: int | None = None,
        whole: etree._Element | None = None,
    ) -> None:
        if not self.reader.is_punctuation(element):
            values = self.reader.values(element, number, whole)
            if self._validator is not None and (flaw := self._validator.flaw(element)) is not None:
                raise UnreadableError(flaw)
            tuples.add(ordinal, start, values)
            return
        patterns = [*self.reader.patterns(element, whole), self.reader.lifespan(element)]
        self._patterns.check(patterns)
        punctuations.add(ordinal, start, patterns)

    def typed(self, items: Items, at: int, text: LocatedText) -> Parsed:
        """Builds the record batches of a text's items, the first at position `at`."""
        values = self.batches.values(items.tuples, [text.document])
        if any(items.tuples.start[row] == UNKNOWN_START for row in values.reasons):
            return self.typed(self._by_fragment(text), at, text)
        return self.batches.parsed(items, values, at, text)

    def one_by_one(self, text: LocatedText) -> Parsed:
        """Reads the items of a text again to locate the start of each; positions count from 0."""
        return self.typed(self._by_fragment(text), 0, text)


def _number(numbers: dict[int, int], fragment: Fragment) -> int:
    """Returns the number of a fragment among the tuples of its parent."""
    numbers[fragment.parent] = numbers.get(fragment.parent, 0) + 1
    return numbers[fragment.parent]
