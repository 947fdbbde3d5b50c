"""Planner of slices of a source whose documents, or directories of documents, are streams of their own.

Each stream has a planner of its own (`Planner`): of one document, or of the documents of one directory. This planner
finds the streams, numbers them in the order in which they are found, and shares the bytes of a slice out among those
that have any: in proportion to what waits, so that all get to their ends together. An offset has the place in each
*open* stream, which has begun and has not ended; of one that has ended nothing is left but a row of the log of read
documents. A stream is open from the slice that finds it on, even if that reads nothing of it. It ends one slice after
its last items, unless the source ends with these: what the items close comes first.

The ranges of a stream stand one behind the other in a slice, and those of the next one behind them. Positions are in
order within a slice, and mean nothing beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.errors import InputError
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.documents import Documents, Tail
from xmlstream.sources.xml.splits.slice_planner import Offset, OpenStream, Planner, Unfinished

LEAST_SHARE = 1 << 18
"""The least number of bytes that a stream gets in a slice, if it has them: small documents are read as a whole."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is there; it serves for slice after slice where later input does not count.

    Attributes:
        begun: The number of streams that have begun.
        places: The documents or directories of the open ones, by number, as offsets record them.
        sizes: The sizes of the documents of each.
    """

    begun: int
    places: Mapping[int, Mapping[str, Any]]
    sizes: Mapping[int, Tail[int]]

    def streams(self, start: Offset) -> dict[int, OpenStream]:
        """The open streams from an offset on, with those that begin."""
        places = self.places
        known = {
            one.number: one if places[one.number] is one.place else replace(one, place=places[one.number])
            for one in start.streams
        }
        return known | {n: OpenStream(n, self.places[n]) for n in range(start.document, self.begun)}


class StreamsPlanner:
    """Plans the slices of a source of many streams; all that counts for longer is in the offsets and the logs."""

    def __init__(
        self, options: SourceOptions, documents: Documents, faulty: Callable[[int], str | None] = lambda stream: None
    ) -> None:
        """Plan the slices of a source; `faulty` gives the document of a stream whose rest is not read."""
        self._options, self._documents, self._faulty = options, documents, faulty
        self._are_files = options.documents == "files"
        self._unfinished = Unfinished(options)
        self._planners: dict[int, tuple[Mapping[str, Any], Documents, Planner]] = {}
        self._looked: dict[int, tuple[OpenStream, object, Tail[int]]] = {}
        self._quiet: dict[int, tuple[OpenStream, object]] = {}

    def sizes(self, start: Offset) -> Found:
        """Finds streams, and what is there of each.

        Raises:
            InputError: There is nothing at the path; or a document was replaced after it was read.
        """
        places = {one.number: one.place for one in start.streams}
        if not start.closed:
            self._find(start, places)
        found = Found(max(start.document, len(self._documents.known)), places, {})
        return replace(found, sizes={number: self._sizes(one) for number, one in found.streams(start).items()})

    def _sizes(self, one: OpenStream) -> Tail[int]:
        """The sizes of a stream's documents; a file whose status is as it was is not looked at again.

        Raises:
            InputError: The file is gone, and `unfinished` is not `skip`.
        """
        if one.ended:
            return Tail[int]()
        status = None
        if self._are_files:
            with suppress(FileNotFoundError):
                status = self._documents.recorded(one.place).status()
            if status is None and self._options.on_replaced == "fail":
                return self._gone(one)
        known = self._looked.get(one.number)
        if known is None or status is None or known[:2] != (one, status):
            sizes = self._planner(one).sizes(one.offset())
            known = self._looked[one.number] = one, status if self._are_files else list(sizes), sizes
        return known[2]

    def _gone(self, one: OpenStream) -> Tail[int]:
        """The sizes of a stream whose file was removed: nothing of it waits."""
        if self._options.unfinished != "skip":
            where = self._documents.recorded(one.place).where
            hint = "put it back; or unfinished 'skip' goes on without its rest"
            raise InputError(f"{where} was removed before it was completely read", hint=hint)
        self._quiet[one.number] = one, None
        self._looked[one.number] = one, None, (nothing := Tail[int]())
        return nothing

    def _is_quiet(self, one: OpenStream) -> bool:
        """Whether a stream was advanced in vain when it was as it is now."""
        return self._quiet.get(one.number) == self._looked[one.number][:2]

    def _find(self, start: Offset, places: dict[int, Mapping[str, Any]]) -> None:
        """Adds the streams that have come; one that was renamed has another place."""
        documents = self._documents
        followed = [one for one in start.streams if self._are_files and not one.ended]
        reached = [(documents.recorded(one.place), one.byte, one.print) for one in followed]
        known = documents.find(start.document, streams=reached)
        for document, problem in documents.replaced(start.document):
            if self._options.on_replaced == "fail":
                raise problem
            documents.read_anew(document)
        if moved := documents.moved:
            documents.moved = {}
            for number, place in places.items():
                if (now := moved.get(documents.recorded(place).key)) is not None:
                    places[number] = documents.record(now)
        if new := known[start.document :]:
            documents.were_begun(new)
            places |= {number: documents.record(one) for number, one in enumerate(new, start.document)}

    def _waiting(self, start: Offset, found: Found) -> dict[int, int]:
        """The number of bytes of each stream that wait to be read."""
        streams = ((n, one) for n, one in found.streams(start).items() if not (one.ended or self._is_quiet(one)))
        return {n: self._planner(one).waiting(one.offset(), found.sizes[n]) for n, one in streams}

    def waiting(self, start: Offset, found: Found) -> int:
        """The number of bytes that wait to be read."""
        return sum(self._waiting(start, found).values())

    def has_all(self, at: Offset, found: Found, *, has_no_more: bool) -> bool:
        """Whether everything that was there is read up to an offset, given whether there was no more to read."""
        return has_no_more

    def advance(self, start: Offset, found: Found, budget: int | None) -> tuple[Offset, list[ByteRange]]:
        """Plans the next slice: returns its end, and its ranges, those of a stream one behind the other."""
        streams = found.streams(start)
        over = [one for one in streams.values() if one.ended]
        places = {number: one.offset() for number, one in streams.items() if not one.ended}
        ranges = self._read(streams, places, found, start, budget)
        self._pass_over(streams, places, ranges)
        ended = [number for number, at in places.items() if at.closed]
        for number in ended:
            self._end(streams[number])
        closes = len(ended) == len(places) and self._options.close and not (self._options.follow or start.closed)
        ranges |= {one.number: [_end(self._documents.recorded(one.place))] for one in over}
        ranges |= {number: _unclosed(ranges[number]) for number in (() if closes else ended)}
        left_open = (_at(streams[number], at) for number, at in places.items() if not (at.closed and closes))
        end = Offset(found.begun, closed=start.closed or closes, clock=start.clock, streams=tuple(left_open))
        planned = [replace(range_, stream=number) for number in sorted(ranges) for range_ in ranges[number]]
        return end, list(_placed([*planned, _end(Document.at(self._options.path))] if closes else planned))

    def _read(
        self,
        streams: Mapping[int, OpenStream],
        places: dict[int, Offset],
        found: Found,
        start: Offset,
        budget: int | None,
    ) -> dict[int, list[ByteRange]]:
        """Advances the places of streams, within the budget; returns the ranges of each that was tried."""
        ranges: dict[int, list[ByteRange]] = {}
        left = budget
        for share in self._shares(self._waiting(start, found), budget):
            for number, most in share.items():
                if places[number].closed or (left is not None and left <= 0):
                    continue
                planner, sizes = self._planner(streams[number]), found.sizes[number]
                length = most if left is None or most is None else min(most, left)
                places[number], more = planner.advance(places[number], sizes, length)
                ranges.setdefault(number, []).extend(more)
                left = None if left is None else left - sum(range_.length for range_ in more)
        for number in ranges:
            if places[number] == streams[number].offset():
                self._quiet[number] = self._looked[number][:2]
        return ranges

    def _shares(self, waiting: Mapping[int, int], budget: int | None) -> Iterator[dict[int, int | None]]:
        """The bytes that each stream gets: first its part of the budget, then of what others have left.

        Those with most come first, so that each gets its turn.
        """
        order = sorted(waiting, key=lambda number: -waiting[number])
        if budget is None:
            yield dict.fromkeys(order)
            return
        whole = max(sum(waiting.values()), 1)
        yield {number: max(budget * waiting[number] // whole, LEAST_SHARE) for number in order}
        yield {number: budget for number in order if waiting[number] > LEAST_SHARE}

    def look(self, at: Offset, found: Found, *, is_slice: bool = False) -> None:
        """Writes a note of the source.

        Raises:
            InputError: A stream waits for its end longer than `unfinishedAge`, and `unfinished` is `fail`.
        """
        waits = (one for one in at.streams if not one.ended)
        for one in waits if self._options.unfinished == "fail" else ():
            self._planner(one).look(one.offset(), found.sizes[one.number], is_slice=is_slice)
        self._unfinished.tell(found.begun, None, 0, self._documents.passed)

    def parts(self, end: Offset) -> list[tuple[Documents, Offset]]:
        """The documents up to an offset that may be forgotten, or removed: of each directory, or of the source."""
        if self._are_files:
            return [(self._documents, end)]
        self._documents.forget(end.document)
        pairs = [(one, self._planners[one.number]) for one in end.streams if one.number in self._planners]
        return [(documents, one.offset()) for one, (_, documents, _) in pairs]

    def _pass_over(
        self, streams: Mapping[int, OpenStream], places: dict[int, Offset], ranges: dict[int, list[ByteRange]]
    ) -> None:
        """Ends streams, if that is wanted, whose files are gone, or were silent for too long while another is open."""
        if not (self._are_files and self._options.unfinished == "skip"):
            return
        silent = [number for number, at in places.items() if not at.closed and not ranges.get(number)]
        for number in silent:
            document, at = self._documents.recorded(streams[number].place), places[number]
            is_other = self._options.follow and sum(not each.closed for each in places.values()) > 1
            is_gone = self._looked[number][1] is None and self._options.on_replaced == "fail"
            if is_gone or (is_other and self._unfinished.is_old(document)):
                self._unfinished.pass_over(document, at.byte)
                ranges[number], places[number] = [_end(document)], replace(at, closed=True)

    def _planner(self, at: OpenStream) -> Planner:
        """The planner of a stream; another one if its document was renamed."""
        if (known := self._planners.get(at.number)) is not None and known[0] == at.place:
            return known[2]
        log = self._options.document_log
        options = replace(
            self._options,
            path=self._documents.recorded(at.place).path,
            documents="one" if self._are_files else "sequence",
            document_log=None if self._are_files or log is None else f"{log}{OF_STREAM}{at.number}",
        )
        documents = Documents(options, log=True)
        planner = Planner(options, documents, partial(self._faulty, at.number))
        self._planners[at.number] = at.place, documents, planner
        return planner

    def _end(self, one: OpenStream) -> None:
        """Forgets a stream, but for what tells whether its document is replaced later."""
        known = self._planners.pop(one.number, None)
        self._looked.pop(one.number)
        self._quiet.pop(one.number, None)
        if self._are_files and known is not None:
            documents = known[1]
            self._documents.has_ended(self._documents.recorded(one.place), documents)


OF_STREAM = "@"
"""Stands before the number of a directory in the name of its log, behind the name of the source."""


def _end(document: Document) -> ByteRange:
    """An empty range that ends a stream, without anything else of it in the slice; or the source."""
    return ByteRange(document, 0, 0, 0, close=True)


def _at(one: OpenStream, at: Offset) -> OpenStream:
    """A stream at an offset in it; if that is closed, the stream ends with the next slice."""
    return replace(one, ended=True) if at.closed else one.at(at)


def _unclosed(ranges: Sequence[ByteRange]) -> list[ByteRange]:
    """The ranges of a stream whose end does not count yet."""
    *others, last = ranges
    return [*others, *([] if last.start == last.end else [replace(last, close=False)])]


def _placed(ranges: Sequence[ByteRange]) -> Iterator[ByteRange]:
    """Yields ranges with positions one behind the other."""
    at = 0
    for range_ in ranges:
        yield replace(range_, base=at - range_.start)
        at += range_.end - range_.start + 1
