"""The bids of an auction house: on which open auction, by whom, and through which channel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sources.generators.auctions.house import AUCTIONS_PER_PERSON, EVENTS_PER_PERSON, House
from sources.generators.auctions.lots import hot_auction
from sources.generators.auctions.people import someone
from sources.generators.auctions.tuples import EventTuples, extra, prices, random_below, randomness
from sources.generators.text_columns import Numbers, concatenated, letters, moments, numbers, take

HOT_BID_RATIO = 2
"""But for one in two, bids are on the hot auction; but for one in two, they come through a hot channel."""

TRIES = 4
"""How often an auction in flight is drawn, until one is open, before the bid goes to the hot one after all."""

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000

BID_BYTES = 100

_BIDS = np.arange(1 + AUCTIONS_PER_PERSON, EVENTS_PER_PERSON)


class Bidding:
    """Makes the bids of an auction house, one go after the other."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._channels, self._urls = _channels(house)
        self._expires = np.empty(0, np.int64)

    def bids(self, go: int, person: Numbers, expires: Numbers) -> EventTuples:
        """The bids between these people and those who follow them.

        Args:
            go: Of the goes, which.
            person: The people's numbers, from 0; they follow upon those of the go before.
            expires: When the auctions of the same go expire, in milliseconds.
        """
        random = randomness(self._house.seed, "bids", go)
        last = np.repeat(person, len(_BIDS))
        event = last * EVENTS_PER_PERSON + np.tile(_BIDS, len(person))
        at = self._house.moment(event)
        auction = self._open(random, last * AUCTIONS_PER_PERSON + AUCTIONS_PER_PERSON - 1, at, expires)
        through = np.where(
            random.integers(0, HOT_BID_RATIO, len(at)) > 0,
            random.integers(0, len(HOT_CHANNELS), len(at)),
            random.integers(len(HOT_CHANNELS), len(self._channels), len(at)),
        )
        values = {
            "auction": self._house.auction_ids(auction),
            "bidder": self._house.person_ids(someone(self._house, random, last, place=1)),
            "price": numbers(prices(random, len(at))),
            "channel": take(self._channels, through),
            "url": take(self._urls, through),
            "dateTime": moments(at),
            "extra": extra(random, np.full(len(at), 32), BID_BYTES),
        }
        return EventTuples(event, at, values)

    def _open(self, random: np.random.Generator, last: Numbers, at: Numbers, expires: Numbers) -> Numbers:
        """The numbers of auctions that are open when bids are made, which come when `last` began last."""
        # Of those before, the ones that are in flight are enough.
        known = np.concatenate([self._expires, expires])
        first = int(last[-1]) + 1 - len(known)
        self._expires = known[-self._house.in_flight :]
        back = np.broadcast_to(np.minimum(last, self._house.in_flight) + 1, (TRIES, len(last)))
        tried = last - random_below(random, back)
        is_open = known[tried - first] > at
        cold = tried[is_open.argmax(axis=0), np.arange(len(last))]
        is_hot = (random.integers(0, HOT_BID_RATIO, len(last)) > 0) | ~is_open.any(axis=0)
        return np.where(is_hot, hot_auction(self._house, last), cold)


def _channels(house: House) -> tuple[pa.StringArray, pa.StringArray]:
    """The names of channels, the hot ones first, and their URLs; nine in ten of the others' say the channel's id."""
    random = randomness(house.seed, "channels")
    count = len(HOT_CHANNELS) + CHANNELS
    names = pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))])
    folders = [letters(random, random.integers(3, 5, count)) for _ in range(3)]
    url = concatenated("https://www.nexmark.com/", folders[0], "/", folders[1], "/", folders[2], "/item.htm?query=1")
    ids = [f"&amp;channel_id={_id(number)}" for number in range(CHANNELS)]
    shown = np.where(random.integers(0, 10, CHANNELS) > 0, ids, "")
    return names, concatenated(url, pa.array(["" for _ in HOT_CHANNELS] + shown.tolist()))


def _id(channel: int) -> int:
    """The 32 bits of a channel's number from back to front, as a number without its sign."""
    reverse = int(f"{channel:032b}"[::-1], 2)
    return min(reverse, 2**32 - reverse)
