"""The scan of one document for split points, which divides it into byte ranges without parsing."""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

from lxml import etree

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.errors import InputError
from xmlstream.sources.parquet_table import parquet_footer
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.documents import WHOLE, Decompressed, open_document
from xmlstream.sources.xml.splits.namespaces import TupleNamespaces
from xmlstream.sources.xml.splits.prolog import Charset, FlawError, Prolog, epilog_state, prolog_of, read_prolog
from xmlstream.sources.xml.splits.read_documents import Row, row_of
from xmlstream.sources.xml.splits.split_points import ElementEnd, SplitPoint, begins_with, last_split_point
from xmlstream.sources.xml.splits.tags import is_too_deep, safe_parser, tag_name

SCAN_WINDOW = 4 << 20
"""The number of bytes that are searched at once for a split point."""

SMALLEST_WINDOW = 1 << 10
"""The least number of bytes that are searched; a remaining budget below it is not used."""


@dataclass(frozen=True, slots=True)
class ScanOrigin:
    """The point where the scan of a document begins.

    Attributes:
        base: The position of its first byte in the source.
        byte: An offset in it, a proven split point; 0 is before its prolog.
        open: Start tags of the elements open there, from the root.
        namespaces: The namespaces of the tuples before it (`TupleNamespaces`).
    """

    document: Document
    base: int
    byte: int = 0
    open: tuple[str, ...] = ()
    namespaces: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitScan:
    """The result of a scan.

    Attributes:
        ranges: Consecutive ranges, without gaps.
        byte: The offset after them.
        open: Start tags of the elements open there.
        state: `ended`: the root is closed there; `lost`: the document is permanently unfinished, or not well-formed;
            `more`: there is more, or there will be.
        namespaces: The namespaces of the tuples up to there.
        row: What is left of a document that was read as a whole, if it is known.
    """

    ranges: list[ByteRange]
    byte: int
    open: tuple[str, ...]
    state: Literal["ended", "lost", "more"]
    namespaces: tuple[str | None, ...] = ()
    row: Row | None = None


def scan_splits(
    origin: ScanOrigin, size: int, budget: int | None, options: SourceOptions, *, settled: bool
) -> SplitScan:
    """Scans a document from a point, as far as it is present.

    Args:
        origin: The starting point.
        size: The present size of the document.
        budget: The approximate number of bytes to take; None for all.
        options: The options of the source.
        settled: Whether nothing will be added at the end.
    """
    if size < origin.byte:
        raise InputError(
            f"{origin.document.where} has shrunk to {size} bytes; {origin.byte} were read", hint="a stream only grows"
        )
    first = TupleNamespaces(options, origin.namespaces)
    found = _scan(origin, size, budget, options, first, settled=settled)
    return found if found.namespaces == first.known else replace(found, namespaces=first.known)


def _scan(
    origin: ScanOrigin, size: int, budget: int | None, options: SourceOptions, first: TupleNamespaces, *, settled: bool
) -> SplitScan:
    nothing = SplitScan([], origin.byte, origin.open, "more")
    if size == origin.byte and not settled:
        return nothing
    if options.is_table:
        return _parquet(origin, size)
    with open_document(origin.document) as file:
        if isinstance(file, Decompressed):
            return _compressed(origin, file, options, first)
        limits = (SCAN_WINDOW, options.max_bytes_per_partition, options.max_item_bytes, budget or SCAN_WINDOW)
        if not origin.byte and size <= min(limits):
            if (small := _small(origin, file, size, options, first)) is not None:
                return small
            file.seek(0)
        try:
            prolog = prolog_of(file, size, complete=settled, encoding=options.encoding, doctype=options.doctype)
        except FlawError:
            return _lost(origin, [], size)
        if prolog is None:
            return nothing
        read = _in_parts if prolog.charset.splittable else _whole
        return read(origin, size, file, prolog, budget, options, first, settled=settled)


def _small(
    origin: ScanOrigin, file: BinaryIO, size: int, options: SourceOptions, first: TupleNamespaces
) -> SplitScan | None:
    """Returns a document that is one range, and is there to the end of its root; None if that takes a search.

    If nothing but tags has angle brackets, and one start tag and one end tag have the root's name, that end tag is the
    root's.
    """
    text = file.read(size)
    try:
        prolog = read_prolog(text, complete=True, encoding=options.encoding, doctype=options.doctype)
    except FlawError:
        return None
    whole = text.rstrip(b" \t\r\n")
    if prolog is None or prolog.empty or prolog.charset != _UTF8 or len(text) < size:
        return None
    name = tag_name(prolog.root)
    content = whole[prolog.content :]
    if (
        not content.endswith(b"</" + name + b">")
        or b"<!" in content
        or b"<?" in content
        or len(re.findall(b"</?" + re.escape(name) + rb"[\s/>]", content)) > 1
    ):
        return None
    first.look(content, _first(origin, prolog), prolog.charset)
    range_ = ByteRange(origin.document, origin.base, 0, size, ends="root", namespaces=first.known)
    return SplitScan([range_], len(whole), (), "ended", first.known, row_of(origin.document, file, text))


_UTF8 = Charset()


def _in_parts(
    origin: ScanOrigin,
    size: int,
    file: BinaryIO,
    prolog: Prolog,
    budget: int | None,
    options: SourceOptions,
    first: TupleNamespaces,
    *,
    settled: bool,
) -> SplitScan:
    """Returns the ranges of a document between its split points."""
    nothing = SplitScan([], origin.byte, origin.open, "more")
    points = [_first(origin, prolog)]
    for point in _cuts(file, points[0], size, budget, options, prolog.charset, first):
        # The last point moves on until its range is large enough for a task of its own.
        if len(points) == 1 or points[-1].offset - points[-2].offset >= options.max_bytes_per_partition:
            points.append(point)
        else:
            points[-1] = point
    last = points[-1]
    if not last.open:
        begins = None if settled else _end_tag(file, points[0].offset, last.offset, size, options)
        if begins is None:
            return SplitScan(_ranges(origin, points, size, prolog.charset, ended=True), last.offset, (), "ended")
        # All before the root's end tag is read; the rest waits for the end of what is behind it.
        before = _scan(origin, begins, budget, options, first, settled=False) if begins else nothing
        return before if before.state == "more" else nothing
    ranges = _ranges(origin, points, last.offset, prolog.charset, ended=False)
    spent = _is_spent(last.offset - points[0].offset, budget)
    if not spent and (settled or _is_lost(file, last, size, prolog.charset, options)):
        return _lost(origin, ranges, size, _open(last, prolog.charset))
    return SplitScan(ranges, last.offset, _open(last, prolog.charset), "more") if ranges else nothing


def split_range(origin: ScanOrigin, end: int, options: SourceOptions) -> list[ByteRange]:
    """Returns the ranges from one split point to a later known one, each for a task of its own."""
    if end - origin.byte <= options.max_bytes_per_partition:
        return [ByteRange(origin.document, origin.base, origin.byte, end, origin.open)]
    ranges = scan_splits(origin, end, None, options, settled=False).ranges
    last = ranges.pop() if ranges else ByteRange(origin.document, origin.base, origin.byte, end, origin.open)
    return [*ranges, ByteRange(last.document, last.base, last.start, end, last.open)]


def _first(origin: ScanOrigin, prolog: Prolog) -> SplitPoint:
    if origin.byte:
        return SplitPoint(origin.byte, tuple(tag.encode(prolog.charset.codec) for tag in origin.open))
    root = prolog.root.decode().encode(prolog.charset.codec)
    return SplitPoint(prolog.content, () if prolog.empty else (root,))


def _is_text(open_: tuple[bytes, ...], charset: Charset) -> bool:
    """Whether the start tags can be decoded, to be stored in an offset; if not, they are malformed."""
    try:
        return bool([tag.decode(charset.codec) for tag in open_]) or not open_
    except UnicodeDecodeError:
        return False


def _cuts(
    file: BinaryIO,
    point: SplitPoint,
    size: int,
    budget: int | None,
    options: SourceOptions,
    charset: Charset,
    first: TupleNamespaces,
) -> Iterator[SplitPoint]:
    """Yields proven split points in order, up to the end of the root, of the present text, or of the budget."""
    unsplit = options.unsplit
    start, text = point.offset, b""
    file.seek(start)
    while point.open and not _is_spent(point.offset - start, budget):
        wanted = min(SCAN_WINDOW, options.max_bytes_per_partition)
        wanted = wanted if budget is None else min(wanted, budget - (point.offset - start))
        wanted = max(wanted - len(text), len(text), SMALLEST_WINDOW)
        more = file.read(max(0, min(wanted, size - point.offset - len(text))))
        text += more
        found = last_split_point(text, point, unsplit)
        if found != point and _is_text(found.open, charset):
            first.look(text[: found.offset - point.offset], point, charset)
            text = text[found.offset - point.offset :]
            point = found
            yield point
        elif not more:
            return
        elif len(text) > options.max_item_bytes:
            is_passed_over = begins_with(text, point.open, options.passed_over)
            end = _element_end(file, text, point, size) if is_passed_over else None
            if end is None:
                return
            point, text = SplitPoint(end, point.open), b""
            file.seek(end)
            yield point


def _element_end(file: BinaryIO, text: bytes, point: SplitPoint, size: int) -> int | None:
    """Returns the offset after an element that is too long to be kept, which begins the text; None if it goes on."""
    search, left = ElementEnd(len(point.open)), size - point.offset - len(text)
    while (end := search.feed(text)) is None:
        text = file.read(min(SCAN_WINDOW, left))
        left -= len(text)
        if not text or search.is_one_tag:
            return None
    return point.offset + end


def _is_spent(taken: int, budget: int | None) -> bool:
    return budget is not None and taken > 0 and budget - taken < SMALLEST_WINDOW


def _open(point: SplitPoint, charset: Charset) -> tuple[str, ...]:
    return tuple(tag.decode(charset.codec) for tag in point.open)


def _ranges(
    origin: ScanOrigin, points: list[SplitPoint], end: int, charset: Charset, *, ended: bool
) -> list[ByteRange]:
    """Returns the ranges between split points, the last one up to `end`; the first begins at the origin."""
    starts = [(origin.byte, origin.open), *((point.offset, _open(point, charset)) for point in points[1:-1])]
    if end == points[0].offset and not ended:
        return []
    ends = [*(start for start, _ in starts[1:]), end]
    ranges = [
        ByteRange(origin.document, origin.base, start, stop, open_)
        for (start, open_), stop in zip(starts, ends, strict=True)
    ]
    if ended:
        last = ranges.pop()
        ranges.append(ByteRange(last.document, last.base, last.start, last.end, last.open, ends="root"))
    return ranges


def _lost(origin: ScanOrigin, ranges: list[ByteRange], size: int, open_: tuple[str, ...] | None = None) -> SplitScan:
    """Gives the parser the rest of the document as one range, so that it reports what is wrong."""
    start = ranges[-1].end if ranges else origin.byte
    rest = ByteRange(
        origin.document, origin.base, start, size, origin.open if not ranges or open_ is None else open_, "unfinished"
    )
    return SplitScan([*ranges, rest], size, (), "lost")


def _is_lost(file: BinaryIO, point: SplitPoint, size: int, charset: Charset, options: SourceOptions) -> bool:
    """Whether no further text can make the text after the last split point well-formed."""
    length = size - point.offset
    file.seek(point.offset)
    if not 0 < length <= options.max_item_bytes:
        return length > 0 and not begins_with(file.read(SMALLEST_WINDOW), point.open, options.passed_over)
    parser = safe_parser()
    try:
        text = charset.utf8(file.read(length)) if charset.codec != "utf-8" else file.read(length)
        parser.feed(b"".join(tag.encode() for tag in _open(point, charset)))
        parser.feed(text)
    except etree.XMLSyntaxError as error:
        return not is_too_deep(error)  # the end of an item nested too deeply can still be found
    except FlawError:
        return True
    return False


def _end_tag(file: BinaryIO, start: int, end: int, size: int, options: SourceOptions) -> int | None:
    """Returns the offset of the root's end tag, if a comment or instruction behind it may get its end later, else None.

    0 if the content, between `start` and the root's end, has no end tag.
    """
    file.seek(end)
    if size - end > options.max_item_bytes or epilog_state(file.read(size - end)) != "begun":
        return None
    start = max(start, end - SCAN_WINDOW)
    file.seek(start)
    at = file.read(end - start).rfind(b"</")
    return start + at if at >= 0 else 0


def _parquet(origin: ScanOrigin, size: int) -> SplitScan:
    """Returns a Parquet document as one range, with at least as many positions as items and bytes."""
    footer = parquet_footer(origin.document)
    if footer is None:
        return _lost(origin, [], size)
    end = max(size, footer.items)
    return SplitScan([ByteRange(origin.document, origin.base, 0, end, ends="root")], end, (), "ended")


def _compressed(origin: ScanOrigin, file: Any, options: SourceOptions, first: TupleNamespaces) -> SplitScan:
    """Returns a compressed document as one range, for one task; it is assumed to be complete."""
    with contextlib.suppress(FlawError):
        prolog = prolog_of(file, WHOLE, complete=True, encoding=options.encoding, doctype=options.doctype)
        if prolog is not None and prolog.charset.splittable:
            file.seek(prolog.content)
            point = _first(origin, prolog)
            first.look(file.read(SCAN_WINDOW), point, prolog.charset)
    return SplitScan([ByteRange(origin.document, origin.base, 0, WHOLE, ends="root")], WHOLE, (), "ended")


def _whole(
    origin: ScanOrigin,
    size: int,
    file: BinaryIO,
    prolog: Prolog,
    _budget: int | None,
    options: SourceOptions,
    first: TupleNamespaces,
    *,
    settled: bool,
) -> SplitScan:
    """Returns a document that can only be read from its start as one range, once it is complete."""
    file.seek(prolog.charset.mark)
    decoder = codecs.getincrementaldecoder(prolog.charset.codec)("replace")
    text = decoder.decode(file.read(size - prolog.charset.mark), final=settled).encode()
    point = SplitPoint(prolog.content, () if prolog.empty else (prolog.root,))
    while point.open:
        found = last_split_point(text[point.offset :], point, options.unsplit)
        if found == point:
            break
        first.look(text[point.offset : found.offset], point, Charset())
        point = found
    is_cut = not settled and bool(decoder.getstate()[0] or epilog_state(text[point.offset :]) == "begun")
    if not point.open and not is_cut:
        return SplitScan([ByteRange(origin.document, origin.base, 0, size, ends="root")], size, (), "ended")
    return _lost(origin, [], size) if settled else SplitScan([], 0, (), "more")
