"""Queries over auctions and bids, their promises as `explain --promises` has them, and runs with the punctuations.

An auction begins each minute and is open for an hour; a bid comes each ten seconds, for one of those that are open. A
document, and a slice, is a minute of both streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import xmlstream as xs
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.scheme import format_schemes
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.safety.promises import PromiseSet, promise_sets, rates_of
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

OPEN, BIDS = 60, 6
RATES = "bid 6/min; bid.auction 1/min, open 1h; auction 1/min; auction.id 1/min, open 0s; auction.seller open 0s"
TABLES = """
CREATE TABLE auction (id INT, seller INT) USING punctuated_xml
OPTIONS (path '{home}/auction', rowTag 'auction', maxFilesPerSlice '1'{auction});
CREATE TABLE bid (auction INT, bidder INT) USING punctuated_xml
OPTIONS (path '{home}/bid', rowTag 'bid', maxFilesPerSlice '1'{bid});
"""
QUERIES = {
    "group": "SELECT auction, min(bidder) AS first, count(*) AS n FROM bid GROUP BY auction",
    "distinct": "SELECT DISTINCT auction, bidder FROM bid",
    "join": "SELECT id, seller, bidder FROM auction JOIN bid ON bid.auction = auction.id",
    "anti": "SELECT id, seller FROM auction WHERE NOT EXISTS (SELECT 1 FROM bid WHERE bid.auction = auction.id)",
    "alternatives": "SELECT id, bidder FROM auction JOIN bid ON auction = id OR auction = seller",
    "union": "SELECT a, count(*) AS n FROM (SELECT auction AS a FROM bid UNION ALL SELECT id FROM auction) GROUP BY a",
    "join of groups": "SELECT seller, id, count(*) AS n FROM auction JOIN bid ON auction = id GROUP BY seller, id",
}


LOOSE = {"distinct": 3, "alternatives": 3, "anti": 8, "union": 2.2}
"""How many times as much as a run keeps a bound may be, where it is known to be loose.

Bids come at any time of their auction, an auction with a bid is decided, and the branches of a union may have the same
values or others.
"""

CLOSE = 1.5
"""The same of all others, and of bytes and times."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run with the punctuations of a set has had.

    Attributes:
        promised: The set, with its numbers.
        kept: The most rows.
        after: The longest time from a first tuple to a result, in seconds, if results wait.
        bytes: The bytes of its punctuations, of an hour.
    """

    promised: PromiseSet
    kept: int
    after: float | None
    bytes: int

    @property
    def schemes(self) -> str:
        """The schemes in a line."""
        return "; ".join(f"{source} '{format_schemes(of)}'" for source, of in self.promised.schemes.items())


def runs(session: InProcessSession, home: Path, name: str, minutes: int) -> Iterator[Ran]:
    """Runs of a query, each with a set of schemes of keys under which it answers."""
    found = [one for one in promised(QUERIES[name]) if "bidder" not in str(one.schemes)]
    for number, one in enumerate(found[:2]):
        schemes = {source: format_schemes(of) for source, of in one.schemes.items()}
        kept, after, size = _ran(session, home / str(number), QUERIES[name], schemes, minutes)
        yield Ran(one, kept, after if one.waits and after else None, size)


def _written(home: Path, schemes: dict[str, str], minutes: int) -> int:
    """Writes the documents with the punctuations that are promised; returns how many bytes those of an hour take."""
    drawn, said = Random(7), {"auction": 0, "bid": 0}
    for name in said:
        (home / name).mkdir(parents=True)
    for minute in range(minutes):
        begun = f"<auction><id>{minute}</id><seller>{minute}</seller></auction>"
        lines: dict[str, list[str]] = {"auction": [begun], "bid": []}
        ended = minute - OPEN
        for _ in range(BIDS):
            of = drawn.randint(max(0, ended + 1), minute)
            lines["bid"].append(f"<bid><auction>{of}</auction><bidder>{drawn.randrange(10**6)}</bidder></bid>")
        for name, last in (("auction", minute), ("bid", ended)):
            for scheme in schemes.get(name, "").split("; ") if last >= 0 else ():
                leaf, _, kind = scheme.partition(" ")
                if leaf:
                    value = f"(,{last}]" if kind else f"{last}"
                    lines[name].append(f"<punct:{name}><{leaf}>{value}</{leaf}></punct:{name}>")
                    said[name] += (len(lines[name][-1]) + 1) * (minute >= minutes - 60)
        for name, text in lines.items():
            document = f'<all xmlns:punct="{PUNCT_NS}">\n' + "\n".join([*text, "</all>"])
            (home / name / f"{minute:05}.xml").write_text(document)
    return sum(said.values())


def _ran(
    session: InProcessSession, home: Path, query: str, schemes: dict[str, str], minutes: int
) -> tuple[int, float, int]:
    """The most rows that a run keeps, the longest time from a first tuple to a result in seconds, and the bytes."""
    size = _written(home, schemes, minutes)
    options = {name: f", schemes '{schemes[name]}'" if name in schemes else "" for name in ("auction", "bid")}
    reports: list[dict[str, Any]] = []
    text = TABLES.format(home=home, **options) + query
    xs.from_sql(session, text).run(home / "out", keep_open=True, on_slice=reports.append, checkpoint=home / "state")
    kept = max(sum(one["kept"] for one in report["operators"]) for report in reports)
    came = [report["slice"] for report in reports if report["tuples_out"]]
    return kept, 60.0 * (came[0] + 1 if came else 0), size


def promised(query: str) -> list[PromiseSet]:
    root = read(TABLES.format(home="in", auction="", bid="") + query).sketch()
    of = RATES if "FROM auction" in query else RATES.partition("; auction ")[0]
    return promise_sets(root, optimized, rates_of(of, root))
