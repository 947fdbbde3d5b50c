"""The punctuations of an auction house, each said as soon as it is true, however late a tuple comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sources.generators.auctions.events import HouseEvents
from sources.generators.auctions.house import START, TIMES, House
from sources.generators.auctions.streams import AUCTION_STREAMS, SLOT, Stream
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
            yield _said(house, name, at, patterns)
    heartbeats = _heartbeats(house, happened)
    for name in TIMES:
        if name in house.said:
            yield _said(house, name, heartbeats, concatenated("(,", moments(heartbeats), ")"))


def tuple_lines(house: House, stream: Stream, tuples: EventTuples) -> pa.StringArray:
    """Tuples as lines, and with each the punctuation of its id, where ids are unique and that is to be said."""
    elements = fill(stream.element(house.form), tuples.values)
    if f"{stream.name}.id" not in house.said:
        return concatenated(elements, "\n")
    before, _, after = stream.punctuation(house.form, "id").partition(SLOT)
    return concatenated(elements, f"\n{before}", tuples.values["id"], f"{after}\n")


def _said(house: House, name: str, at: Numbers, patterns: pa.StringArray) -> StreamPunctuations:
    stream_name, _, attribute = name.partition(".")
    stream = _STREAMS[stream_name]
    before, _, after = stream.punctuation(house.form, attribute).partition(SLOT)
    return StreamPunctuations(stream, at + house.delay, concatenated(before, patterns, f"{after}\n"))


def _heartbeats(house: House, happened: HouseEvents) -> Numbers:
    """The moments of heartbeats, later than the first event that happened and not later than the next that may."""
    apart = round(house.heartbeat * 1000)
    first, last = ((house.moment(event) - START) // apart for event in (happened.start, happened.end))
    return START + np.arange(first + 1, last + 1) * apart
