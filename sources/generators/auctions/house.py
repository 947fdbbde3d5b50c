"""The parameters of an auction house, those of `xmlstream generate auctions`, and which punctuations it says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

from punct_ns.errors import UsageError
from sources.generators.auctions.streams import Form, read_form
from sources.generators.text_columns import Numbers

Moments = TypeVar("Moments", int, Numbers)

EVENTS_PER_PERSON = 50
"""In every 50 events there are 1 person, then 3 auctions, then 46 bids, as in the NEXMark benchmark."""

AUCTIONS_PER_PERSON = 3

START = 1_436_918_400_000
"""When the first event happens: 2015-07-15T00:00:00Z, as in Beam's edition of NEXMark; in milliseconds."""

TIMES = ("person.dateTime", "auction.dateTime", "bid.dateTime")

SCHEMES = {
    "person.id": "an id, right after its person",
    "auction.id": "an id, right after its auction",
    "bid.auction": "an auction that has expired",
    "bid.bidder": "a person who bids no more",
    "auction.seller": "a person who sells nothing any more",
    **dict.fromkeys(TIMES, "the time up to a heartbeat"),
}
"""What can be punctuated, as stream.attribute, and by which punctuations."""

_SETS = {"all": frozenset(SCHEMES), "none": frozenset[str](), "dateTime": frozenset(TIMES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """An auction house.

    Attributes:
        seed: Of all that is random.
        form: Of the XML; `flat` or `nested`.
        schemes: What its streams punctuate: names of `SCHEMES`, `dateTime` for all three times, `all` or `none`; apart
            by `;` or `,`.
        bid_streams: Over how many documents the bids are spread, at random.
        out_of_order: By how many seconds at most a tuple arrives late; a tenth of them do. Of event time, as all times.
        pace: Events in a second.
        heartbeat: Seconds from one heartbeat to the next.
        in_flight: About how many auctions are open at once; every so many there is one that draws half of the bids.
        active: How many people, those who came last, bid and sell; who is no longer one of them never will be.
        said: The names that `schemes` stands for.

    Raises:
        UsageError: A parameter that means nothing.
    """

    seed: int = 0
    form: Form = "flat"
    schemes: str = "all"
    bid_streams: int = 1
    out_of_order: float = 0
    pace: int = 10
    heartbeat: float = 10
    in_flight: int = 100
    active: int = 1000
    said: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        for name, number, low, high in (
            ("as the seed", self.seed, 0, None),
            ("bid streams", self.bid_streams, 1, 1000),
            ("seconds out of order", self.out_of_order, 0, 1e6),
            ("events in a second", self.pace, 1, 10**6),
            ("seconds between heartbeats", self.heartbeat, 0.001, 1e6),
            ("auctions in flight", self.in_flight, 1, 10**6),
            ("active people", self.active, 1, 10**6),
        ):
            if number < low or (high is not None and number > high):
                raise UsageError(f"{number:g} {name}", hint=f"from {low:g} " + (f"to {high:g}" if high else "on"))
        read_form(self.form)
        object.__setattr__(self, "said", _said(self.schemes))

    @property
    def delay(self) -> int:
        """The latest that a tuple comes, in milliseconds."""
        return round(self.out_of_order * 1000)

    def moment(self, event: Moments) -> Moments:
        """When events happen, by their numbers from 0, in milliseconds: at equal distances, cut off to milliseconds."""
        return START + event * 1000 // self.pace

    def promised(self, stream: str) -> str:
        """What the documents of a stream promise to punctuate, as an option of `CREATE TABLE`."""
        names = [name.partition(".")[2] for name in SCHEMES if name in self.said and name.startswith(f"{stream}.")]
        return "; ".join(f"{name} prefix" if name == "dateTime" else name for name in names)


def _said(schemes: str) -> frozenset[str]:
    said = frozenset[str]()
    for name in re.split(r"[;,\s]+", schemes.strip(" ;,")):
        if name not in SCHEMES and name not in _SETS:
            known = ", ".join([*SCHEMES, *_SETS])
            raise UsageError(f"an auction house cannot punctuate '{name}'", hint=f"any of {known}")
        said |= _SETS.get(name) or frozenset({name} & SCHEMES.keys())
    return said
