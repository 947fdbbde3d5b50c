"""Documents of an online auction: three punctuated streams of people who register, auctions that begin, and bids.

The model is that of the NEXMark benchmark (`auction_events`), and so are the attributes (`auction_house`). The house
sends each punctuation as soon as it holds, however late tuples arrive. The output is determined by the seed, byte for
byte, and fewer events are a prefix of more, except the end of the documents and late tuples there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from heapq import merge
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.generators.auction_events import (
    EVENTS_AT_ONCE,
    EventTuples,
    HouseEvents,
    house_events,
    random_below,
    randomness,
)
from xmlstream.sources.generators.auction_house import (
    AUCTION_STREAMS,
    BID,
    END,
    SLOT,
    START,
    TIMES,
    House,
    Stream,
    documents,
)
from xmlstream.sources.generators.live import Line, write_live
from xmlstream.sources.generators.text_columns import Numbers, fill, joined_texts, moments, take


@dataclass(frozen=True, slots=True)
class Arrived:
    """Lines in the order of their arrival; `at` has their arrival times, in milliseconds."""

    at: Numbers
    lines: pa.StringArray

    def to_bytes(self) -> bytes:
        """Concatenates the lines."""
        if not len(self.lines):
            return b""
        buffers: list[Any] = self.lines.buffers()
        ends = np.frombuffer(buffers[1], np.int32)[self.lines.offset :]
        return bytes(buffers[2][int(ends[0]) : int(ends[len(self.lines)])])


class Arrivals:
    """Lines that will arrive in one document.

    Lines with one arrival time arrive in the order in which they were added, but punctuations before tuples, since
    they concern tuples before that time.
    """

    def __init__(self) -> None:
        self._keys = [np.empty(0, np.int64)]
        self._lines: list[Any] = [pa.array([], pa.string())]

    def add_tuples(self, at: Numbers, lines: pa.StringArray) -> None:
        """Adds tuples that arrive at these times."""
        self._keys.append(2 * at + 1)
        self._lines.append(lines)

    def add_punctuations(self, at: Numbers, lines: pa.StringArray) -> None:
        """Adds punctuations that arrive at these times, before any tuple with the same time."""
        self._keys.append(2 * at)
        self._lines.append(lines)

    def before(self, moment: int) -> Arrived:
        """Removes and returns all lines that arrive before a time; all of these must have been added."""
        keys, lines = np.concatenate(self._keys), pa.concat_arrays(self._lines)
        order = np.argsort(keys, kind="stable")
        now = int(np.searchsorted(keys, 2 * moment, sorter=order))
        later = np.sort(order[now:])
        self._keys, self._lines = [keys[later]], [take(lines, later)]
        return Arrived(keys[order[:now]] // 2, take(lines, order[:now]))


_STREAMS = {stream.name: stream for stream in AUCTION_STREAMS}


def house_punctuations(house: House, happened: HouseEvents) -> Iterator[tuple[str, Numbers, pa.StringArray]]:
    """Yields the punctuations that follow from these events, except those on ids, which accompany their tuples.

    Yields:
        For each punctuated attribute: the name of its stream, each document of which has the punctuations; their
        arrival times, in milliseconds, from which on no tuple arrives that they match; their elements.
    """
    auction, person = happened.auction.values["id"], happened.person.values["id"]
    heartbeats = _heartbeats(house, happened)
    until = joined_texts("(,", moments(heartbeats), ")")
    for name, at, patterns in (
        ("bid.auction", happened.expires, auction),
        ("bid.bidder", happened.retires, person),
        ("auction.seller", happened.retires, person),
        *((name, heartbeats, until) for name in TIMES),
    ):
        if name in house.punctuated:
            stream, _, attribute = name.partition(".")
            ends = house.ends(at) if house.lifespan and name not in TIMES else None
            yield stream, at + house.delay, _elements(house, _STREAMS[stream], attribute, patterns, ends)


def tuple_lines(house: House, stream: Stream, tuples: EventTuples, lived: Numbers) -> pa.StringArray:
    """Writes tuples as lines, each followed by the punctuation on its id, if ids are unique and are punctuated.

    Args:
        house: The auction house.
        stream: The stream.
        tuples: Its tuples.
        lived: The times at which the lives of the ids' owners end, in milliseconds.
    """
    elements = fill(stream.element(house.form), tuples.values)
    if f"{stream.name}.id" not in house.punctuated:
        return joined_texts(elements, "\n")
    punctuations = _elements(house, stream, "id", tuples.values["id"], house.ends(lived) if house.lifespan else None)
    return joined_texts(elements, "\n", punctuations)


def _elements(
    house: House, stream: Stream, attribute: str, patterns: pa.StringArray, ends: Numbers | None
) -> pa.StringArray:
    """Writes punctuations as lines, with the times at which they end, if they do."""
    head, _, after = stream.punctuation(house.form, attribute, ends=ends is not None).partition(SLOT)
    if ends is None:
        return joined_texts(head, patterns, f"{after}\n")
    before, _, between = head.partition(END)
    return joined_texts(before, moments(ends), between, patterns, f"{after}\n")


def _heartbeats(house: House, happened: HouseEvents) -> Numbers:
    """Returns the times of heartbeats, after the first of these events and not after the next possible event."""
    apart = round(house.heartbeat * 1000)
    first, last = ((house.moment(event) - START) // apart for event in (happened.start, happened.end))
    return START + np.arange(first + 1, last + 1) * apart


LATE_PART = 0.1
"""The fraction of the tuples that arrive late, if any do."""

TABLES = "tables.sql"
"""The file beside the documents with the statements that declare them."""

KILOBYTES_A_SLICE = 64 << 10
"""The amount of the largest document in one slice, as by default."""


def write_auctions(
    directory: str | Path, events: int = 100_000, house: House | None = None, rate: float | None = None
) -> list[Path]:
    """Writes `person.xml`, `auction.xml`, `bid.xml` (or `bid1.xml`, …), and `tables.sql`, which declares them.

    Args:
        directory: Created if it does not exist; files with these names are replaced.
        events: The number of people, auctions and bids, 1 : 3 : 46.
        house: The auction house; None for one like NEXMark's.
        rate: Events per second, for streams that are written live, in parallel; None for writing at once.

    Returns:
        The paths of the files, `tables.sql` last.

    Raises:
        UsageError: A number is out of range.
    """
    house = house or House()
    if events < 0 or (rate is not None and rate < 1e-6):
        what = f"{events} events" if events < 0 else f"{rate:g} events a second"
        raise UsageError(what, hint="0 events or more, and a rate above 0")
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    streams = list(documents(house.bid_streams))
    paths = [directory / f"{name}.xml" for name, _ in streams]
    heads, tails = ([stream.ends()[end].encode() for _, stream in streams] for end in (0, 1))
    tables = directory / TABLES
    if rate is None:
        goes = ([arrived.to_bytes() for arrived in go] for go in _goes(house, events))
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("wb")) for path in paths]
            for texts in chain([heads], goes, [tails]):
                for file, text in zip(files, texts, strict=True):
                    file.write(text)
        tables.write_text(_declared(house, paths, [path.stat().st_size for path in paths]), encoding="utf-8")
    else:
        tables.write_text(_declared(house, paths, None), encoding="utf-8")
        write_live(paths, _lines(house, events, rate, heads, tails))
    return [*paths, tables]


def _declared(house: House, paths: list[Path], sizes: list[int] | None) -> str:
    """Returns the statements that declare the documents; slices of all documents span about the same time."""
    largest = max(sizes or [0])
    statements = []
    for number, ((name, stream), path) in enumerate(zip(documents(house.bid_streams), paths, strict=True)):
        slice_ = ""
        if sizes and largest > KILOBYTES_A_SLICE << 10:
            slice_ = f"{-(-sizes[number] * KILOBYTES_A_SLICE // largest)}k"
        options = stream.options(house.form, path, house.promised(stream.name), slice_)
        statements.append(stream.declaration(name, options))
    return "\n".join(statements)


def _goes(house: House, events: int) -> Iterator[list[Arrived]]:
    """Yields what arrives at each of the documents, round by round."""
    arrivals = [Arrivals() for _ in documents(house.bid_streams)]
    for go, happened in enumerate(house_events(house, events)):
        late = _lateness(house, go)
        # The bid stream of each event, if it is a bid.
        where = randomness(house.seed, "places", go).integers(0, house.bid_streams, EVENTS_AT_ONCE)
        for document, (stream, tuples) in enumerate(zip(AUCTION_STREAMS, happened.all(), strict=True)):
            lived = {"person": happened.retires, "auction": happened.expires}.get(stream.name, tuples.at)
            texts = tuple_lines(house, stream, tuples, lived)
            event = tuples.number - happened.start
            at = tuples.at + late[event]
            if stream is not BID or house.bid_streams == 1:
                arrivals[document].add_tuples(at, texts)
                continue
            for number in range(house.bid_streams):
                here = where[event] == number
                arrivals[document + number].add_tuples(at[here], texts.filter(pa.array(here)))
        for name, at, lines in house_punctuations(house, happened):
            for (_, stream), arriving in zip(documents(house.bid_streams), arrivals, strict=True):
                if stream.name == name:
                    arriving.add_punctuations(at, lines)
        # Nothing arrives before it happens; after the last event, everything late arrives.
        is_last = happened.end == events
        until = house.moment(events - 1) + house.delay + 1 if is_last else house.moment(happened.end)
        yield [arriving.before(until) for arriving in arrivals]


def _lateness(house: House, go: int) -> Numbers:
    """Returns the delay of each of a round's events, in milliseconds."""
    random = randomness(house.seed, "lateness", go)
    late = 1 + random_below(random, np.full(EVENTS_AT_ONCE, house.delay))
    return np.where((random.random(EVENTS_AT_ONCE) < LATE_PART) & (house.delay > 0), late, 0)


def _lines(house: House, events: int, rate: float, heads: list[bytes], tails: list[bytes]) -> Iterator[Line]:
    """Yields all lines in order, `rate` events per second."""
    due = 0.0
    for file, head in enumerate(heads):
        yield due, file, head
    for go in _goes(house, events):
        for line in merge(*(_due(house, rate, file, arrived) for file, arrived in enumerate(go)), key=itemgetter(0)):
            due = line[0]
            yield line
    for file, tail in enumerate(tails):
        yield due, file, tail


def _due(house: House, rate: float, file: int, arrived: Arrived) -> Iterator[Line]:
    seconds = (arrived.at - START) * (house.pace / rate / 1000)
    texts: list[Any] = arrived.lines.to_pylist()
    return zip(seconds.tolist(), repeat(file), map(str.encode, texts), strict=False)
