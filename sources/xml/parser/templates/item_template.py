"""The template of regular items: literal markup with slots between, learnt from a sample item.

A template is learnt by filling the sample's slots with placeholders and letting the reference reading say which
attribute each of them is. Any text that has the same literal markup, and in the slots nothing that means anything to
XML, is then well-formed wherever the sample is, and reads alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from lxml import etree

from sources.xml.parser.item_reader import ItemReader, VoidPunctuationError
from sources.xml.parser.leaf_text import UnreadableError
from sources.xml.splits.tags import parse_content

MOST_SLOTS = 1_000
"""Slots of a template at the most: each costs several passes over the items, and the parser reads all in one."""

_TAG = re.compile(rb"<(/?)[^<>\"'!?]*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>")
# Other attributes are part of the markup: they say nil, or what names mean, or libxml2 looks at their values.
_PLAIN_ATTRIBUTE = re.compile(
    rb"(?<=[ \t\r\n])(?!xmlns[=:]|xml:)(?:[^\s<>\"'=:]+:(?!nil=))?[^\s<>\"'=:]+=\"([^\"<]*)\""
)


@dataclass(frozen=True, slots=True)
class ItemTemplate:
    """Literal runs with a slot between any two.

    Attributes:
        runs: The literal text; every slot is followed by `<`, or by the quote that ends an attribute's value.
        places: How many delimiters (`<`, and quotes if there are attributes) stand before each run.
        delimiters: How many there are in all.
        is_punctuation: Whether the item is a punctuation; else it is a tuple.
        sources: For each attribute its slot, or its constant text, or None if it is absent; of a punctuation for its
            lifespan, too.
        quoted: For each slot, whether it is the value of an XML attribute.
        stream: Of which of the sources that are read together the items are.
    """

    runs: tuple[bytes, ...]
    places: tuple[int, ...]
    delimiters: int
    is_punctuation: bool
    sources: tuple[int | str | None, ...]
    quoted: tuple[bool, ...]
    stream: int = 0

    @staticmethod
    def learn(
        sample: bytes, open_: tuple[bytes, ...], reader: ItemReader, *, quotes: bool, stream: int = 0
    ) -> ItemTemplate | None:
        """The template of an item; None if it has none by which others could be recognised safely.

        Args:
            sample: The item's text.
            open_: Start tags of the elements open around it.
            reader: The reference reading.
            quotes: Whether quotes are delimiters, so that values of XML attributes may be slots.
            stream: Which source's the reading is.
        """
        if b"<!" in sample or b"<?" in sample or any(b"'" in tag[0] for tag in _TAG.finditer(sample)):
            return None
        runs, quoted = _runs(sample, quotes=quotes)
        if len(quoted) > MOST_SLOTS:
            return None
        filled = runs[0] + b"".join(_placeholder(slot) + run for slot, run in enumerate(runs[1:]))
        try:
            items = list(reader.items(parse_content(filled, open_, open_)))
            if len(items) != 1:
                return None
            is_punctuation = reader.is_punctuation(items[0])
            texts = reader.patterns(items[0]) if is_punctuation else reader.values(items[0])
            texts += [reader.lifespan(items[0])] if is_punctuation else []
        except (etree.XMLSyntaxError, UnreadableError, VoidPunctuationError):
            return None
        slots = {_placeholder(slot).decode(): slot for slot in range(len(quoted))}
        sources = tuple(None if text is None else slots.get(text, text) for text in texts)
        if any(isinstance(source, str) and _PLACEHOLDER in source for source in sources):
            return None  # made of several slots
        counts = [run.count(b"<") + (run.count(b'"') if quotes else 0) for run in runs]
        places = tuple(accumulate(counts[:-1], initial=0))
        return ItemTemplate(tuple(runs), places, sum(counts), is_punctuation, sources, tuple(quoted), stream)


_PLACEHOLDER = "\ue0ff"


def _placeholder(slot: int) -> bytes:
    return f"{_PLACEHOLDER}{slot}{_PLACEHOLDER}".encode()


def _runs(sample: bytes, *, quotes: bool) -> tuple[list[bytes], list[bool]]:
    """The literal runs of a sample, and for each slot between them whether it is an attribute's value."""
    gaps: list[tuple[int, int, bool]] = []
    before = None
    for tag in _TAG.finditer(sample):
        if before is not None:
            start, end = before.end(), tag.start()
            # The text of a leaf varies; blanks between other tags are layout.
            is_leaf = tag[1] and not before[1] and not before[0].endswith(b"/>")
            if is_leaf or sample[start:end].strip(b" \t\r\n"):
                gaps.append((start, end, False))
        if quotes:
            gaps += [
                (tag.start() + value.start(1), tag.start() + value.end(1), True)
                for value in _PLAIN_ATTRIBUTE.finditer(tag[0])
            ]
        before = tag
    ends = [0, *(end for _, end, _ in gaps)]
    starts = [*(start for start, _, _ in gaps), len(sample)]
    return [sample[a:b] for a, b in zip(ends, starts, strict=True)], [quoted for _, _, quoted in gaps]
