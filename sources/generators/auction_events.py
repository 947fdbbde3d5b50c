"""Events of an auction house: people, auctions and bids, by the numbers and hot ratios of NEXMark's generator.

Event n happens n times the interval between events after the start. The first of every 50 events is a person, the next
3 are auctions, the others bids; ids increase from 1000. Half of the bids go to the hot auction, the first of the last
hundred; three quarters come from the hot bidder, the second of the last hundred people; three quarters of the auctions
belong to the hot seller, the first of them. The others are drawn from the auctions in flight and from the active
people. Prices are log-uniform.

Differs: in NEXMark, a few bids are on auctions and by people that are yet to come, and bids may be on closed auctions.
Here every bid is on an auction that is open when it is made, and by a person who is present, so that the
punctuation on a closed auction holds. A city is in its state. The words are our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass
from xmlstream.sources.generators.auction_house import AUCTIONS_PER_PERSON, EVENTS_PER_PERSON, House
from xmlstream.sources.generators.text_columns import Numbers, joined_texts, letters, moments, numbers, take, words


@dataclass(frozen=True, slots=True)
class EventTuples:
    """Tuples of one stream, in the order of their events.

    Attributes:
        number: The number of the event, from 0.
        at: The time of the event, in milliseconds.
        values: The text of every attribute, escaped for XML.
    """

    number: Numbers
    at: Numbers
    values: Mapping[str, pa.StringArray]

    def __len__(self) -> int:
        return len(self.number)

    def before(self, event: int) -> EventTuples:
        """Returns the tuples with smaller event numbers."""
        there = int(np.searchsorted(self.number, event))
        values = {name: texts.slice(0, there) for name, texts in self.values.items()}
        return EventTuples(self.number[:there], self.at[:there], values)


def randomness(seed: int, purpose: str, go: int = 0) -> np.random.Generator:
    """Returns an independent source of random numbers for every purpose and round."""
    return np.random.default_rng([seed, int.from_bytes(purpose.encode(), "big"), go])


def random_below(random: np.random.Generator, bounds: Numbers) -> Numbers:
    """Returns random numbers, each from 0 to its bound, exclusive."""
    return (random.random(bounds.shape) * bounds).astype(np.int64)


def prices(random: np.random.Generator, count: int) -> Numbers:
    """Returns log-uniform prices from 1 to 1,000,000, in cents, as in NEXMark."""
    return np.rint(10.0 ** (6 * random.random(count)) * 100).astype(np.int64)


def extra(random: np.random.Generator, size: Numbers, average: int) -> pa.StringArray:
    """Returns letters that extend tuples of these sizes to an average size, plus or minus a fifth, as in NEXMark."""
    missing = np.maximum(average - size, 0)
    delta = np.rint(missing * 0.2).astype(np.int64)
    return letters(random, missing - delta + random_below(random, 2 * delta))


pc: Any = pyarrow.compute

HOT_PEOPLE = 100
"""In each group of this many people the first is the hot seller, the second the hot bidder, until the next group."""

HOT_PERSON_RATIO = 4
"""One in four actions is by a random person, the others are by the hot one."""

PERSON_BYTES = 200

_FIRST_NAMES = pa.array(["Ada", "Alan", "Barbara", "Edgar", "Grace", "Jim", "John", "Leslie", "Margaret", "Michael"])
_LAST_NAMES = pa.array(["Allen", "Codd", "Gray", "Hamilton", "Hopper", "Liskov", "Milner", "Ritchie", "Turing"])
_CITIES = pa.array(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
_STATES = pa.array(["AZ", "CA", "CA", "ID", "OR", "OR", "WA", "WA", "WA", "WY"])


def people(house: House, go: int, person: Numbers) -> EventTuples:
    random = randomness(house.seed, "people", go)
    count = len(person)
    name = joined_texts(_any(random, _FIRST_NAMES, count), " ", _any(random, _LAST_NAMES, count))
    user, site = (letters(random, random.integers(3, most, count)) for most in (8, 6))
    email = joined_texts(user, "@", site, ".com")
    digits = [pc.utf8_lpad(numbers(random.integers(0, 10_000, count)), 4, "0") for _ in range(4)]
    card = joined_texts(digits[0], " ", digits[1], " ", digits[2], " ", digits[3])
    place = random.integers(0, len(_CITIES), count)
    values = {
        "id": house.person_ids(person),
        "name": name,
        "emailAddress": email,
        "creditCard": card,
        "city": take(_CITIES, place),
        "state": take(_STATES, place),
    }
    size = 8 + sum(pc.binary_length(texts).to_numpy() for column, texts in values.items() if column != "id")
    event = person * EVENTS_PER_PERSON
    at = house.moment(event)
    values |= {"dateTime": moments(at), "extra": extra(random, size.astype(np.int64), PERSON_BYTES)}
    return EventTuples(event, at, values)


def someone(house: House, random: np.random.Generator, last: Numbers, place: int) -> Numbers:
    """Returns the numbers of acting people, when `last` came last; the hot one has number `place` in its group."""
    among = min(HOT_PEOPLE, house.active)
    hot = np.minimum(last // among * among + place, last)
    cold = last - random_below(random, np.minimum(last + 1, house.active))
    return np.where(random.integers(0, HOT_PERSON_RATIO, len(last)) > 0, hot, cold)


def retirement(house: House, person: Numbers) -> Numbers:
    """Returns when people become inactive, in milliseconds, because enough others have come."""
    return house.moment((person + house.active) * EVENTS_PER_PERSON - 1) + 1


def _any(random: np.random.Generator, of: pa.StringArray, count: int) -> pa.StringArray:
    return take(of, random.integers(0, len(of), count))


FIRST_CATEGORY, CATEGORIES = 10, 5

AUCTION_BYTES = 500


def lots(house: House, go: int, person: Numbers) -> tuple[EventTuples, Numbers]:
    """Returns the auctions that begin after these people and before the next, and when they expire, in milliseconds.

    Differs: a hot auction is open as long as it is hot; in NEXMark it may expire before.
    """
    random = randomness(house.seed, "lots", go)
    last = np.repeat(person, AUCTIONS_PER_PERSON)
    auction = np.arange(person[0] * AUCTIONS_PER_PERSON, (person[-1] + 1) * AUCTIONS_PER_PERSON)
    event = last * EVENTS_PER_PERSON + 1 + auction % AUCTIONS_PER_PERSON
    at = house.moment(event)
    # The time in which as many auctions begin as are in flight, on average.
    length = house.moment(event + house.in_flight * EVENTS_PER_PERSON // AUCTIONS_PER_PERSON) - at
    expires = at + 1 + random_below(random, np.maximum(2 * length, 1))
    is_hot = auction % house.in_flight == 0
    expires = np.where(is_hot, np.maximum(expires, _cools(house, auction)), expires)
    name, description = words(random, len(auction), 20), words(random, len(auction), 100)
    initial = prices(random, len(auction))
    size = 48 + pc.binary_length(name).to_numpy() + pc.binary_length(description).to_numpy()
    values = {
        "id": house.auction_ids(auction),
        "itemName": name,
        "description": description,
        "initialBid": numbers(initial),
        "reserve": numbers(initial + prices(random, len(auction))),
        "dateTime": moments(at),
        "expires": moments(expires),
        "seller": house.person_ids(someone(house, random, last, place=0)),
        "category": numbers(FIRST_CATEGORY + random.integers(0, CATEGORIES, len(auction))),
        "extra": extra(random, size.astype(np.int64), AUCTION_BYTES),
    }
    return EventTuples(event, at, values), expires


def hot_auction(house: House, last: Numbers) -> Numbers:
    """Returns the number of the auction that gets most bids when `last` began last."""
    return last // house.in_flight * house.in_flight


def _cools(house: House, auction: Numbers) -> Numbers:
    """Returns when auctions cease to be hot, if they are the first of as many as are in flight."""
    # The person with whom the next hot auction comes; the bids before her are the last for these.
    person = (auction + house.in_flight) // AUCTIONS_PER_PERSON
    return house.moment(person * EVENTS_PER_PERSON - 1) + 1


HOT_BID_RATIO = 2
"""One in two bids is on a random auction, the others on the hot one; and likewise for hot channels."""

TRIES = 4
"""How often an auction in flight is drawn until one is open; after that the bid is on the hot one."""

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000

BID_BYTES = 100

_BIDS = np.arange(1 + AUCTIONS_PER_PERSON, EVENTS_PER_PERSON)


class Bidding:
    """Makes the bids of an auction house, round by round."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._channels, self._urls = _channels(house)
        self._expires = np.empty(0, np.int64)

    def bids(self, go: int, person: Numbers, expires: Numbers) -> EventTuples:
        """Returns the bids after these people and before the next.

        Args:
            go: The number of the round.
            person: The people's numbers, from 0; they continue those of the round before.
            expires: When the auctions of the round expire, in milliseconds.
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
        """Returns the numbers of auctions that are open when bids are made, if `last` began last."""
        # Earlier rounds contribute only the auctions in flight.
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
    """Returns the names of channels, the hot ones first, and their URLs; nine in ten of the others have the id."""
    random = randomness(house.seed, "channels")
    count = len(HOT_CHANNELS) + CHANNELS
    names = pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))])
    folders = [letters(random, random.integers(3, 5, count)) for _ in range(3)]
    url = joined_texts("https://www.nexmark.com/", folders[0], "/", folders[1], "/", folders[2], "/item.htm?query=1")
    ids = [f"&amp;channel_id={_id(number)}" for number in range(CHANNELS)]
    shown = np.where(random.integers(0, 10, CHANNELS) > 0, ids, "")
    return names, joined_texts(url, pa.array(["" for _ in HOT_CHANNELS] + shown.tolist()))


def _id(channel: int) -> int:
    """Returns the reversed 32 bits of a channel's number, as a number without sign."""
    reverse = int(f"{channel:032b}"[::-1], 2)
    return min(reverse, 2**32 - reverse)


PEOPLE_AT_ONCE = 400
"""The number of people in one round, each with all events until the next. The seed depends on the round's number."""

EVENTS_AT_ONCE = PEOPLE_AT_ONCE * EVENTS_PER_PERSON


@dataclass(frozen=True, slots=True)
class HouseEvents:
    """All events from one to another.

    Attributes:
        expires: When the auctions expire, in milliseconds; bids are made before.
        retires: When the people stop bidding and selling, in milliseconds.
    """

    start: int
    end: int
    person: EventTuples
    auction: EventTuples
    bid: EventTuples
    expires: Numbers
    retires: Numbers

    def all(self) -> tuple[EventTuples, EventTuples, EventTuples]:
        """Returns the tuples of the three streams."""
        return self.person, self.auction, self.bid

    def before(self, event: int) -> HouseEvents:
        person, auction, bid = (tuples.before(event) for tuples in self.all())
        expires, retires = self.expires[: len(auction)], self.retires[: len(person)]
        return HouseEvents(self.start, min(self.end, event), person, auction, bid, expires, retires)


def house_events(house: House, events: int) -> Iterator[HouseEvents]:
    """Yields the first events, round by round; they do not depend on the number of events."""
    bidding = Bidding(house)
    for go in count():
        start = go * EVENTS_AT_ONCE
        if start >= events:
            return
        person = np.arange(go * PEOPLE_AT_ONCE, (go + 1) * PEOPLE_AT_ONCE)
        auctions, expires = lots(house, go, person)
        yield HouseEvents(
            start=start,
            end=start + EVENTS_AT_ONCE,
            person=people(house, go, person),
            auction=auctions,
            bid=bidding.bids(go, person, expires),
            expires=expires,
            retires=retirement(house, person),
        ).before(events)
