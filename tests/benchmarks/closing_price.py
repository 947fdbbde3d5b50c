"""The closing price of each item (Tucker et al. 2007, Query 2) over 1,000,000 auction events, beside Spark's own join.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/closing_price.py

Asked twice: as the paper has it, with a union that finds equal bids, and with UNION ALL. Plain Spark needs what
punctuations say as a bound in the query: how long an auction lasts at most. It never answers the auctions that end
after the last watermark; on all others it must agree, and beyond them it must answer nothing.
"""

from __future__ import annotations

from collections.abc import Callable
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

    def our_run(directory: Path = auction_house, *, all_bids: bool = False) -> float:
        done = asking.run(asking.closing_price(spark, directory, all_bids=all_bids), ours)
        found["UNION ALL" if all_bids else "UNION"] = prices(ours)
        if directory == auction_house and not all_bids:
            slices.append(done.slice_seconds)
        return done.seconds

    def plain_run(directory: Path = auction_house) -> float:
        took = plain_spark.run(plain_spark.closing_price(plain, directory), theirs).seconds
        found["plain"] = prices(theirs)
        return took

    our_run(small_auction_house)
    our_run(small_auction_house, all_bids=True)
    plain_run(small_auction_house)
    all_bids = partial(our_run, all_bids=True)
    contenders: dict[str, Callable[[], float]] = {"UNION": our_run, "UNION ALL": all_bids, "plain": plain_run}
    times = take_turns(contenders, few={"plain": 1}, within=70)
    right, answered = found["UNION"], found["plain"]
    assert found["UNION ALL"] == right
    assert answered.items() <= right.items()
    missing = len(right) - len(answered)
    assert missing < 1000, "at most those that begin in some 20 minutes, 36 in each"

    rate = {key: rates(EVENTS, each) for key, each in times.items()}
    name = "closing-price query, 1,000,000 auction events"
    note = (
        f"{missing:,} of {len(right):,} prices plain Spark never answers, since its watermark ends before the auctions"
    )
    add, plain_rate = bench.append, rate["plain"]
    add(Measure(name, "events/s", "more", rate["UNION"], "plain Spark", plain_rate, 400_000, note=note))
    add(Measure(f"{name}, UNION ALL", "events/s", "more", rate["UNION ALL"], "plain Spark", plain_rate))
    add(Measure(f"{name}, its slices alone", "events/s", "more", rates(EVENTS, slices)))
