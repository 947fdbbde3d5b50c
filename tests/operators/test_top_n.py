from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from operators.state.sort_key import SortKey
from operators.top_n import Rank, TopN
from punct_ns.domain import Domain
from punct_ns.errors import UsageError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Scheme, format_schemes, parse_schemes
from tests.harness.running import Row, Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIDS = Schema.parse("auction INT, bidder STRING, price DOUBLE")
HIGHEST = TopN(2, (SortKey("price", descending=True),), ("auction",))
NUMBER = Attribute("place", Domain("INT", nullable=False))


def said(*texts: str, schema: Schema = BIDS) -> list[Punctuation]:
    return [Punctuation.parse(text, schema) for text in texts]


@pytest.mark.spark
def test_the_two_highest_bids_of_an_auction_leave_when_it_is_closed(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, HIGHEST, BIDS)
    first = running.slice(([(7, "Ann", 10.0), (7, "Bob", 12.0), (8, "Ann", 1.0), (7, "Cem", 11.0)], []))
    assert (first.tuples, first.punctuations, first.kept) == ([], [], 3)
    running.restart()
    second = running.slice(([(7, "Ann", 11.5), (7, "Bob", 3.0), (9, "Cem", 5.0)], said("<7, *, *>")))
    assert sorted(second.tuples) == [(7, "Ann", 11.5), (7, "Bob", 12.0)]
    assert (second.punctuations, second.kept, second.purged) == (said("<7, *, *>"), 2, 2)
    assert running.slice(([], said("<*, Ann, *>", "<8, [A,Z], *>"))).tuples == []
    last = running.slice(([(9, "Ann", 4.0)], said("<*, *, *>")))
    assert sorted(last.tuples) == [(8, "Ann", 1.0), (9, "Ann", 4.0), (9, "Cem", 5.0)]
    assert (last.punctuations, last.kept) == (said("<*, *, *>"), 0)


@pytest.mark.spark
def test_state_is_n_tuples_of_each_open_group_however_many_come(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, HIGHEST, BIDS)
    for price in range(3):
        done = running.slice(([(a, "Ann", float(price * 100 + i)) for a in (1, 2, None) for i in range(50)], []))
        assert done.kept == 6
    assert sorted(running.slice(([], said("<null, *, *>"))).tuples) == [(None, "Ann", 248.0), (None, "Ann", 249.0)]


TIED: list[Row] = [(1, "Dan", 5.0), (1, "Ann", 5.0), (1, None, 5.0), (1, "Bob", 9.0), (1, "Bob", 9.0), (1, "Cem", 1.0)]
RANKS: dict[Rank, list[Row]] = {
    "row_number": [(1, "Bob", 9.0, 1), (1, "Bob", 9.0, 2), (1, None, 5.0, 3)],
    "rank": [(1, "Bob", 9.0, 1), (1, "Bob", 9.0, 1), (1, None, 5.0, 3), (1, "Ann", 5.0, 3), (1, "Dan", 5.0, 3)],
    "dense_rank": [
        *((1, "Bob", 9.0, 1), (1, "Bob", 9.0, 1)),
        *((1, None, 5.0, 2), (1, "Ann", 5.0, 2), (1, "Dan", 5.0, 2)),
        (1, "Cem", 1.0, 3),
    ],
}


@pytest.mark.spark
@pytest.mark.parametrize("rank", get_args(Rank))
def test_ties_are_told_apart_by_the_remaining_attributes_or_all_stay(
    spark: SparkSession, tmp_path: Path, rank: Rank
) -> None:
    """SQL's three ranks, whichever tuples come first; what is tied is never decided by chance."""
    topped = TopN(3, (SortKey("price", descending=True),), ("auction",), rank, NUMBER)
    for cut, rows in ((2, TIED), (5, TIED[::-1])):
        running = Running(spark, tmp_path / str(cut), topped, BIDS)
        running.slice((rows[:cut], []))
        done = running.slice((rows[cut:], said("<1, *, *>")))
        assert sorted(done.tuples, key=str) == sorted(RANKS[rank], key=str)
        assert done.punctuations == [Punctuation.parse("<1, *, *, *>", topped.schema(BIDS))]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "least"),
    [
        (SortKey("price"), None),
        (SortKey("price", nulls_first=False), 2.0),
        (SortKey("price", descending=True), math.nan),
        (SortKey("price", descending=True, nulls_first=True), None),
    ],
)
def test_null_and_nan_stand_where_spark_puts_them(
    spark: SparkSession, tmp_path: Path, key: SortKey, least: float | None
) -> None:
    running = Running(spark, tmp_path, TopN(1, (key,), ("auction",)), BIDS)
    running.slice(([(1, "Ann", math.nan), (1, "Bob", 3.0)], []))
    (found,) = running.slice(([(1, "Cem", None), (1, "Dan", 2.0)], said("<1, *, *>"))).tuples
    assert str(found[2]).lower() == str(least).lower()


@pytest.mark.spark
def test_without_groups_all_tuples_are_one_that_only_the_end_closes(spark: SparkSession, tmp_path: Path) -> None:
    topped = TopN(2, (SortKey("price"), SortKey("bidder", descending=True)))
    running = Running(spark, tmp_path / "some", topped, BIDS)
    done = running.slice(([(1, "Ann", 3.0), (2, "Bob", 3.0), (3, "Cem", 4.0), (4, "Ann", 4.0)], said("<1, *, *>")))
    assert (done.tuples, done.punctuations, done.kept) == ([], [], 2)
    done = running.slice(([], said("<[2,), *, *>", "<(,2), *, *>", "<null, *, *>")))
    assert sorted(done.tuples) == [(1, "Ann", 3.0), (2, "Bob", 3.0)]
    assert (done.punctuations, done.kept) == (said("<*, *, *>"), 0)
    empty = Running(spark, tmp_path / "none", topped, BIDS).slice(([], said("<*, *, *>")))
    assert (empty.tuples, empty.punctuations) == ([], said("<*, *, *>"))


def test_it_promises_what_closes_groups() -> None:
    schema = Schema.parse("hour INT NOT NULL, min INT NOT NULL, temp DOUBLE", "min 0..59")
    schemes = parse_schemes("hour; min 0..59 by 10; temp; hour, min 0..59 by 10; hour prefix", schema)
    by_hour = TopN(1, (SortKey("temp"),), ("hour",))
    hour, end, *others = by_hour.schemes(schemes)
    assert format_schemes((hour, *others)) == "hour; hour; hour prefix"
    assert end == Scheme(()), "all tiles of the minute are all tuples"


def test_the_rank_is_an_attribute_only_where_it_is_asked_for() -> None:
    assert HIGHEST.schema(BIDS) == BIDS
    numbered = TopN(1, HIGHEST.keys, HIGHEST.groups, "rank", NUMBER).schema(BIDS)
    assert numbered.names == ("auction", "bidder", "price", "place")


def test_a_top_of_nothing_or_by_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="first 0"):
        TopN(0, HIGHEST.keys)
    with pytest.raises(UsageError, match="no order"):
        TopN(1, ())
    with pytest.raises(UsageError, match="hour"):
        TopN(1, HIGHEST.keys, ("hour",)).schema(BIDS)
