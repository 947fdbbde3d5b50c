"""What wins an auction (NEXMark, Queries 4 and 9, and the original's 4) of 1,000,000 events, where nobody closes one.

Time is all that the bids are punctuated by, and ids are unique. A bid counts if it comes while its auction is open, so
time bounds the joins: what is kept follows the open auctions, and the winning bid is out in the slice in which time
passes the end of its auction. Both documents are read at one pace, each slice the same share of either: an auction that
is read ahead of its bids is open for longer. `make experiments` prints it, draws the figure into out/experiments, and
asserts that. What is right DuckDB says, from lines that are read with nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from rich.console import Console
from rich.table import Table

import xmlstream as xs
from tests.experiments.closing_price import EVENTS, OUT, items
from tests.experiments.state_figure import draw, state_curves
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMES = "auction.id, dateTime"
QUERIES = ("nexmark_q4", "nexmark_q4_original", "nexmark_q9")
SLICES = 24
INSTEAD = {
    "'auction; bidder; dateTime prefix'": "'dateTime prefix'",
    "'id; seller; dateTime prefix'": "'id; dateTime prefix'",
}
"""The promises that are left."""

_BID = re.compile(
    r"<bid><auction>(\d+)</auction><bidder>(\d+)</bidder><price>(\d+)</price>.*<dateTime>(.*)Z</dateTime>"
)
_AUCTION = re.compile(r"<auction><id>(\d+)</id>.*<dateTime>(.*)Z</dateTime><expires>(.*)Z</expires>.*<category>(\d+)<")
_UNIQUE = re.compile(r"<punct:auction><id>(\d+)</id></punct:auction>")
_TIME = re.compile(r"<punct:bid><dateTime>\(,(.*)Z\)</dateTime>")
_WON = re.compile(
    r"<row><id>(\d+)</id>.*<bidder>(\d+)</bidder><price>(\d+)</price><bid_dateTime>(.*?)Z?</bid_dateTime>"
)
_AVERAGE = re.compile(r"<row><category>(\d+)</category><final>(.*)</final></row>")


@dataclass(frozen=True, slots=True)
class Lines:
    """What the documents say, item by item: tuples, ids that do not come again, and times that have passed."""

    auctions: list[tuple[int, datetime, datetime, int] | int | None]
    bids: list[tuple[int, int, int, datetime] | datetime]

    @staticmethod
    def read(directory: Path) -> Lines:
        auctions: list[tuple[int, datetime, datetime, int] | int | None] = []
        for line in items(directory / "auction.xml"):
            if a := _AUCTION.match(line):
                auctions.append((int(a[1]), _moment(a[2]), _moment(a[3]), int(a[4])))
            else:
                closed = _UNIQUE.match(line)
                auctions.append(closed and int(closed[1]))
        bids: list[tuple[int, int, int, datetime] | datetime] = []
        for line in items(directory / "bid.xml"):
            if b := _BID.match(line):
                bids.append((int(b[1]), int(b[2]), int(b[3]), _moment(b[4])))
            elif p := _TIME.match(line):
                bids.append(_moment(p[1]))
        return Lines(auctions, bids)

    def tuples(self) -> list[tuple[int, datetime, datetime, int]]:
        """The auctions: ids, when they open and expire, categories."""
        return [a for a in self.auctions if isinstance(a, tuple)]

    def database(self) -> duckdb.DuckDBPyConnection:
        """The tuples as tables."""
        database = duckdb.connect()
        for name, columns, rows in (
            ("auction", ("id", "opens", "expires", "category"), self.tuples()),
            ("bid", ("auction", "bidder", "price", "made"), [b for b in self.bids if isinstance(b, tuple)]),
        ):
            table = pa.table(dict(zip(columns, map(pa.array, zip(*rows, strict=True)), strict=True)))
            database.register("given", table)
            database.execute(f"CREATE TABLE {name} AS FROM given")
            database.unregister("given")
        return database


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def read(slices: Sequence[dict[str, Any]], name: str) -> list[int]:
    """How many items of a source each slice and all before it had read; the root's end is not a line of a document."""
    total, found = 0, []
    for one in slices:
        (source,) = [operator for operator in one["operators"] if operator["name"] == name]
        total += source["tuples_in"] + source["punctuations_in"]
        found.append(total)
    return found


def reported(slices: Sequence[dict[str, Any]], open_: Sequence[int], out: Sequence[int]) -> list[tuple[float, float]]:
    """Prints what each slice did and draws the figure; returns items arrived, with the tuples that are kept."""
    curves = state_curves(slices).values()
    kept = [(points[0][0], sum(number for _, number in points)) for points in zip(*curves, strict=True)]
    table = Table(title=f"Queries 4 and 9 of NEXMark, {EVENTS:,} events, bounded by time alone")
    for heading in ("slice", "items", "open auctions", "kept by three queries", "winning bids out", "s"):
        table.add_column(heading, justify="right")
    for number, one in enumerate(slices):
        row = (number, one["items_in"], open_[number], int(kept[number + 1][1]), out[number])
        table.add_row(*(f"{n:,}" for n in row), f"{one['seconds']:.1f}")
    figure = OUT / "expiring_auctions.png"
    arrived = [at for at, _ in kept]
    draw(
        {"kept by the three queries": kept, "open auctions": list(zip(arrived, [0, *open_], strict=True))},
        figure,
        "What joins keep within the time of an auction",
        "items arrived (tuples and punctuations)",
        "tuples kept",
    )
    console = Console()
    console.print()
    console.print(table)
    console.print(f"The figure: {figure}")
    return kept


def test_a_bid_wins_in_the_slice_in_which_time_passes_the_end_of_its_auction(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_auctions(tmp_path / "auctions", EVENTS, House(seed=1, schemes=SCHEMES))
    share = {name: (tmp_path / "auctions" / f"{name}.xml").stat().st_size // SLICES + 1 for name in ("auction", "bid")}
    instead = {"'320m'": f"'{share['bid']}'", "'55m'": f"'{share['auction']}'", **INSTEAD}
    inserts = []
    for name in QUERIES:
        text = (Path("data/auctions") / f"{name}.sql").read_text(encoding="utf-8")
        for given, other in instead.items():
            assert given in text
            text = text.replace(given, other)
        inserts.append(xs.from_sql(spark, text, {"AUCTIONS": str(tmp_path / "auctions")}).insert_into(tmp_path / name))
    slices: list[dict[str, Any]] = []
    xs.run(inserts, tmp_path / "state", on_slice=slices.append)

    lines = Lines.read(tmp_path / "auctions")
    database = lines.database()
    within = "auction JOIN bid ON id = auction AND made >= opens AND made <= expires"
    won = dict(database.sql(f"SELECT id, max(price) FROM {within} GROUP BY id").fetchall())
    first = "QUALIFY rank() OVER (PARTITION BY id ORDER BY price DESC, made) = 1"
    winners = set(database.sql(f"SELECT id, bidder, price, made FROM {within} {first}").fetchall())
    out: list[dict[int, tuple[int, int, datetime]]] = []
    for one in slices:
        path = tmp_path / "nexmark_q9" / f"slice-{one['slice']:09d}.xml"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        out.append({int(w[1]): (int(w[2]), int(w[3]), _moment(w[4])) for w in map(_WON.search, text.splitlines()) if w})

    # All answers are DuckDB's.
    assert {auction: price for prices in out for auction, (_, price, _) in prices.items()} == won
    assert sum(map(len, out)) == len(won)
    assert all((auction, *bid) in winners for prices in out for auction, bid in prices.items())
    for name, condition in (
        ("nexmark_q4", "made >= opens AND made <= expires"),
        ("nexmark_q4_original", "made < expires"),
    ):
        found = {
            int(row[1]): float(row[2])
            for path in sorted((tmp_path / name).glob("slice-*.xml"))
            for row in map(_AVERAGE.search, path.read_text(encoding="utf-8").splitlines())
            if row
        }
        right = database.sql(
            f"SELECT category, avg(final) FROM (SELECT id, category, max(price) AS final FROM auction JOIN bid "
            f"ON id = auction AND {condition} GROUP BY ALL) GROUP BY ALL"
        ).fetchall()
        assert found == pytest.approx(dict(right), rel=1e-9)

    # Each comes in the slice in which time passes the end of its auction, and its id is closed.
    known, passed, due, open_ = set[int](), datetime.min, list[set[int]](), list[int]()
    ends = {auction: expires for auction, _, expires, _ in lines.tuples()}
    at_auction, at_bid = 0, 0
    for until_auction, until_bid in zip(read(slices, "auction"), read(slices, "bid"), strict=True):
        known |= {a for a in lines.auctions[at_auction:until_auction] if isinstance(a, int)}
        passed = max([passed, *(b for b in lines.bids[at_bid:until_bid] if isinstance(b, datetime))])
        at_auction, at_bid = until_auction, until_bid
        due.append({auction for auction in known if ends[auction] < passed})
        open_.append(len(known) - len(due[-1]))
    so_far = set[int]()
    for prices, over in zip(out[:-1], due[:-1], strict=True):
        so_far |= prices.keys()
        assert not so_far ^ (over & won.keys())

    kept = reported(slices, open_, [len(prices) for prices in out])
    # Flat: no more in the second half than in the first but for noise.
    half = len(kept) // 2
    before, after = ([number for _, number in part] for part in (kept[1:half], kept[half:-1]))
    assert max(after) <= 1.5 * max(before)
    assert kept[-1][1] == 0
