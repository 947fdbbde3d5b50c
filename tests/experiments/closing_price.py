"""The closing price of each item (Tucker et al. 2007, Query 2) over an auction of 1,000,000 events.

With closings among the bids, what is kept follows the open auctions, and a price comes out in the slice that closes
its auction. Without them nothing is lost or wrong: all prices come at the end, and the state grows until then. `make
experiments` prints both, draws the figure into out/experiments, and asserts that. What is right is read from the
documents line by line, with nothing of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from rich.table import Table

import xmlstream as xs
from tests.experiments.state_figure import Curve, draw, kept_curve
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EVENTS, BID_STREAMS = 1_000_000, 2
QUERY = Path("data/auctions/tucker_2007_query_2.sql")
SCHEMES = "person.id, auction.id, dateTime, bid.bidder, auction.seller"
OUT = Path("out/experiments")

_BID = re.compile(r"<bid><auction>(\d+)</auction><bidder>\d+</bidder><price>(\d+)</price>")
_CLOSED = re.compile(r"<punct:bid><auction>(\d+)</auction></punct:bid>")
_PRICE = re.compile(r"<row><id>(\d+)</id><itemName>[^<]*</itemName><close>(\d+)</close></row>")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the query: the report of each slice, and the prices that it put out."""

    slices: list[dict[str, Any]]
    prices: list[dict[int, int]]

    @property
    def kept(self) -> Curve:
        """Items arrived, and the tuples that all operators together keep."""
        return kept_curve(self.slices)


def run(spark: SparkSession, directory: Path, schemes: str, out: Path) -> Run:
    write_auctions(directory, EVENTS, House(seed=1, schemes=schemes, bid_streams=BID_STREAMS))
    slices: list[dict[str, Any]] = []
    # In slices so small that the figure has several.
    text = QUERY.read_text().replace("'55m'", "'5500k'").replace("'160m'", "'16m'")
    xs.from_sql(spark, text, {"AUCTIONS": str(directory)}).run(out, on_slice=slices.append)
    prices = [
        {int(key): int(price) for key, price in _PRICE.findall(path.read_text())} if path.exists() else {}
        for path in (out / f"slice-{one['slice']:09d}.xml" for one in slices)
    ]
    return Run(slices, prices)


def items(document: Path) -> Iterator[str]:
    """One line an item, between the lines of the root's tags."""
    with document.open() as file:
        for line in islice(file, 2, None):
            if not line.startswith("</"):
                yield line


def highest(directory: Path) -> Mapping[int, int]:
    """The highest price of each auction."""
    found: dict[int, int] = {}
    for number in range(1, BID_STREAMS + 1):
        for line in items(directory / f"bid{number}.xml"):
            if bid := _BID.match(line):
                auction, price = int(bid[1]), int(bid[2])
                found[auction] = max(price, found.get(auction, price))
    return found


def closed(directory: Path, slices: Sequence[Mapping[str, Any]]) -> list[set[int]]:
    """After each slice, the auctions that all bid streams have closed: of so many items as the slice had read."""
    whole: list[set[int]] = []
    for number in range(1, BID_STREAMS + 1):
        lines, so_far = items(directory / f"bid{number}.xml"), set[int]()
        for at, one in enumerate(slices):
            (read,) = [o for o in one["operators"] if o["name"] == f"bid{number}"]
            # The root's end is a punctuation that is not a line.
            for line in islice(lines, read["tuples_in"] + read["punctuations_in"]):
                if found := _CLOSED.match(line):
                    so_far.add(int(found[1]))
            mine = set(so_far)
            whole[at : at + 1] = [whole[at] & mine if at < len(whole) else mine]
    return whole


def test_a_price_comes_when_its_auction_closes_and_what_is_kept_follows_the_open_auctions(
    spark: SparkSession, tmp_path: Path
) -> None:
    with_closings = run(spark, tmp_path / "closing", "all", tmp_path / "prices")
    without = run(spark, tmp_path / "open", SCHEMES, tmp_path / "late")
    curves = {"closings among the bids": with_closings.kept, "without": without.kept}
    table = Table(title=f"Tuples kept, {EVENTS:,} events")
    for heading in ("slice", "items", "kept", "prices out", "s", "items, without", "kept, without", "prices, without"):
        table.add_column(heading, justify="right")
    for number, (one, other) in enumerate(zip(with_closings.slices, without.slices, strict=False)):
        kept = [curve[number + 1][1] for curve in curves.values()]
        row = (number, one["items_in"], int(kept[0]), one["tuples_out"])
        beside = (other["items_in"], int(kept[1]), other["tuples_out"])
        table.add_row(*(f"{n:,}" for n in row), f"{one['seconds']:.1f}", *(f"{n:,}" for n in beside))
    figure = OUT / "closing_price.png"
    draw(curves, figure, "What the closing-price query keeps", "items arrived (tuples and punctuations)", "tuples kept")
    console = Console()
    console.print()
    console.print(table)
    seconds = sum(one["seconds"] for one in with_closings.slices)
    console.print(f"{EVENTS:,} events in {seconds:.1f} s of slices. The figure: {figure}")

    right = highest(tmp_path / "closing")
    assert highest(tmp_path / "open") == right
    for done in (with_closings, without):
        assert {auction: price for prices in done.prices for auction, price in prices.items()} == right
        assert sum(map(len, done.prices)) == len(right)
        assert done.slices[-1]["closed"]
    due = closed(tmp_path / "closing", with_closings.slices)
    out = set[int]()
    for prices, over in zip(with_closings.prices[:-1], due[:-1], strict=True):
        out |= prices.keys()
        assert out == over & right.keys(), "those that are closed are out, and no others"
    assert not any(without.prices[:-1]), "without closings, only at the end"
    # Flat: no more in the second half than in the first but for noise; without closings it grows with what arrives.
    half = len(with_closings.kept) // 2
    first, second = ([kept for _, kept in part] for part in (with_closings.kept[1:half], with_closings.kept[half:-1]))
    assert max(second) <= 1.5 * max(first)
    growing = [kept / arrived for arrived, kept in without.kept[1:-1]]
    assert min(growing) > 0.5 * max(growing)
    assert max(kept for _, kept in without.kept) > 20 * max(kept for _, kept in with_closings.kept)
