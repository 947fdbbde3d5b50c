"""Auction house: its parameters, those of `xmlstream generate auctions`, and the three streams that it sends.

The attributes are those of the NEXMark benchmark. The XML form `flat` has a child element for each of them; `nested`
resembles XMark's documents: ids are XML attributes, references are otherwise empty elements, an address
and an interval have parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar, get_args

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.lifespan import Duration
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.xml_form import PUNCT_NS, write_element
from xmlstream.sources.generators.text_columns import Numbers, numbers

Form = Literal["flat", "nested"]

SLOT = "\ue000"
"""A placeholder for the pattern in the text of a punctuation's element."""

END = "\ue001"
"""A placeholder for the time at which it ends, which is before the pattern."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One of the streams.

    Attributes:
        name: The name of its tuples' elements.
        root: The name of its document's root element.
        schema: Spark DDL of its attributes.
        nested: A tuple's element in the nested form, with the attributes' names in braces in place of their values.
        nested_paths: The paths in that form of attributes that are not child elements with their own name.
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
        """Returns a tuple's element, with the attributes' names in braces in place of their values."""
        if form == "nested":
            return self.nested
        leaves = "".join(f"<{name}>{{{name}}}</{name}>" for name in self.attributes)
        return f"<{self.name}>{leaves}</{self.name}>"

    def paths(self, form: Form) -> dict[str, str]:
        """Returns the paths of attributes that are not child elements with their own name."""
        return dict(self.nested_paths) if form == "nested" else {}

    def punctuation(self, form: Form, attribute: str, *, ends: bool = False) -> str:
        """Returns the element of a punctuation that restricts one attribute, with `SLOT` in place of the pattern.

        If it ends, by the time of the tuples, it has `END` in place of the end time.
        """
        path = self.paths(form).get(attribute, attribute)
        p = Punctuation(Schema.parse(f"{attribute} STRING"), (Constant(SLOT),))
        return write_element(p, self.name, paths=[path], lifespan=f"dateTime < {END}" if ends else None)

    def ends(self) -> tuple[str, str]:
        """Returns the beginning and the end of a document."""
        head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{self.root} xmlns:punct="{PUNCT_NS}">\n'
        return head, f"</{self.root}>\n"

    def options(self, form: Form, path: str | Path, schemes: str = "", slice_: str = "") -> dict[str, str]:
        """Returns the options that read such a document, for `CREATE TABLE` and `xmlstream.read`, without its schema.

        Args:
            form: The document's XML form.
            path: Its path.
            schemes: The schemes that it promises.
            slice_: The amount of it in one slice, such as `64m`.
        """
        options = {"path": str(path), "rowTag": self.name, "schemes": schemes, "maxBytesPerSlice": slice_}
        paths = {f"path.{attribute}": leaf for attribute, leaf in self.paths(form).items()}
        return {name: value for name, value in options.items() if value} | paths

    def declaration(self, table: str, options: Mapping[str, str]) -> str:
        """Returns the `CREATE TABLE` statement with these options."""
        text = ",\n  ".join(f"{name} '{_quoted(value)}'" for name, value in options.items())
        return f"CREATE TABLE {table} (\n  {self.schema}\n) USING punctuated_xml OPTIONS (\n  {text}\n);\n"


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
    """Returns the XML form of that name.

    Raises:
        UsageError: There is no such form.
    """
    forms: tuple[Form, ...] = get_args(Form)
    for form in forms:
        if form == text:
            return form
    raise UsageError(f"there is no XML form {text}", hint=f"one of {', '.join(forms)}")


def documents(bid_streams: int) -> Iterator[tuple[str, Stream]]:
    """Yields the documents' names, without `.xml`, each with its stream; these are the names of the tables, too."""
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
"""The time of the first event: 2015-07-15T00:00:00Z, as in Beam's edition of NEXMark; in milliseconds."""

FIRST_ID = 1000
"""The id of the first person and of the first auction, as in NEXMark."""

TIMES = ("person.dateTime", "auction.dateTime", "bid.dateTime")

SCHEMES = {
    "person.id": "an id, right after its person",
    "auction.id": "an id, right after its auction",
    "bid.auction": "an auction that has expired",
    "bid.bidder": "a person who bids no more",
    "auction.seller": "a person who sells nothing any more",
    **dict.fromkeys(TIMES, "the time up to a heartbeat"),
}
"""What can be punctuated, as stream.attribute, and which values the punctuations close."""

_SETS = {"all": frozenset(SCHEMES), "none": frozenset[str](), "dateTime": frozenset(TIMES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """An auction house.

    Attributes:
        seed: Determines all random choices.
        form: The XML form, `flat` or `nested`.
        schemes: What its streams punctuate: names of `SCHEMES`, `dateTime` for all three times, `all` or `none`;
            separated by `;` or `,`.
        bid_streams: The number of documents over which the bids are distributed at random.
        out_of_order: The greatest delay of a tuple in seconds of event time, as all times; a tenth are late.
        pace: Events per second.
        heartbeat: Seconds between heartbeats.
        in_flight: About how many auctions are open at once; in each group of this many, one gets half of the bids.
        active: How many people, the newest, bid and sell; a person who has become inactive stays inactive.
        lifespan: How long punctuations on an id hold once its auction has expired, or its person has retired: a
            duration of ISO 8601, of event time. After it the id is used again. Empty: permanently, and ids are unique.
        punctuated: The names that `schemes` stands for.

    Raises:
        UsageError: A parameter is out of range.
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
    punctuated: frozenset[str] = field(init=False)

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
        object.__setattr__(self, "punctuated", _names_of(self.schemes))
        if self.lifespan:
            self._require_ends()

    def _require_ends(self) -> None:
        try:
            lasts = Duration.parse(self.lifespan)
        except ValueError as error:
            raise UsageError(
                f"as a lifespan, {error}", hint="the time after the end of an auction or person when its id is reused"
            ) from None
        if not timedelta() < lasts.after(_BEGIN) - _BEGIN <= timedelta(days=3660):
            raise UsageError(f"a lifespan of {self.lifespan}", hint="longer than PT0S, and up to P10Y")
        closed = {name for name in self.punctuated if name not in TIMES}
        for stream in sorted({name.partition(".")[0] for name in closed}):
            if f"{stream}.dateTime" not in self.punctuated:
                what = f"a lifespan without heartbeats of {stream}, which determine when it ends"
                raise UsageError(what, hint=f"add {stream}.dateTime to the schemes")

    @property
    def delay(self) -> int:
        """The greatest delay of a tuple, in milliseconds."""
        return round(self.out_of_order * 1000)

    def moment(self, event: Moments) -> Moments:
        """Returns the times of events, by number from 0, in milliseconds: at equal intervals, rounded down."""
        return START + event * 1000 // self.pace

    @property
    def lasting(self) -> int:
        """How long punctuations on ids hold after the lives of their owners, in milliseconds."""
        span = Duration.parse(self.lifespan).after(_BEGIN) - _BEGIN if self.lifespan else timedelta()
        return span // timedelta(milliseconds=1)

    def ends(self, lived: Numbers) -> Numbers:
        """Returns when punctuations on ids end, from the ends of lives: at the heartbeat after the lifespan."""
        apart = round(self.heartbeat * 1000)
        return START + -(-(lived + self.delay + self.lasting - START) // apart) * apart

    def auction_ids(self, auction: Numbers) -> pa.StringArray:
        """Returns the ids of auctions, by number from 0."""
        return self._ids(auction, 2 * self.in_flight * EVENTS_PER_PERSON // AUCTIONS_PER_PERSON, AUCTIONS_PER_PERSON)

    def person_ids(self, person: Numbers) -> pa.StringArray:
        """Returns the ids of people, by number from 0."""
        return self._ids(person, self.active * EVENTS_PER_PERSON, 1)

    def _ids(self, number: Numbers, life: int, of_fifty: int) -> pa.StringArray:
        """With a lifespan, ids are reused: the next owner's life begins a lifespan after the end of the last one's."""
        if not self.lifespan:
            return numbers(FIRST_ID + number)
        apart = round(self.heartbeat * 1000)
        span = life * 1000 // self.pace + 2 * (self.delay + self.lasting + apart)
        events = span * self.pace // 1000 + 3 * EVENTS_PER_PERSON
        return numbers(FIRST_ID + number % -(-events * of_fifty // EVENTS_PER_PERSON))

    def promised(self, stream: str) -> str:
        """Returns the schemes that the documents of a stream promise, as an option of `CREATE TABLE`."""
        mine = [name for name in SCHEMES if name in self.punctuated and name.startswith(f"{stream}.")]
        names = [name.partition(".")[2] for name in mine]
        return "; ".join(f"{name} prefix" if name == "dateTime" else name for name in names)


_BEGIN = datetime.fromtimestamp(START / 1000, UTC)


def _names_of(schemes: str) -> frozenset[str]:
    names = frozenset[str]()
    for name in re.split(r"[;,\s]+", schemes.strip(" ;,")):
        if name not in SCHEMES and name not in _SETS:
            known = ", ".join([*SCHEMES, *_SETS])
            raise UsageError(f"an auction house cannot punctuate '{name}'", hint=f"any of {known}")
        names |= _SETS.get(name) or frozenset({name} & SCHEMES.keys())
    return names
