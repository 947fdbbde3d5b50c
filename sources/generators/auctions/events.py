"""The events of an auction house, in the manner of the NEXMark benchmark's generator, by its numbers and hot ratios.

Event n happens n times the distance between events after the start. The first of every 50 events is a person, the next
3 are auctions, the others bids; ids grow from 1000. Half of the bids go to the hot auction, the first of the last
hundred; three quarters come from the hot bidder, the second of the last hundred people; three quarters of the auctions
are those of the hot seller, the first of them. The others are drawn from the auctions in flight and from the active
people. Prices are log-uniform.

Differs: NEXMark bids on a few auctions and by a few people that are yet to come, and does not ask whether an auction
is still open. Here every bid is on an auction that is open when it is made, and by a person who is there, so that what
is said of a closed auction is true. A city lies in its state. The words are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from sources.generators.auctions.bids import Bidding
from sources.generators.auctions.house import EVENTS_PER_PERSON, House
from sources.generators.auctions.lots import lots
from sources.generators.auctions.people import people, retirement
from sources.generators.auctions.tuples import EventTuples
from sources.generators.text_columns import Numbers

PEOPLE_AT_ONCE = 400
"""People who are made in one go, each with all that happens until the next comes. A go has its seed: it moves bytes."""

EVENTS_AT_ONCE = PEOPLE_AT_ONCE * EVENTS_PER_PERSON


@dataclass(frozen=True, slots=True)
class HouseEvents:
    """All that happens from one event to another.

    Attributes:
        start: The first event.
        end: The event after the last.
        person: The people who come.
        auction: The auctions that begin.
        bid: The bids.
        expires: When the auctions expire, in milliseconds; bids are made before.
        retires: From when on the people bid and sell no more, in milliseconds.
    """

    start: int
    end: int
    person: EventTuples
    auction: EventTuples
    bid: EventTuples
    expires: Numbers
    retires: Numbers

    def all(self) -> tuple[EventTuples, EventTuples, EventTuples]:
        """The tuples of the three streams."""
        return self.person, self.auction, self.bid

    def before(self, event: int) -> HouseEvents:
        """What happens before an event."""
        person, auction, bid = (tuples.before(event) for tuples in self.all())
        expires, retires = self.expires[: len(auction)], self.retires[: len(person)]
        return HouseEvents(self.start, min(self.end, event), person, auction, bid, expires, retires)


def house_events(house: House, events: int) -> Iterator[HouseEvents]:
    """The first events, go by go; of fewer events and of more they are the same."""
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
