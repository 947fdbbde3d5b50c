"""Going through one document without parsing it, from one proven cut to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Literal

from lxml import etree

from punct_ns.errors import InputError
from sources.xml.options.source import SourceOptions
from sources.xml.splits.byte_ranges import Range
from sources.xml.splits.namespaces import FirstTuples
from sources.xml.splits.prolog import Charset, FlawError, Head, head_of, open_document, safe_parser
from sources.xml.splits.split_points import Cut, last_cut

WINDOW = 4 << 20
"""Bytes that are looked through at once for a cut."""

SMALLEST_WINDOW = 1 << 10
"""Bytes that are looked through at the least; what is left of a budget and less than that is not taken."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a document.

    Attributes:
        path: The document.
        base: Position of its first byte in the source.
        byte: Offset in it, a proven cut; 0 is before its head.
        open: Start tags of the elements open there, the root first.
        namespaces: Those of the tuples before it (`namespaces.FirstTuples`).
    """

    path: str
    base: int
    byte: int = 0
    open: tuple[str, ...] = ()
    namespaces: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found from a place on.

    Attributes:
        ranges: One behind the other, without gaps.
        byte: Offset behind them.
        open: Start tags of the elements open there.
        state: `ended`: the root is closed there; `lost`: the document is unfinished for good, or not well-formed;
            `more`: there is more, or there will be.
        namespaces: Those of the tuples up to there.
    """

    ranges: list[Range]
    byte: int
    open: tuple[str, ...]
    state: Literal["ended", "lost", "more"]
    namespaces: tuple[str | None, ...] = ()


def scan(place: Place, size: int, budget: int | None, options: SourceOptions, *, settled: bool) -> Scan:
    """Go on in a document, as far as it is there.

    Args:
        place: Where to begin.
        size: How much of the document is there.
        budget: Bytes to take, about; all there are if None.
        options: Of the source.
        settled: Whether what is missing at the end will not come.
    """
    first = FirstTuples(options, place.namespaces)
    found = _scan(place, size, budget, options, first, settled=settled)
    return replace(found, namespaces=first.known)


def _scan(
    place: Place, size: int, budget: int | None, options: SourceOptions, first: FirstTuples, *, settled: bool
) -> Scan:
    if size < place.byte:
        raise InputError(f"{place.path} has shrunk to {size} bytes; {place.byte} were read", hint="a stream only grows")
    nothing = Scan([], place.byte, place.open, "more")
    if size == place.byte and not settled:
        return nothing
    with open_document(place.path) as file:
        try:
            head = head_of(file, size, complete=settled, encoding=options.encoding)
        except FlawError:
            return _lost(place, [], size)
        if head is None:
            return nothing
        if not head.charset.cuttable:
            return _whole(place, size, file, head, options, first, settled=settled)
        cuts = [_first(place, head)]
        for cut in _cuts(file, cuts[0], size, budget, options, head.charset, first):
            # The last of them moves on until its range is large enough for a task of its own.
            if len(cuts) == 1 or cuts[-1].offset - cuts[-2].offset >= options.max_bytes_per_partition:
                cuts.append(cut)
            else:
                cuts[-1] = cut
        last = cuts[-1]
        if not last.open:
            return Scan(_ranges(place, cuts, size, head.charset, ended=True), last.offset, (), "ended")
        ranges = _ranges(place, cuts, last.offset, head.charset, ended=False)
        spent = _is_spent(last.offset - cuts[0].offset, budget)
        if not spent and (settled or _is_lost(file, last, size, head.charset, options)):
            return _lost(place, ranges, size, _open(last, head.charset))
    if not ranges:
        return nothing
    return Scan(ranges, last.offset, _open(last, head.charset), "more")


def split(place: Place, end: int, options: SourceOptions) -> list[Range]:
    """The ranges from a place to a later cut that is known, each for a task of its own."""
    if end - place.byte <= options.max_bytes_per_partition:
        return [Range(place.path, place.base, place.byte, end, place.open)]
    ranges = scan(place, end, None, options, settled=False).ranges
    last = ranges.pop() if ranges else Range(place.path, place.base, place.byte, end, place.open)
    return [*ranges, Range(last.path, last.base, last.start, end, last.open)]


def _first(place: Place, head: Head) -> Cut:
    if place.byte:
        return Cut(place.byte, tuple(tag.encode(head.charset.codec) for tag in place.open))
    root = head.root.decode().encode(head.charset.codec)
    return Cut(head.content, () if head.empty else (root,))


def _is_text(open_: tuple[bytes, ...], charset: Charset) -> bool:
    """Whether the start tags can be kept in an offset; if not, they are malformed."""
    try:
        return bool([tag.decode(charset.codec) for tag in open_]) or not open_
    except UnicodeDecodeError:
        return False


def _cuts(
    file: BinaryIO,
    cut: Cut,
    size: int,
    budget: int | None,
    options: SourceOptions,
    charset: Charset,
    first: FirstTuples,
) -> Iterator[Cut]:
    """Proven cuts one after the other, to the end of the root, of what is there, or of the budget."""
    uncut = options.uncut
    start, text = cut.offset, b""
    file.seek(start)
    while cut.open and not _is_spent(cut.offset - start, budget):
        wanted = min(WINDOW, options.max_bytes_per_partition)
        wanted = wanted if budget is None else min(wanted, budget - (cut.offset - start))
        wanted = max(wanted - len(text), len(text), SMALLEST_WINDOW)
        more = file.read(max(0, min(wanted, size - cut.offset - len(text))))
        text += more
        found = last_cut(text, cut, uncut)
        if found != cut and _is_text(found.open, charset):
            first.look(text[: found.offset - cut.offset], cut, charset)
            text = text[found.offset - cut.offset :]
            cut = found
            yield cut
        elif not more or len(text) > options.max_item_bytes:
            return


def _is_spent(taken: int, budget: int | None) -> bool:
    return budget is not None and taken > 0 and budget - taken < SMALLEST_WINDOW


def _open(cut: Cut, charset: Charset) -> tuple[str, ...]:
    return tuple(tag.decode(charset.codec) for tag in cut.open)


def _ranges(place: Place, cuts: list[Cut], end: int, charset: Charset, *, ended: bool) -> list[Range]:
    """The ranges between cuts, the last one up to `end`; the first begins at the place."""
    starts = [(place.byte, place.open), *((cut.offset, _open(cut, charset)) for cut in cuts[1:-1])]
    if end == cuts[0].offset and not ended:
        return []
    ends = [*(start for start, _ in starts[1:]), end]
    ranges = [
        Range(place.path, place.base, start, stop, open_) for (start, open_), stop in zip(starts, ends, strict=True)
    ]
    if ended:
        last = ranges.pop()
        ranges.append(Range(last.path, last.base, last.start, last.end, last.open, ends="root"))
    return ranges


def _lost(place: Place, ranges: list[Range], size: int, open_: tuple[str, ...] | None = None) -> Scan:
    """The rest of the document as one range, for the parser to say what is wrong."""
    start = ranges[-1].end if ranges else place.byte
    rest = Range(
        place.path, place.base, start, size, place.open if not ranges or open_ is None else open_, "unfinished"
    )
    return Scan([*ranges, rest], size, (), "lost")


def _is_lost(file: BinaryIO, cut: Cut, size: int, charset: Charset, options: SourceOptions) -> bool:
    """Whether what stands behind the last cut can become content by no more text."""
    length = size - cut.offset
    if not 0 < length <= options.max_item_bytes:
        return length > 0
    file.seek(cut.offset)
    parser = safe_parser()
    try:
        text = charset.utf8(file.read(length)) if charset.codec != "utf-8" else file.read(length)
        parser.feed(b"".join(tag.encode() for tag in _open(cut, charset)))
        parser.feed(text)
    except (etree.XMLSyntaxError, FlawError):
        return True
    return False


def _whole(
    place: Place,
    size: int,
    file: BinaryIO,
    head: Head,
    options: SourceOptions,
    first: FirstTuples,
    *,
    settled: bool,
) -> Scan:
    """A document that can only be read from its start: one range, once it is complete."""
    file.seek(head.charset.mark)
    text = file.read(size - head.charset.mark).decode(head.charset.codec, "replace").encode()
    cut = Cut(head.content, () if head.empty else (head.root,))
    while cut.open:
        found = last_cut(text[cut.offset :], cut, options.uncut)
        if found == cut:
            break
        first.look(text[cut.offset : found.offset], cut, Charset())
        cut = found
    if not cut.open:
        return Scan([Range(place.path, place.base, 0, size, ends="root")], size, (), "ended")
    return _lost(place, [], size) if settled else Scan([], 0, (), "more")
