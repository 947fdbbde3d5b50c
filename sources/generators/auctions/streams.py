"""The three streams of an online auction: attributes, elements of both XML forms, declarations in SQL.

The attributes are those of the NEXMark benchmark. The form `flat` has a child element for each of them; `nested` is in
the manner of XMark's documents: ids are XML attributes, references are elements that hold nothing else, an address
and an interval have parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from punct_ns.errors import UsageError
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.xml_form import PUNCT_NS, write_element

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
