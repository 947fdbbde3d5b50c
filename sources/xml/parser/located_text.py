"""A text to parse together with where it stands in its document, by which what is malformed in it is located."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from sources.xml.parser.malformed import Malformed, MalformedKind
from sources.xml.splits.split_points import ElementNames, Fragment, fragments
from sources.xml.splits.tags import NO_ROOT, parse_content, parse_reason


@dataclass(frozen=True, slots=True)
class LocatedText:
    """A text to read, and where it stands in its document; `path`, `offset` and `codec` tell that."""

    content: bytes
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    path: str
    offset: int
    codec: str

    def place(self, offset: int) -> int:
        """Where an offset of the content is in the document."""
        if self.codec == "utf-8":
            return self.offset + offset
        return self.offset + len(self.content[:offset].decode("utf-8", "replace").encode(self.codec, "replace"))

    def fragments(self, items: ElementNames) -> dict[int, Fragment]:
        """Its items and what stands between them, by where they begin."""
        return {piece.start: piece for piece in fragments(self.content, self.open, self.after, items)}

    def tree(self) -> etree._Element | etree.XMLSyntaxError:
        """The content parsed, or why it is not well-formed."""
        try:
            return parse_content(self.content, self.open, self.after)
        except etree.XMLSyntaxError as fault:
            return fault

    def malformed(self, ordinal: int, fragment: Fragment, kind: MalformedKind, reason: str) -> Malformed:
        """A fragment of it that cannot be read, the item of that number."""
        raw, within = fragment.original(self.content)
        return Malformed(
            ordinal,
            self.path,
            self.place(fragment.start),
            kind,
            reason,
            raw.decode("utf-8", "replace"),
            within.decode("utf-8", "replace"),
        )

    def fault(
        self, error: etree.XMLSyntaxError, ordinal: int, start: int, end: int, open_: tuple[bytes, ...]
    ) -> Malformed:
        """Where it is not well-formed; the part of it between two offsets, among the elements `open_`, says so."""
        content = self.content[start:end]
        place = self.place(start + _offset(error, content, open_))
        reason = _reason(error)
        return Malformed(ordinal, self.path, place, "document", reason, content.decode("utf-8", "replace"))


def _reason(error: etree.XMLSyntaxError) -> str:
    reason = parse_reason(error).partition(", line ")[0]
    entity = _UNDEFINED.fullmatch(reason)
    # What a document type declaration may declare was skipped.
    return f"the entity &{entity[1]}; is not expanded: write out what it stands for" if entity else reason


_UNDEFINED = re.compile(r"Entity '(.+)' not defined")


def _offset(error: etree.XMLSyntaxError, content: bytes, open_: tuple[bytes, ...]) -> int:
    """Where in the content the parser stopped."""
    line, column = error.position
    start = 0
    for _ in range(line - 1):
        start = content.find(b"\n", start) + 1
    before = len(b"".join(open_) or NO_ROOT) if line == 1 else 0
    return max(0, min(start + column - 1 - before, len(content)))
