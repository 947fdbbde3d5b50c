"""Template scan: the fast path of the parser, which reads items columnwise and proves that the result is correct.

Items that match a template are cut out of the window. They may belong to several sources, as long as no item contains
another.

The rest of the window, the residue, is parsed unless it is blank, with a processing instruction in the place of each
item. XML content is closed under concatenation: if an instruction is found outside of all items, with the same
namespaces in scope, then a well-formed element in its place is content there and an item; and templates match only
well-formed elements. If an instruction is not found (it was in a comment, a CDATA section or another item), the
matches are discarded, and the whole window is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from lxml import etree

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.sources.xml.options.arrow_text import Mask, is_xml_text
from xmlstream.sources.xml.options.leaf_paths import MANY_TAGS
from xmlstream.sources.xml.parser.item_reader import ItemReader
from xmlstream.sources.xml.parser.item_templates import ItemTemplate, Matches, TextWindow
from xmlstream.sources.xml.splits.all_tags import Offsets
from xmlstream.sources.xml.splits.split_points import last_item_end
from xmlstream.sources.xml.splits.tags import parse_content


@dataclass(frozen=True, slots=True)
class NumberedMatches:
    """Items of one template, with their numbers.

    Attributes:
        ordinal: Their numbers among all items of the window, from 0.
    """

    matches: Matches
    ordinal: Offsets


def matches_and_residue(
    window: TextWindow, matches: list[Matches]
) -> tuple[list[NumberedMatches], list[tuple[int, int]]]:
    """Numbers the items in order, and returns the gaps between them that are not blank."""
    matches = [items for items in matches if len(items)]
    if len(matches) == 1:
        start, end = matches[0].start, matches[0].end
        groups = [NumberedMatches(matches[0], np.arange(len(start)))]
    else:
        start, end, groups = _merged(matches)
    gap_start = np.concatenate([np.zeros(1, np.int64), end])
    gap_end = np.concatenate([start, np.full(1, len(window.text), np.int64)])
    filled = np.flatnonzero(_not_blank(window, gap_start, gap_end))
    return groups, list(zip(gap_start[filled].tolist(), gap_end[filled].tolist(), strict=True))


def _merged(matches: list[Matches]) -> tuple[Offsets, Offsets, list[NumberedMatches]]:
    """Returns the begin and end offsets of the items of several templates, in order, and the numbered groups."""
    if not matches:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, []
    start = np.concatenate([items.start for items in matches])
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.concatenate([items.end for items in matches])[order]
    # Two templates may match one item; the first counts.
    first = np.concatenate([[True], start[1:] != start[:-1]])
    number = np.empty(len(order), np.int64)
    number[order] = np.where(first, np.cumsum(first) - 1, -1)
    groups = []
    for items in matches:
        ordinal, number = number[: len(items)], number[len(items) :]
        taken = ordinal >= 0
        groups.append(
            NumberedMatches(items, ordinal) if taken.all() else NumberedMatches(items.those(taken), ordinal[taken])
        )
    return start[first], end[first], groups


_IS_BLANK = np.zeros(256, np.bool_)
_IS_BLANK[list(b" \t\r\n")] = True


def _not_blank(window: TextWindow, start: Offsets, end: Offsets) -> Mask:
    """Returns which of the gaps contain more than blanks."""
    length = end - start
    result = np.zeros(len(length), np.bool_)
    single = np.flatnonzero(length == 1)
    result[single] = ~_IS_BLANK[window.byte[start[single]]]
    longer = np.flatnonzero(length > 1)
    if len(longer):
        size = length[longer]
        before = np.cumsum(size) - size
        at = np.repeat(start[longer] - before, size) + np.arange(size.sum())
        result[longer] = np.logical_or.reduceat(~_IS_BLANK[window.byte[at]], before)
    return result


def number_with_residue(
    groups: list[NumberedMatches], gaps: list[tuple[int, int]], rest: list[list[etree._Element]]
) -> tuple[list[NumberedMatches], list[tuple[int, etree._Element]]]:
    """Renumbers the items to include those of the residue; returns both with their numbers."""
    starts = np.sort(np.concatenate([group.matches.start for group in groups]))
    gap_starts = np.array([start for start, _ in gaps])
    regular_before = np.searchsorted(starts, gap_starts)
    counts = np.array([len(items) for items in rest])
    irregular_before = np.cumsum(counts) - counts
    upto = np.concatenate([[0], np.cumsum(counts)])
    counted_in = [
        replace(group, ordinal=group.ordinal + upto[np.searchsorted(gap_starts, group.matches.start)])
        for group in groups
    ]
    irregular = [
        (int(regular_before[gap] + irregular_before[gap]) + number, element)
        for gap, items in enumerate(rest)
        for number, element in enumerate(items)
    ]
    return counted_in, irregular


ITEM_MARKER = b"<?item?>"

MOST_TEMPLATES = 8
"""The greatest number of templates tried on every window, for each context."""

MOST_FAILURES = 16
"""The number of samples without a template after which sampling stops, for each context."""

IRREGULAR_PART = 0.1
"""The fraction of irregular items from which on reading tokens is faster than matching templates."""

PROBE_BYTES = 1 << 17
"""The number of bytes in which templates are tried first."""

RARE_PART = 0.0005
"""The fraction of irregular items up to which no new template is searched for."""


@dataclass(frozen=True, slots=True)
class ScannedWindow:
    """A window with the items found in it.

    Attributes:
        count: The number of items of all sources.
        groups: The regular items.
        irregular: The other items, each with its number and its source's number.
    """

    window: TextWindow
    count: int
    groups: list[NumberedMatches]
    irregular: list[tuple[int, etree._Element, int]]


@dataclass(slots=True)
class _Learnt:
    """The templates of one context.

    Attributes:
        templates: In the order in which they are tried.
        quotes: Whether quotes are delimiters.
        failures: The number of samples without a template.
        used: The templates that had an item, by their places.
    """

    templates: list[ItemTemplate] = field(default_factory=list)
    quotes: bool = False
    failures: int = 0
    used: set[int] = field(default_factory=set)

    def matches(self, window: TextWindow) -> list[Matches]:
        """Returns the items of each template."""
        found = [window.find(template) for template in self.templates]
        self.used.update(place for place, items in enumerate(found) if len(items))
        return found


Templates = Mapping[tuple[bytes, ...], _Learnt]
"""What one scanner hands on to another one: the templates that had an item, by their contexts."""


class TemplateScanner:
    """Scans windows for items of templates, which it builds from samples."""

    def __init__(self, readers: Sequence[ItemReader]) -> None:
        """Scans for the items of these readers, which must have different names."""
        self._readers = readers
        self._streams = {name.encode(): stream for stream, reader in enumerate(readers) for name in reader.locals}
        self._names = frozenset(self._streams)
        self._stream_of: dict[object, int] = {}
        self._needs_ancestors = any(reader.needs_ancestors for reader in readers)
        self._contexts: dict[tuple[bytes, ...], _Learnt] = {}
        name = rb"(?:[^\s<>/:\"'=!?]+:)?(" + b"|".join(map(re.escape, sorted(self._streams))) + rb")"
        self._start_tag = re.compile(rb"<(" + name + rb")(?=[\s/>])(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*>")

    def forget(self) -> None:
        """Forgets all templates."""
        self._contexts = {}

    def adopt(self, templates: Templates) -> None:
        """Begins with the templates of another scanner for the same items."""
        self._contexts = dict(templates)

    def templates(self) -> Templates:
        """Returns the templates that had an item, without those that none had, so that they do not grow."""
        return {
            open_: _Learnt([known.templates[place] for place in sorted(known.used)], known.quotes, known.failures)
            for open_, known in self._contexts.items()
            if known.used
        }

    def finds_most(self, text: bytes, open_: tuple[bytes, ...]) -> bool:
        """Whether most items at the beginning of a text are regular; learns their templates.

        At most two templates must have one item in four: that of the first item, and of the first one unlike it.
        """
        end = last_item_end(text[:PROBE_BYTES], self._names)
        known = self._contexts.setdefault(open_, _Learnt())
        if not end or not is_xml_text(text[:end]):
            return False
        count, gaps = sum(1 for _ in self._start_tag.finditer(text, 0, end)), [(0, end)]
        for _ in range(2):
            window = TextWindow(text[:end], quotes=known.quotes)
            groups, gaps = matches_and_residue(window, known.matches(window))
            if 4 * sum(len(group.ordinal) for group in groups) >= count:
                break
            if not gaps or not self._learn(known, text[:end], open_, gaps[:1]):
                return False
        else:
            return False
        scanned = self.scan(text[:end], open_)
        return scanned is not None and len(scanned.irregular) <= IRREGULAR_PART * scanned.count

    def scan(self, text: bytes, open_: tuple[bytes, ...]) -> ScannedWindow | None:
        """Scans a text; None if that is impossible, or if it has no regular item.

        Args:
            text: Content, from a cut to the apparent end of an item.
            open_: Start tags of the elements open at its beginning.
        """
        known = self._contexts.setdefault(open_, _Learnt())
        if not known.templates and not self._learn(known, text, open_, [(0, len(text))]):
            return None
        if not is_xml_text(text):
            return None
        window = TextWindow(text, quotes=known.quotes)
        while True:
            groups, gaps = matches_and_residue(window, known.matches(window))
            count = sum(len(group.ordinal) for group in groups)
            if len(gaps) <= RARE_PART * count or not self._learn(known, text, open_, gaps):
                break
            if window.quotes != known.quotes:
                window = TextWindow(text, quotes=known.quotes)
        if not groups:
            return None
        irregular: list[tuple[int, etree._Element, int]] = []
        if gaps:
            residue = self._residue(text, open_, gaps)
            if residue is None:
                return None
            groups, others = number_with_residue(groups, gaps, residue)
            irregular = [(number, element, self._stream(element)) for number, element in others]
        return ScannedWindow(window, count + len(irregular), groups, irregular)

    def _learn(self, known: _Learnt, text: bytes, open_: tuple[bytes, ...], gaps: list[tuple[int, int]]) -> bool:
        """Searches for a new template in gaps; returns whether one was found."""
        for start, end in dict.fromkeys((gaps[0], gaps[len(gaps) // 2], gaps[-1])):
            if len(known.templates) == MOST_TEMPLATES or known.failures == MOST_FAILURES:
                return False
            found = self._sample(text, start, end)
            if found is None:
                continue
            sample, stream = found
            if b'="' in sample and not known.quotes:
                known.templates, known.quotes, known.used = [], True, set()
            is_alone = all(tag.start() == 0 for tag in self._start_tag.finditer(sample))
            reader = self._readers[stream]
            template = (
                ItemTemplate.learn(sample, open_, reader, quotes=known.quotes, stream=stream) if is_alone else None
            )
            if template is None or template in known.templates:
                known.failures += 1
            else:
                known.templates.append(template)
                return True
        return False

    def _sample(self, text: bytes, start: int, end: int) -> tuple[bytes, int] | None:
        """Returns the first item of a gap, if it looks like one, and its source's number."""
        tag = self._start_tag.search(text, start, end)
        if tag is None:
            return None
        stream = self._streams[tag[2]]
        if tag[0].endswith(b"/>"):
            return tag[0], stream
        closing = re.compile(rb"</" + re.escape(tag[1]) + rb"[ \t\n]*>").search(text, tag.end(), end)
        return None if closing is None else (text[tag.start() : closing.end()], stream)

    def _stream(self, element: etree._Element) -> int:
        """Returns the number of the source to which an element belongs, by its tag; -1 for none."""
        known = self._stream_of.get(element.tag)
        if known is None:
            known = next((stream for stream, reader in enumerate(self._readers) if reader.is_item(element)), -1)
            if len(self._stream_of) < MANY_TAGS:
                self._stream_of[element.tag] = known
        return known

    def _is_item(self, element: etree._Element) -> bool:
        return self._stream(element) >= 0

    def _is_whole(self, element: etree._Element) -> bool:
        return any(reader.is_whole(element) for reader in self._readers)

    def _residue(
        self, text: bytes, open_: tuple[bytes, ...], gaps: list[tuple[int, int]]
    ) -> list[list[etree._Element]] | None:
        """Returns the items in each gap; None if the proof fails."""
        parts = [text[start:end] for start, end in gaps]
        if any(b"<?" in part for part in parts):
            return None
        try:
            root = parse_content(ITEM_MARKER + ITEM_MARKER.join(parts) + ITEM_MARKER, open_, open_)
        except etree.XMLSyntaxError:
            return None
        context = root
        for _ in open_[1:]:
            context = context[0]
        items: list[list[etree._Element]] = []
        for element in self._in_order(root, context):
            if not isinstance(element, etree._ProcessingInstruction):
                if self._holds_others(element):
                    return None
                items[-1].append(element)
            elif self._is_like(element.getparent(), context):
                items.append([])
            else:
                return None
        return items[:-1] if len(items) == len(gaps) + 1 else None

    def _holds_others(self, element: etree._Element) -> bool:
        """Whether an item may contain items of other sources."""
        if len(self._readers) == 1:
            return False
        names = ("{*}" + name.decode() for name in self._streams)
        return next(element.iterdescendants(*names), None) is not None

    def _in_order(self, root: etree._Element, context: etree._Element) -> list[etree._Element]:
        """Returns markers and items in order; the first is a marker."""
        found = list(context)
        names = ["{*}" + name.decode() for name in self._streams]
        if all(self._is_item(child) or isinstance(child, etree._ProcessingInstruction) for child in found):
            nested = sum(1 for _ in root.iter(etree.PI, *names)) - len(found)
            if not nested:
                return found
        found = list(root.iter(etree.PI, *names))
        return [
            element
            for element in found
            if isinstance(element, etree._ProcessingInstruction)
            or (self._is_item(element) and not any(map(self._is_whole, element.iterancestors())))
        ]

    def _is_like(self, parent: etree._Element | None, context: etree._Element) -> bool:
        """Whether an element here would be read as in the context; False if the source reads ancestors."""
        if parent is context:
            return True
        return (
            parent is not None
            and not self._needs_ancestors
            and parent.nsmap == context.nsmap
            and not any(map(self._is_item, [parent, *parent.iterancestors()]))
        )
