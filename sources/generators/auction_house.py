"""Auction house: its parameters, those of `xmlstream generate auctions`, and the three streams that it sends.

The attributes are those of the NEXMark benchmark. The XML form `flat` has a child element for each of them; `nested` is
in the manner of XMark's documents: ids are XML attributes, references are elements that hold nothing else, an address
and an interval have parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar, get_args

import pyarrow as pa

from punct_ns.errors import UsageError
from punct_ns.lifespan import Duration
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.xml_form import PUNCT_NS, write_element
from sources.generators.text_columns import Numbers, numbers

Form = Literal["flat", "nested"]

SLOT = "\ue000"
"""Stands for the pattern in the text of a punctuation's element."""

END = "\ue001"
"""Stands for the moment at which it ends, which is before the pattern."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One of the streams.

    Attributes:
        name: Of its tuples' elements.
        root: Of its document's root element.
        schema: Spark DDL of its attributes.
        nested: A tuple's element in the nested form, with the attributes' names in braces where their values go.
        nested_paths: Where that has the attributes that are not child elements of their own name.
    """

    name: str
    root: str
    schema: str
    nested: str
    nested_paths: tuple[tuple[str, str], ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return Schema.parse(self.schema).names

    def element(self, form: Form) -> str:
        """A tuple's element, with the attributes' names in braces where their values go."""
        if form == "nested":
            return self.nested
        leaves = "".join(f"<{name}>{{{name}}}</{name}>" for name in self.attributes)
        return f"<{self.name}>{leaves}</{self.name}>"

    def paths(self, form: Form) -> dict[str, str]:
        """The paths to the leaves of attributes that are not child elements of their own name."""
        return dict(self.nested_paths) if form == "nested" else {}

    def punctuation(self, form: Form, attribute: str, *, ends: bool = False) -> str:
        """The element of a punctuation that restricts one attribute, with `SLOT` where the pattern goes.

        If it ends, by the time of the tuples, it has `END` where it says when.
        """
        path = self.paths(form).get(attribute, attribute)
        p = Punctuation(Schema.parse(f"{attribute} STRING"), (Constant(SLOT),))
        return write_element(p, self.name, paths=[path], lifespan=f"dateTime < {END}" if ends else None)

    def ends(self) -> tuple[str, str]:
        """What a document begins and ends with."""
        head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{self.root} xmlns:punct="{PUNCT_NS}">\n'
        return head, f"</{self.root}>\n"

    def options(self, form: Form, path: str | Path, schemes: str = "", slice_: str = "") -> dict[str, str]:
        """The options that read such a document, those of `CREATE TABLE` and of `xmlstream.read`, but its schema.

        Args:
            form: The document's XML form.
            path: Where it is.
            schemes: What it promises to punctuate.
            slice_: How much of it one slice takes, such as `64m`.
        """
        said = {"path": str(path), "rowTag": self.name, "schemes": schemes, "maxBytesPerSlice": slice_}
        paths = {f"path.{attribute}": leaf for attribute, leaf in self.paths(form).items()}
        return {name: value for name, value in said.items() if value} | paths

    def declaration(self, table: str, options: Mapping[str, str]) -> str:
        """The `CREATE TABLE` statement with these options."""
        said = ",\n  ".join(f"{name} '{_quoted(value)}'" for name, value in options.items())
        return f"CREATE TABLE {table} (\n  {self.schema}\n) USING punctuated_xml OPTIONS (\n  {said}\n);\n"


PERSON = Stream(
    name="person",
    root="people",
    schema="id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "dateTime TIMESTAMP, extra STRING",
    nested='<person id="{id}"><name>{name}</name><emailAddress>{emailAddress}</emailAddress>'
    "<creditCard>{creditCard}</creditCard><address><city>{city}</city><state>{state}</state></address>"
    "<dateTime>{dateTime}</dateTime><extra>{extra}</extra></person>",
    nested_paths=(("id", "@id"), ("city", "address/city"), ("state", "address/state")),
)

AUCTION = Stream(
    name="auction",
    root="auctions",
    schema="id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    nested='<auction id="{id}"><itemName>{itemName}</itemName><description>{description}</description>'
    "<initialBid>{initialBid}</initialBid><reserve>{reserve}</reserve>"
    '<interval><start>{dateTime}</start><end>{expires}</end></interval><seller person="{seller}"/>'
    '<incategory category="{category}"/><extra>{extra}</extra></auction>',
    nested_paths=(
        ("id", "@id"),
        ("dateTime", "interval/start"),
        ("expires", "interval/end"),
        ("seller", "seller/@person"),
        ("category", "incategory/@category"),
    ),
)

BID = Stream(
    name="bid",
    root="bids",
    schema="auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING",
    nested='<bid><auctionref auction="{auction}"/><personref person="{bidder}"/><price>{price}</price>'
    "<channel>{channel}</channel><url>{url}</url><dateTime>{dateTime}</dateTime><extra>{extra}</extra></bid>",
    nested_paths=(("auction", "auctionref/@auction"), ("bidder", "personref/@person")),
)

AUCTION_STREAMS = (PERSON, AUCTION, BID)


def read_form(text: str) -> Form:
    """The XML form of that name.

    Raises:
        UsageError: There is none.
    """
    forms: tuple[Form, ...] = get_args(Form)
    for form in forms:
        if form == text:
            return form
    raise UsageError(f"there is no XML form {text}", hint=f"one of {', '.join(forms)}")


def documents(bid_streams: int) -> Iterator[tuple[str, Stream]]:
    """The documents' names, without `.xml`, each with its stream; these are the names of the tables, too."""
    yield "person", PERSON
    yield "auction", AUCTION
    for number in range(1, bid_streams + 1):
        yield f"bid{number if bid_streams > 1 else ''}", BID


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


Moments = TypeVar("Moments", int, Numbers)

EVENTS_PER_PERSON = 50
"""In every 50 events there are 1 person, then 3 auctions, then 46 bids, as in the NEXMark benchmark."""

AUCTIONS_PER_PERSON = 3

START = 1_436_918_400_000
"""When the first event happens: 2015-07-15T00:00:00Z, as in Beam's edition of NEXMark; in milliseconds."""

FIRST_ID = 1000
"""The first person and the first auction, as in NEXMark."""

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
        lifespan: How long what is said of an id holds once its auction has expired, or its person has retired: a
            duration of ISO 8601, of event time. After it the id is used again. Empty: for ever, and no id is.
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
    lifespan: str = ""
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
        if self.lifespan:
            self._require_ends()

    def _require_ends(self) -> None:
        try:
            lasts = Duration.parse(self.lifespan)
        except ValueError as error:
            raise UsageError(
                f"as a lifespan, {error}", hint="so long after its auction or person an id is new"
            ) from None
        if not timedelta() < lasts.after(_BEGIN) - _BEGIN <= timedelta(days=3660):
            raise UsageError(f"a lifespan of {self.lifespan}", hint="longer than PT0S, and up to P10Y")
        closed = {name for name in self.said if name not in TIMES}
        for stream in sorted({name.partition(".")[0] for name in closed}):
            if f"{stream}.dateTime" not in self.said:
                what = f"a lifespan, and no heartbeats of {stream}, which tell when it ends"
                raise UsageError(what, hint=f"{stream}.dateTime among the schemes")

    @property
    def delay(self) -> int:
        """The latest that a tuple comes, in milliseconds."""
        return round(self.out_of_order * 1000)

    def moment(self, event: Moments) -> Moments:
        """When events happen, by their numbers from 0, in milliseconds: at equal distances, cut off to milliseconds."""
        return START + event * 1000 // self.pace

    @property
    def lasting(self) -> int:
        """How long what is said of ids holds after their lives, in milliseconds."""
        span = Duration.parse(self.lifespan).after(_BEGIN) - _BEGIN if self.lifespan else timedelta()
        return span // timedelta(milliseconds=1)

    def ends(self, lived: Numbers) -> Numbers:
        """Until when what is said of ids holds, by when their lives are over: the heartbeat after their lifespan."""
        apart = round(self.heartbeat * 1000)
        return START + -(-(lived + self.delay + self.lasting - START) // apart) * apart

    def auction_ids(self, auction: Numbers) -> pa.StringArray:
        """The ids of auctions, by their numbers from 0."""
        return self._ids(auction, 2 * self.in_flight * EVENTS_PER_PERSON // AUCTIONS_PER_PERSON, AUCTIONS_PER_PERSON)

    def person_ids(self, person: Numbers) -> pa.StringArray:
        """The ids of people, by their numbers from 0."""
        return self._ids(person, self.active * EVENTS_PER_PERSON, 1)

    def _ids(self, number: Numbers, life: int, of_fifty: int) -> pa.StringArray:
        """With a lifespan, those who live for so many events share ids: the next begins a lifespan after the end."""
        if not self.lifespan:
            return numbers(FIRST_ID + number)
        apart = round(self.heartbeat * 1000)
        span = life * 1000 // self.pace + 2 * (self.delay + self.lasting + apart)
        events = span * self.pace // 1000 + 3 * EVENTS_PER_PERSON
        return numbers(FIRST_ID + number % -(-events * of_fifty // EVENTS_PER_PERSON))

    def promised(self, stream: str) -> str:
        """What the documents of a stream promise to punctuate, as an option of `CREATE TABLE`."""
        names = [name.partition(".")[2] for name in SCHEMES if name in self.said and name.startswith(f"{stream}.")]
        return "; ".join(f"{name} prefix" if name == "dateTime" else name for name in names)


_BEGIN = datetime.fromtimestamp(START / 1000, UTC)


def _said(schemes: str) -> frozenset[str]:
    said = frozenset[str]()
    for name in re.split(r"[;,\s]+", schemes.strip(" ;,")):
        if name not in SCHEMES and name not in _SETS:
            known = ", ".join([*SCHEMES, *_SETS])
            raise UsageError(f"an auction house cannot punctuate '{name}'", hint=f"any of {known}")
        said |= _SETS.get(name) or frozenset({name} & SCHEMES.keys())
    return said
