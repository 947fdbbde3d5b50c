"""The queries of `data/`, run in a session over inputs of a chosen size, and what they wrote, slice by slice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from shutil import copy
from typing import TYPE_CHECKING

from lxml import etree

import xmlstream as xs
from tests.harness.refused_in_process import is_refusal
from tests.harness.set_clock import set_clock
from tests.samples.xmark_documents import XMark
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

DATA = Path(__file__).parents[2] / "data"

Written = dict[str, tuple[Counter[bytes], Counter[bytes]]]
"""The tuples and the punctuations of each slice, by its number, as canonical XML."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A file of `data/`.

    Attributes:
        name: Its name, without the ending.
        text: Its text, with variables for what differs from run to run.
    """

    name: str
    text: str

    @property
    def writes(self) -> bool:
        """Whether it names its own outputs."""
        return "INSERT INTO" in self.text

    def inserts(self, session: Session, inputs: Path, out: Path) -> list[xs.Insert]:
        """The query or queries, each with a directory below `out` for its output."""
        auctions = "two" if "bid1" in self.text else "of one key" if self.name == "fees" else "one"
        variables = {
            "AUCTIONS": str(inputs / auctions),
            "SENSORS": str(inputs),
            "FEED": str(inputs / "feed" / "*"),
            "XMARK": str(inputs / "site.xml"),
            "SITE": str(inputs / "site.xml"),
            "OUT": str(out / self.name),
        }
        if self.writes:
            return list(xs.inserts_from_sql(session, self.text, variables))
        return [xs.from_sql(session, self.text, variables).insert_into(out / self.name, row_tag="row")]


def queries(slice_: str | None = None) -> list[Asked]:
    """All files; with a size for the slices of those that name one."""
    found = []
    for path in sorted([*DATA.glob("*.sql"), *(DATA / "auctions").glob("*.sql")]):
        text = path.read_text(encoding="utf-8")
        for name in ("data/fees.csv", "data/auctions/side_input.csv"):
            text = text.replace(f"'{name}'", f"'{DATA.parent / name}'")
        text = text.replace("'auctions/bid.xml'", "'${AUCTIONS}/bid.xml'")
        for name in ("highest", "owed"):
            text = text.replace(f"(path '{name}'", f"(path '${{OUT}}/{name}'")
        found.append(Asked(path.stem, text if slice_ is None else text.replace("'320m'", f"'{slice_}'")))
    return found


_AT_ONE = {"people": 25_500, "items": 21_750, "opened": 12_000, "closed": 9_750, "categories": 1_000}
"""How much XMark has of each at factor 1."""


def write_inputs(directory: Path, events: int, factor: float | None = None) -> None:
    """Writes what the queries read: auctions of so many events, and XMark of a factor, by default that of `data/`."""
    write_auctions(directory / "one", events, House(seed=4, in_flight=30, active=12))
    two = House(seed=5, in_flight=30, active=12, pace=1, heartbeat=300, bid_streams=2)
    write_auctions(directory / "two", events, two)
    # These bids are read without their bidders, which must not be closed then.
    write_auctions(directory / "of one key", events, House(seed=4, in_flight=30, schemes="bid.auction; dateTime"))
    for number in (1, 2):
        copy(DATA / f"sensor{number}.xml", directory)
        (directory / "feed" / f"sensor{number}").mkdir(parents=True)
        copy(DATA / f"sensor{number}.xml", directory / "feed" / f"sensor{number}")
    if factor is None:
        copy(DATA / "xmark.xml", directory / "site.xml")
    else:
        counts = {kind: int(count * factor) for kind, count in _AT_ONE.items()}
        (directory / "site.xml").write_text(XMark(7, **counts).document(), encoding="utf-8")


def malformed(bids: str) -> str:
    """The bids with a URL of too few parts in every fortieth."""
    number = count()
    return re.sub("<url>[^<]*", lambda found: found[0] if next(number) % 40 else "<url>no/url", bids)


def run(inserts: Iterable[xs.Insert], checkpoint: Path | str | None = None) -> None:
    """Runs queries to the end of their inputs, with slices a second apart."""
    with set_clock(seconds=4):
        xs.run(list(inserts), checkpoint)


def written(out: Path) -> Mapping[str, Written]:
    """What each query has written: the slices in each directory, by its name below `out`."""
    found: dict[str, Written] = {}
    for path in sorted(out.rglob("slice-*.xml")):
        # Tasks write parts of a large result, slice-7-1.xml and so on; how many is the engine's affair.
        slices = found.setdefault(str(path.parent.relative_to(out)), {})
        tuples, punctuations = slices.setdefault(path.stem.split("-")[1], (Counter(), Counter()))
        for element in etree.parse(path).getroot():
            text = etree.tostring(element, method="c14n", exclusive=True, with_tail=False)
            (punctuations if str(element.tag).startswith(f"{{{PUNCT_NS}}}") else tuples)[text] += 1
    return found


REFUSED: Mapping[str, str] = {}
"""What DuckDB refuses: by name, the reason as the refusal has it."""


def refusal(session: Session, asked: Asked, inputs: Path, out: Path) -> str | None:
    """Runs a query alone; returns why it is refused, or None."""
    try:
        run(asked.inserts(session, inputs, out))
    except XmlStreamError as error:
        if not is_refusal(error):
            raise
        return error.what
    return None
