"""The closing price of each item (Tucker et al. 2007, Query 2) over 1,000,000 auction events, beside Spark's own join.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/closing_price.py

Asked twice: as the paper has it, with a union that must find equal bids, and with UNION ALL. Plain Spark needs what
punctuations say as a bound in the query: how long an auction lasts at most. It never answers the auctions that end
after the last watermark; on all others it must agree, and beyond them it must answer nothing.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import asking, plain_spark
from tests.benchmarks.measuring import Measure, rates, scaled, take_turns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EVENTS = scaled(1_000_000, at_least=5000)
LARGE_SLICES = "22m", "64m"
"""Of the auctions, and of each stream of bids: about the same time in each."""


def prices(output: Path) -> dict[int, int]:
    """The price of each auction, as a result says it."""
    found = [(int(row["id"]), int(row["close"])) for row in asking.rows(output, "row")]
    assert len(dict(found)) == len(found), "an auction is answered once"
    return dict(found)


def test_closing_price(
    spark: SparkSession, bench: list[Measure], auction_house: Path, small_auction_house: Path, scratch: Path
) -> None:
    ours, theirs = scratch / "prices", scratch / "plain-prices"
    plain = plain_spark.session(spark)
    found: dict[str, dict[int, int]] = {}
    slices: list[float] = []

    def our_run(directory: Path = auction_house, *, all_bids: bool) -> float:
        done = asking.run(asking.closing_price(spark, directory, LARGE_SLICES, all_bids=all_bids), ours)
        found[f"ours {all_bids}"] = prices(ours)
        if directory == auction_house and not all_bids:
            slices.append(done.slice_seconds)
        return done.seconds

    def plain_run(directory: Path = auction_house, *, all_bids: bool) -> float:
        took = plain_spark.run(plain_spark.closing_price(plain, directory, all_bids=all_bids), theirs).seconds
        found[f"plain {all_bids}"] = prices(theirs)
        return took

    for all_bids in (False, True):
        our_run(small_auction_house, all_bids=all_bids)
        plain_run(small_auction_house, all_bids=all_bids)
    contenders = {
        (who, all_bids): partial(run, all_bids=all_bids)
        for all_bids in (False, True)
        for who, run in (("ours", our_run), ("plain", plain_run))
    }
    times = take_turns(contenders, few={("plain", False): 1, ("plain", True): 1}, within=120)
    right = found["ours False"]
    assert found["ours True"] == right
    for all_bids in (False, True):
        answered = found[f"plain {all_bids}"]
        assert answered.items() <= right.items()
        assert len(answered) > 0.99 * len(right) - 300
    missing = len(right) - len(found["plain True"])

    rate = {key: rates(EVENTS, each) for key, each in times.items()}
    name = "closing-price query, 1,000,000 auction events"
    note = (
        f"{missing:,} of {len(right):,} prices plain Spark never answers, since its watermark ends before the auctions"
    )
    union, union_all = ((rate["ours", all_bids], rate["plain", all_bids]) for all_bids in (False, True))
    bench.append(Measure(name, "events/s", "more", union[0], "plain Spark", union[1], 400_000, note=note))
    bench.append(Measure(f"{name}, UNION ALL", "events/s", "more", union_all[0], "plain Spark", union_all[1]))
    bench.append(Measure(f"{name}, its slices alone", "events/s", "more", rates(EVENTS, slices)))
