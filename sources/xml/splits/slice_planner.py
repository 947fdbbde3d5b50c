"""Planner of slices: how far the next slice of a source goes, and which byte ranges it consists of.

Unfinished documents: the process that plans the slices is not the one that informs the user, so it writes notes beside
the log of the source's documents. A note describes what currently waits after an unfinished document. A skipped
document is recorded permanently, before anything after it is read, so that a repeated slice is the same.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.records import Record
from xmlstream.operators.storage.store import Place, folder_at, store_at
from xmlstream.punct_ns.errors import InputError
from xmlstream.sources.local_paths import local_path
from xmlstream.sources.places import Document, fetch_ahead
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.documents import Documents, Tail
from xmlstream.sources.xml.splits.read_documents import Fingerprints, Row, fingerprint
from xmlstream.sources.xml.splits.split_scan import ScanOrigin, SplitScan, scan_splits, split_range

_LOG = logging.getLogger("xmlstream.documents")

_NOTE, _PASSED = "waiting.json", "passed.jsonl"


@dataclass(frozen=True, slots=True)
class WaitingNote(Record):
    """The state of a source of several documents.

    Attributes:
        unfinished: The document that is read up to its present end and is unfinished; None if there is none.
        behind: The number of documents after it.
        passed: The unfinished documents that were skipped.
        none: Objects that are no documents: empty ones, and those without a usable name.
    """

    documents: int
    unfinished: str | None = None
    behind: int = 0
    passed: tuple[str, ...] = ()
    none: tuple[str, ...] = ()


def waiting_note(place: Place) -> WaitingNote | None:
    """Reads the note beside a source's document log; None if there is none, or it is unreadable."""
    try:
        return WaitingNote.from_json(json.loads(store_at(place).read(_NOTE)))
    except (OSError, ValueError, TypeError):
        return None


class Unfinished:
    """The unfinished documents of a source."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._store = None if options.document_log is None else folder_at(local_path(options.document_log))
        self._told = waiting_note(self._store) if self._store else None
        passed = map(json.loads, self._store.log(_PASSED).lines()) if self._store else ()
        self._passed: dict[str, int] = {line["path"]: line["byte"] for line in passed}

    def end(self, document: Document) -> int | None:
        """Returns the byte up to which a skipped document is read; None for other documents."""
        return self._passed.get(document.where)

    def may_pass(self, document: Document, *, is_last: bool) -> bool:
        """Whether an unfinished document may be skipped now."""
        if self._options.unfinished != "skip":
            return False
        is_final = not (self._options.follow or self._options.keep_open)
        return is_final or document.is_whole or (not is_last and self.is_old(document))

    def is_old(self, document: Document) -> bool:
        """Whether a document has not been written to for the time in the option unfinishedAge."""
        try:
            return time.time() - document.status().written / 1e9 >= self._options.unfinished_age
        except FileNotFoundError:
            return False

    def pass_over(self, document: Document, byte: int) -> None:
        """Skips a document permanently after a byte."""
        if self._store is not None:
            self._store.log(_PASSED).append([json.dumps({"path": document.where, "byte": byte})])
        self._passed[document.where] = byte

    def tell(self, documents: int, unfinished: str | None, behind: int, none: Iterable[str] = ()) -> None:
        """Writes a note of the present state if it has changed."""
        now = WaitingNote(documents, unfinished, behind, tuple(self._passed), tuple(none))
        if self._store is None or now == self._told:
            return
        self._store.replace(_NOTE, [json.dumps(now.json()).encode()], durable=False)
        self._told = now


GONE = -1
"""The size of a document that no longer exists; an error only if it has not been read."""


@dataclass(frozen=True, slots=True)
class OpenStream(Record):
    """How far a document stream has been read, of a source of many (`streams_planner`).

    Attributes:
        number: The number of the stream.
        place: Its document or directory, as a log of documents records it.
        document, byte, open, namespaces, print: As those of the offset in the stream.
        ended: Whether it was read to its end, which counts from the next slice on. None for no.
    """

    sparse = ("open", "namespaces", "print", "ended")

    number: int
    place: Mapping[str, Any]
    document: int = 0
    byte: int = 0
    open: tuple[str, ...] = ()
    namespaces: tuple[str | None, ...] = ()
    print: str | None = None
    ended: bool | None = None

    @property
    def name(self) -> str:
        """The name of its document or directory, from where the source is."""
        return str(self.place["path"]).rstrip("/")

    def offset(self) -> Offset:
        """The offset in the stream."""
        return Offset(self.document, 0, self.byte, self.open, False, self.namespaces, None, self.print)

    def at(self, offset: Offset) -> OpenStream:
        """The stream at another offset in it."""
        at, byte, open_ = offset.document, offset.byte, offset.open
        return OpenStream(self.number, self.place, at, byte, open_, offset.namespaces, offset.print)


@dataclass(frozen=True, slots=True)
class Offset(Record):
    """How far a source has been read.

    Attributes:
        document: The number of the document that is next, or is being read.
        base: The position of the first byte of that document.
        byte: An offset in it, a proven split point; 0 is before its prolog.
        open: Start tags of the elements open there, from the root.
        closed: Whether the source has ended permanently.
        namespaces: The namespaces of the tuples read so far (`TupleNamespaces`).
        print: The fingerprint of what was read of that document (`fingerprint`); empty for one that has
            replaced another and was not read yet. None before any.
        clock: The time, as a text, at which everything present had been read; None if no clock needs it.
        streams: Of a source of many streams the open ones, in order; `document` is the number of all that have begun.
    """

    sparse = ("clock", "streams")

    document: int = 0
    base: int = 0
    byte: int = 0
    open: tuple[str, ...] = ()
    closed: bool = False
    namespaces: tuple[str | None, ...] = ()
    clock: str | None = None
    print: str | None = None
    streams: tuple[OpenStream, ...] = ()

    def next(self, end: int) -> Offset:
        """Returns the start of the next document, if this one ends at byte `end`."""
        return Offset(self.document + 1, self.base + end + 1, namespaces=self.namespaces, clock=self.clock)


class Planner:
    """Plans the slices of one source; its only state is in the offsets."""

    def __init__(
        self, options: SourceOptions, documents: Documents, faulty: Callable[[], str | None] = lambda: None
    ) -> None:
        """Plan the slices of a source; `faulty` gives the document whose rest is not read."""
        self._options, self._faulty = options, faulty
        self._documents = documents
        self._unfinished = Unfinished(options)
        self._fingerprints = Fingerprints()

    def sizes(self, start: Offset) -> Tail[int]:
        """Returns the present size of each document from an offset on; GONE for one that is missing."""
        read = start.document
        if start.print is not None:
            self._documents.reach(read)
        return Tail(map(_size, self._documents.find(read, start.byte, start.print)[read:]), read)

    def waiting(self, start: Offset, sizes: Tail[int]) -> int:
        """Returns the number of bytes that wait to be read, by the sizes of the documents."""
        return max(0, sum(size for size in sizes[start.document :] if size != GONE) - start.byte)

    def has_all(self, at: Offset, sizes: Tail[int], *, has_no_more: bool) -> bool:
        """Whether everything that was there is read up to an offset, given whether there was no more to read."""
        behind = len(sizes) - at.document
        return behind <= 0 or (behind == 1 and has_no_more)

    def advance(self, start: Offset, sizes: Tail[int], budget: int | None) -> tuple[Offset, list[ByteRange]]:
        """Plans the next slice: returns its end, and its ranges; `start` and no ranges if nothing is present.

        Args:
            start: The end of the last slice.
            sizes: The present sizes of documents; replaced documents are appended.
            budget: The approximate number of bytes to take; None for all. A longer item is taken as a whole.
        """
        self._find_replaced(start, sizes)
        at, ranges, files, ended, read = start, list[ByteRange](), 0, False, list[tuple[int, int | Row | None]]()
        skips, taken, counted = self._options.unfinished == "skip", 0, 0
        while not at.closed and at.document < len(sizes):
            if (passed := self._end_of_skipped(at)) is not None:
                ended = self._is_last(at, sizes, sound=False)
                read.append((at.document, None))
                at = self._passed(at, passed, ranges)
                continue
            taken, counted = taken + sum(range_.length for range_ in ranges[counted:]), len(ranges)
            left = None if budget is None else budget - taken
            if left is not None and (left <= 0 or files == self._options.max_files_per_slice):
                break
            size, document = self._present(at, sizes[at.document]), self._documents.known[at.document]
            if at.byte and (replaced := self._fingerprints.replaced(document, at.byte, at.print)):
                at = self._onto_new(document, at, replaced, sizes)
                continue
            waits = self._options.follow and not document.is_whole
            fetch_ahead(self._documents.known, at.document)
            settled = not waits and not self._options.keep_open and not skips
            found = scan_splits(self._place(at), size, left, self._options, settled=settled)
            ranges += found.ranges
            if found.namespaces != at.namespaces:
                at = replace(at, namespaces=found.namespaces)
            if found.state == "more":
                if found.byte > at.byte:
                    at = replace(at, byte=found.byte, open=found.open, print=fingerprint(document, found.byte))
                if self._documents.is_left(at.document, size, sizes):
                    read.append((at.document, size))
                    at, files = replace(at.next(at.byte), print=""), files + 1
                    continue
                if not skips or not self._unfinished.may_pass(document, is_last=at.document + 1 == len(sizes)):
                    break
                if not found.ranges:
                    self._unfinished.pass_over(document, at.byte)
                continue
            ended = self._is_last(at, sizes, sound=found.state == "ended")
            read.append((at.document, self._left(found, size)))
            at = at.next(found.byte)
            files += 1
        self._documents.were_read(read)
        if at.closed or not self._closes(at, sizes, ended=ended):
            return at, _in_namespaces(ranges, at)
        return replace(at, closed=True), _in_namespaces(self._with_end(at, ranges), at)

    def _closes(self, at: Offset, sizes: Sequence[int], *, ended: bool) -> bool:
        """Whether the source ends here: its one document has `ended`, or all were read and it ends with them."""
        if ended and self._documents.single:
            return True
        return self._options.close and not self._options.follow and at.document >= len(sizes)

    def ranges(self, start: Offset, end: Offset) -> list[ByteRange]:
        """Returns the ranges between two offsets, from the documents; for a slice that was planned before."""
        at, ranges = start, list[ByteRange]()
        while at.document < end.document:
            if (passed := self._unfinished.end(self._documents.known[at.document])) is not None:
                at = self._passed(at, passed, ranges)
                continue
            place = self._place(at)
            found = scan_splits(place, self._present(at, _size(place.document)), None, self._options, settled=True)
            ranges += found.ranges
            at = at.next(found.byte)
        if end.byte > at.byte:
            document = self._documents.known[at.document]
            if document.is_whole and (replaced := self._fingerprints.replaced(document, end.byte, end.print)):
                raise replaced
            ranges += split_range(replace(self._place(at), base=end.base), end.byte, self._options)
        return _in_namespaces(self._with_end(end, ranges) if end.closed and not start.closed else ranges, end)

    def look(self, at: Offset, sizes: Sequence[int], *, is_slice: bool = False) -> None:
        """Writes a note of what the source waits for, after everything up to an offset was read.

        With `is_slice` a slice up to the offset is still to be taken.

        Raises:
            InputError: The source waits for a document longer than `unfinishedAge`, and `unfinished` is `fail`.
        """
        stuck = self._documents.known[at.document] if at.document < len(sizes) and not at.closed else None
        behind = len(sizes) - at.document - 1
        if stuck and not is_slice and self._options.unfinished == "fail" and self._unfinished.is_old(stuck):
            apart = "documents 'files' reads documents side by side; or " if behind else ""
            raise InputError(
                f"{stuck.where} is unfinished, and was not written to for a while",
                where=f"{behind} document{' waits' if behind == 1 else 's wait'} behind it" if behind else None,
                hint=f"write its end tag; or {apart}unfinished 'skip' goes on without its rest, which is lost if it"
                " comes; unfinishedAge sets how long to wait",
            )
        if not self._documents.single:
            name, left = (stuck.where, behind) if stuck else (None, 0)
            self._unfinished.tell(len(sizes), name, left, self._documents.passed)

    def _onto_new(self, document: Document, at: Offset, replaced: InputError, sizes: Tail[int]) -> Offset:
        """Goes on behind a document that another file has replaced as it was read, and adds that; or stops."""
        if self._options.on_replaced == "fail":
            raise replaced
        what = "%s was replaced, and the file before is not beside it: what stands in that behind byte %d is not read"
        _LOG.warning(what, document.where, at.byte)
        self._documents.read_anew(document)
        sizes.extend([_size(document)])
        return replace(at.next(at.byte), print="")

    def _find_replaced(self, start: Offset, sizes: Tail[int]) -> None:
        """Stops, or adds the new file, for each completely read document that another file has replaced."""
        for document, problem in self._documents.replaced(start.document):
            if start.closed:
                continue
            if self._options.on_replaced == "fail":
                raise problem
            self._documents.read_anew(document)
            sizes.extend([_size(document)])

    def _is_last(self, at: Offset, sizes: Sequence[int], *, sound: bool) -> bool:
        """Whether the last document ends there: with its root, or where the rest of it is skipped."""
        return at.document + 1 == len(sizes) and (sound or self._options.bad_documents == "skip")

    def _left(self, found: SplitScan, size: int) -> int | Row | None:
        """What is compared of a document that was read later on; nothing of one that is skipped, and may still grow."""
        return None if found.state == "lost" and self._options.bad_documents == "skip" else found.row or size

    def _end_of_skipped(self, at: Offset) -> int | None:
        """The byte up to which a document is read whose rest is skipped; None for another one."""
        document = self._documents.known[at.document]
        return at.byte if at.byte and document.where == self._faulty() else self._unfinished.end(document)

    def _passed(self, at: Offset, end: int, ranges: list[ByteRange]) -> Offset:
        """Moves to the document after a skipped one, and adds the ranges up to its last byte."""
        if end > at.byte:
            ranges += split_range(self._place(at), end, self._options)
        return at.next(end)

    def _present(self, at: Offset, size: int) -> int:
        if size == GONE:
            raise InputError(f"{self._documents.known[at.document].where} was removed before it was completely read")
        return size

    def _place(self, at: Offset) -> ScanOrigin:
        return ScanOrigin(self._documents.known[at.document], at.base, at.byte, at.open, at.namespaces)

    def _with_end(self, at: Offset, ranges: list[ByteRange]) -> list[ByteRange]:
        """Returns the ranges, with the end of the source after the last one."""
        if ranges:
            return [*ranges[:-1], replace(ranges[-1], close=True)]
        return [ByteRange(Document.at(self._options.path), at.base, at.byte, at.byte, close=True)]


def _in_namespaces(ranges: list[ByteRange], at: Offset) -> list[ByteRange]:
    """Adds the known namespaces of tuples to the ranges: the first tuple's namespace holds for all."""
    known = at.namespaces
    return [range_ if range_.namespaces == known else replace(range_, namespaces=known) for range_ in ranges]


def _size(document: Document) -> int:
    try:
        return document.status().size
    except FileNotFoundError:
        return GONE
