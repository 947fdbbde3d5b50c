"""The punctuations of an auction house, each said as soon as it is true, however late a tuple comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sources.generators.auctions.events import HouseEvents
from sources.generators.auctions.house import START, TIMES, House
from sources.generators.auctions.streams import AUCTION_STREAMS, END, SLOT, Stream
from sources.generators.auctions.tuples import EventTuples
from sources.generators.text_columns import Numbers, concatenated, fill, moments

_STREAMS = {stream.name: stream for stream in AUCTION_STREAMS}


class StreamPunctuations(NamedTuple):
    """Punctuations of one stream.

    Attributes:
        stream: The stream; each of its documents has them.
        at: When they arrive, in milliseconds: no tuple that they match arrives then, or later.
        lines: Their elements.
    """

    stream: Stream
    at: Numbers
    lines: pa.StringArray


def house_punctuations(house: House, happened: HouseEvents) -> Iterator[StreamPunctuations]:
    """What can be said now or later of what has happened, but for the ids: those go with their tuples."""
    auction, person = happened.auction.values["id"], happened.person.values["id"]
    for name, at, patterns in (
        ("bid.auction", happened.expires, auction),
        ("bid.bidder", happened.retires, person),
        ("auction.seller", happened.retires, person),
    ):
        if name in house.said:
            yield _said(house, name, at, patterns, house.ends(at) if house.lifespan else None)
    heartbeats = _heartbeats(house, happened)
    for name in TIMES:
        if name in house.said:
            yield _said(house, name, heartbeats, concatenated("(,", moments(heartbeats), ")"))


def tuple_lines(house: House, stream: Stream, tuples: EventTuples, lived: Numbers) -> pa.StringArray:
    """Tuples as lines, and with each the punctuation of its id, where ids are unique and that is to be said.

    Args:
        house: The auction house.
        stream: The stream.
        tuples: Its tuples.
        lived: When the lives are over of what the ids are of, in milliseconds.
    """
    elements = fill(stream.element(house.form), tuples.values)
    if f"{stream.name}.id" not in house.said:
        return concatenated(elements, "\n")
    said = _elements(house, stream, "id", tuples.values["id"], house.ends(lived) if house.lifespan else None)
    return concatenated(elements, "\n", said)


def _said(
    house: House, name: str, at: Numbers, patterns: pa.StringArray, ends: Numbers | None = None
) -> StreamPunctuations:
    stream_name, _, attribute = name.partition(".")
    stream = _STREAMS[stream_name]
    return StreamPunctuations(stream, at + house.delay, _elements(house, stream, attribute, patterns, ends))


def _elements(
    house: House, stream: Stream, attribute: str, patterns: pa.StringArray, ends: Numbers | None
) -> pa.StringArray:
    """Punctuations as lines, with the moments at which they end, if they do."""
    head, _, after = stream.punctuation(house.form, attribute, ends=ends is not None).partition(SLOT)
    if ends is None:
        return concatenated(head, patterns, f"{after}\n")
    before, _, between = head.partition(END)
    return concatenated(before, moments(ends), between, patterns, f"{after}\n")


def _heartbeats(house: House, happened: HouseEvents) -> Numbers:
    """The moments of heartbeats, later than the first event that happened and not later than the next that may."""
    apart = round(house.heartbeat * 1000)
    first, last = ((house.moment(event) - START) // apart for event in (happened.start, happened.end))
    return START + np.arange(first + 1, last + 1) * apart
