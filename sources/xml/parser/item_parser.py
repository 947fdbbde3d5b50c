"""The parser of one source's items: from a text of a document to tuples, punctuations, and what was malformed.

The regular items of a text are matched against templates (`template_scan`); where that cannot be done, or nothing is
regular, they are taken from libxml2's tree; and where that finds something malformed, item by item, so that a bad item
takes no other with it and is named with its line. All three read alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from sources.xml.options.source import SourceOptions
from sources.xml.parser.elements import StrayElementError, UnreadableError
from sources.xml.parser.item_batches import (
    UNKNOWN_START,
    ItemBatches,
    Items,
    Parsed,
    PatternReader,
    TextRows,
    merged_texts,
    template_texts,
)
from sources.xml.parser.item_reader import ItemReader, VoidPunctuationError
from sources.xml.parser.malformed import LocatedText, Malformed, MalformedKind
from sources.xml.parser.structural_punctuations import ClosedSection, SectionWalk
from sources.xml.parser.template_scan import ScannedWindow
from sources.xml.splits.split_points import Fragment, fragments
from sources.xml.splits.tags import is_too_deep, is_well_formed, parse_content, parse_reason, tag_name


class ItemParser:
    """Parses the items of one source.

    Attributes:
        names: Local names of their elements.
        reader: The reference reading of one of them.
        batches: What makes record batches of them.
        stops: Whether what is malformed ends the reading.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        """Of tuples, the attributes `columns`; the texts of the others are looked at, for what is malformed."""
        self.names = frozenset(name.encode() for name in options.row_names)
        self._patterns = PatternReader(options)
        self.batches = ItemBatches(options, columns, self.names, self._patterns)
        self._looked_at = self.batches.looked_at
        self.reader = ItemReader(options, tuple(options.schema[index].name for index in self._looked_at))
        self._walk = SectionWalk(options, self.reader)
        # The attributes, and the lifespan.
        self._all = range(len(options.schema) + 1)
        self._has_sections = bool(options.structural.sections)
        self.stops = options.mode == "FAILFAST"

    @property
    def has_templates(self) -> bool:
        """Whether regular items can be read without what is around them."""
        return not self.reader.needs_siblings and not self._has_sections

    def template_items(self, scanned: ScannedWindow, stream: int) -> Items | None:
        """Its items in a scanned text, as those of one of several sources; None if one is malformed."""
        tuples, punctuations, void = TextRows(), TextRows(), Counter[str]()
        for ordinal, element, of in scanned.irregular:
            if of != stream:
                continue
            try:
                if self.reader.is_punctuation(element):
                    patterns = [*self.reader.patterns(element), self.reader.lifespan(element)]
                    punctuations.add(ordinal, UNKNOWN_START, patterns)
                else:
                    tuples.add(ordinal, UNKNOWN_START, self.reader.values(element))
            except VoidPunctuationError as error:
                void[error.leaf] += 1
            except UnreadableError:
                return None
        regular = template_texts(scanned, stream, self._all, punctuations=True)
        said = merged_texts([*regular, punctuations.columns(self._all)], len(self._all))
        if not self._patterns.are_readable(said.columns):
            return None
        values = template_texts(scanned, stream, self._looked_at, punctuations=False)
        read = merged_texts([*values, tuples.columns(self._looked_at)], len(self._looked_at))
        return Items(scanned.count, read, said, [], void)

    def items(self, text: LocatedText, root: etree._Element | etree.XMLSyntaxError) -> Items:
        """All the items of a text that has been parsed.

        Of one that is not well-formed, what stands before the fault, which is the last thing that is malformed.
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

    def _nothing_but(self, text: LocatedText, fault: etree.XMLSyntaxError) -> Items:
        """The fault of a text, and no items: they cannot be read without what is around them, which is not whole."""
        none = TextRows()
        malformed = [text.fault(fault, 0, 0, len(text.content), text.open)]
        return Items(0, none.columns(self._looked_at), none.columns(self._all), malformed)

    def _by_fragment(self, text: LocatedText, fault: etree.XMLSyntaxError | None = None) -> Items:
        """The items of a text one by one, so that a bad one takes no other with it; if it has a fault, up to there."""
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
                    ended.append(replace(found, after=count))
                    continue
                whole = next(wholes, None)
                is_tuple = not self.reader.is_punctuation(found)
                outermost = sum(1 for _ in found.iterancestors()) <= (0 if fragment.is_root else len(fragment.open))
                # Of what stands in another item, the neighbours are there to be counted.
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
        return Items(count, *columns, malformed, void, ended)

    def _unparsed(
        self, error: etree.XMLSyntaxError, text: LocatedText, fragment: Fragment, count: int, numbers: dict[int, int]
    ) -> Malformed:
        """A fragment that was not parsed: an item that is too deep is malformed alone, all else ends the reading."""
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
        """The items of a text among all that is around them, where something of that is needed."""
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
            tuples.add(ordinal, start, self.reader.values(element, number, whole))
            return
        patterns = [*self.reader.patterns(element, whole), self.reader.lifespan(element)]
        self._patterns.check(patterns)
        punctuations.add(ordinal, start, patterns)

    def typed(self, items: Items, at: int, text: LocatedText) -> Parsed:
        """The items of a text as record batches, the first at position `at`."""
        values = self.batches.values(items.tuples)
        if any(items.tuples.start[row] == UNKNOWN_START for row in values.reasons):
            return self.typed(self._by_fragment(text), at, text)
        return self.batches.parsed(items, values, at, text)

    def one_by_one(self, text: LocatedText) -> Parsed:
        """The items of a text once more, so that it is known where each begins; they are numbered from 0."""
        return self.typed(self._by_fragment(text), 0, text)


def _number(numbers: dict[int, int], fragment: Fragment) -> int:
    """Which tuple of its parent a fragment is."""
    numbers[fragment.parent] = numbers.get(fragment.parent, 0) + 1
    return numbers[fragment.parent]
