"""The auctions of an auction house: what is sold, by whom, and until when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute

from sources.generators.auctions.house import AUCTIONS_PER_PERSON, EVENTS_PER_PERSON, House
from sources.generators.auctions.people import someone
from sources.generators.auctions.tuples import EventTuples, extra, prices, random_below, randomness
from sources.generators.text_columns import Numbers, moments, numbers, words

pc: Any = pyarrow.compute

FIRST_CATEGORY, CATEGORIES = 10, 5

AUCTION_BYTES = 500


def lots(house: House, go: int, person: Numbers) -> tuple[EventTuples, Numbers]:
    """The auctions that begin between these people and those who follow them, and when they expire, in milliseconds.

    Differs: a hot auction is open as long as it is hot; in NEXMark it may expire before.
    """
    random = randomness(house.seed, "lots", go)
    last = np.repeat(person, AUCTIONS_PER_PERSON)
    auction = np.arange(person[0] * AUCTIONS_PER_PERSON, (person[-1] + 1) * AUCTIONS_PER_PERSON)
    event = last * EVENTS_PER_PERSON + 1 + auction % AUCTIONS_PER_PERSON
    at = house.moment(event)
    # The time in which as many auctions begin as are to be in flight, on average.
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
    """The number of the auction that draws most bids when `last` began last."""
    return last // house.in_flight * house.in_flight


def _cools(house: House, auction: Numbers) -> Numbers:
    """From when on auctions are not hot any more, if they are the first of as many as are in flight."""
    # The person with whom the auction comes that is hot after them; the bids before her are the last for them.
    person = (auction + house.in_flight) // AUCTIONS_PER_PERSON
    return house.moment(person * EVENTS_PER_PERSON - 1) + 1
