"""The people of an auction house: who they are, and which of them sells or bids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sources.generators.auctions.house import EVENTS_PER_PERSON, House
from sources.generators.auctions.tuples import EventTuples, extra, random_below, randomness
from sources.generators.text_columns import Numbers, concatenated, letters, moments, numbers, take

pc: Any = pyarrow.compute

HOT_PEOPLE = 100
"""Of every so many people the first is hot as a seller, the second as a bidder, until the next so many come."""

HOT_PERSON_RATIO = 4
"""But for one in four, what people do is done by the hot one."""

PERSON_BYTES = 200

_FIRST_NAMES = pa.array(["Ada", "Alan", "Barbara", "Edgar", "Grace", "Jim", "John", "Leslie", "Margaret", "Michael"])
_LAST_NAMES = pa.array(["Allen", "Codd", "Gray", "Hamilton", "Hopper", "Liskov", "Milner", "Ritchie", "Turing"])
_CITIES = pa.array(
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"]
)
_STATES = pa.array(["AZ", "CA", "CA", "ID", "OR", "OR", "WA", "WA", "WA", "WY"])


def people(house: House, go: int, person: Numbers) -> EventTuples:
    """The people with these numbers, from 0."""
    random = randomness(house.seed, "people", go)
    count = len(person)
    name = concatenated(_any(random, _FIRST_NAMES, count), " ", _any(random, _LAST_NAMES, count))
    user, site = (letters(random, random.integers(3, most, count)) for most in (8, 6))
    email = concatenated(user, "@", site, ".com")
    digits = [pc.utf8_lpad(numbers(random.integers(0, 10_000, count)), 4, "0") for _ in range(4)]
    card = concatenated(digits[0], " ", digits[1], " ", digits[2], " ", digits[3])
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
    """The numbers of people who do something when `last` came last; the hot one has this place among those he is of."""
    among = min(HOT_PEOPLE, house.active)
    hot = np.minimum(last // among * among + place, last)
    cold = last - random_below(random, np.minimum(last + 1, house.active))
    return np.where(random.integers(0, HOT_PERSON_RATIO, len(last)) > 0, hot, cold)


def retirement(house: House, person: Numbers) -> Numbers:
    """From when on people do nothing any more, in milliseconds: so many others have come that they are not active."""
    return house.moment((person + house.active) * EVENTS_PER_PERSON - 1) + 1


def _any(random: np.random.Generator, of: pa.StringArray, count: int) -> pa.StringArray:
    return take(of, random.integers(0, len(of), count))
