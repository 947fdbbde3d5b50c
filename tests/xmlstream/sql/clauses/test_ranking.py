"""The first tuples of groups in SQL and from the builder: what is refused, where, and that Spark answers the same."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.pointing import pointed_at
from tests.harness.running import Row, values_of, view
from tests.harness.walking import Walk
from tests.oracles.relational import computed
from xmlstream.operators.sort import Sort
from xmlstream.operators.top_n import TopN
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, results, topological
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.pattern import Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

SCHEMA = "auction INT, bidder STRING, price DECIMAL(7,2), ts TIMESTAMP NOT NULL"
TABLES = f"""
CREATE TABLE bid ({SCHEMA}) USING punctuated_xml OPTIONS (path 'bid.xml', rowTag 'bid', schemes 'auction');
CREATE TABLE auction (id INT NOT NULL, category INT, opens TIMESTAMP, expires TIMESTAMP)
USING punctuated_xml OPTIONS (path 'auction.xml', rowTag 'auction', schemes 'id');
"""
LINE = TABLES.count("\n") + 1
RANK = "ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, ts, bidder)"


def top(query: str) -> TopN:
    """The one top_n of a query's plan, before types are known."""
    nodes = topological(read(TABLES + query).sketch())
    (found,) = [node.operator for node in nodes if isinstance(node.operator, TopN)]
    return found


BOUNDS = [
    ("r <= 3", 3),
    ("r < 3", 2),
    ("3 >= r", 3),
    ("(3) > (b.R)", 2),
    ("r = 1", 1),
    ("1 = r AND price > 5", 1),
    ("price > 5 AND (r <= 7 AND r = 2)", 2),
    ("r BETWEEN 2 AND 4", 4),
    ("r IN (3, 1)", 3),
]


@pytest.mark.parametrize(("condition", "n"), BOUNDS)
def test_a_condition_on_the_rank_says_how_many_are_kept(condition: str, n: int) -> None:
    assert top(f"SELECT price FROM (SELECT *, {RANK} AS r FROM bid) AS b WHERE {condition}").n == n


def test_only_what_the_bound_does_not_say_is_left_of_the_condition() -> None:
    within = "SELECT price FROM (SELECT *, {} AS r FROM bid) WHERE "
    labels = [
        [node.label for node in topological(read(TABLES + within.format(RANK) + condition).sketch())]
        for condition in ("r <= 3", "r = 1", "r = 2", "r < 3 AND price > 1")
    ]
    assert ["select" in found for found in labels] == [False, False, True, True]


@pytest.mark.parametrize("rank", ["ROW_NUMBER", "RANK", "DENSE_RANK"])
def test_all_of_sqls_ranks_are_counted_as_they_are_called(rank: str) -> None:
    found = top(
        f"SELECT * FROM (SELECT *, {rank}() OVER (ORDER BY ts DESC, price NULLS LAST) AS r FROM bid) WHERE r < 9"
    )
    assert (found.rank, found.n, found.groups) == (rank.lower(), 8, ())
    assert [(k.attribute, k.descending, k.nulls_first) for k in found.keys] == [
        ("ts", True, False),
        ("price", False, False),
    ]


IN_A_QUERY = f"SELECT * FROM (SELECT *, {RANK} AS r FROM bid) AS b "
REFUSALS = [
    (f"{IN_A_QUERY} WHERE r <= 0", "a rank is never below 1", "r <= 0"),
    (
        f"SELECT a.id FROM auction AS a LEFT JOIN (SELECT *, {RANK} AS r FROM bid) b ON id = auction WHERE r = 1",
        "a condition on a rank is supported only with inner joins",
        "r = 1",
    ),
    (f"SELECT * FROM bid WHERE {RANK} <= 3", "OVER is not supported here", "ROW_NUMBER"),
    (
        f"SELECT auction, count(*) AS n, {RANK} AS r FROM bid GROUP BY auction",
        "price is neither a key of GROUP",
        "price",
    ),
    (f"SELECT count(*) AS n, {RANK} AS r FROM bid", "an aggregate beside OVER", "count"),
    ("SELECT RANK() OVER (PARTITION BY auction) AS r FROM bid", "OVER is not supported", "RANK"),
    (
        "SELECT RANK() OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM bid",
        "OVER is not supported",
        "RANK",
    ),
    ("SELECT rank() AS r FROM bid", "the function rank is not supported", "rank"),
    (f"SELECT * FROM bid QUALIFY {RANK} > 3", "QUALIFY needs an upper limit of a rank", "QUALIFY"),
    (
        f"SELECT * FROM bid QUALIFY {RANK} <= 3 AND price > 1",
        "QUALIFY with a condition on another",
        "price > 1",
    ),
    ("SELECT * FROM bid QUALIFY price > 1", "QUALIFY needs an upper limit of a rank", "QUALIFY"),
    ("SELECT * FROM bid ORDER BY ts LIMIT 0", "LIMIT is supported only with a number above 0", "LIMIT"),
    ("SELECT * FROM bid ORDER BY ts LIMIT 1 + 2", "LIMIT is supported only with a number above 0", "LIMIT"),
    ("SELECT * FROM bid ORDER BY ts LIMIT 1 + 1", "LIMIT is supported only with a number above 0", "LIMIT"),
    ("SELECT * FROM bid ORDER BY ts FETCH FIRST 3 ROWS WITH TIES", "FETCH … WITH TIES or PERCENT is not", "FETCH"),
    ("SELECT x.price FROM (SELECT price, ts AS Price FROM bid ORDER BY price LIMIT 3) x", "several", "price LIMIT"),
]


@pytest.mark.parametrize(("query", "what", "at"), REFUSALS)
def test_any_other_window_is_refused_by_name_and_place(query: str, what: str, at: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(TABLES + query)
    error = raised.value
    assert what in error.what
    assert pointed_at(error, query, LINE).startswith(at)
    assert error.hint


WINNING = """
SELECT id, category, bidder, price FROM (
  SELECT a.*, b.bidder, b.price,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts ASC, b.bidder) AS rownum
  FROM auction a, bid b WHERE a.id = b.auction AND b.ts BETWEEN a.opens AND a.expires)
WHERE rownum <= 1"""
QUERIES = [
    WINNING,
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY ts DESC, price, bidder) AS r"
    " FROM bid) WHERE r <= 1",
    f"SELECT * FROM (SELECT *, {RANK} AS r FROM bid) WHERE r <= 10",
    f"SELECT bidder, r FROM (SELECT bidder, {RANK} AS r FROM bid WHERE price > 20) WHERE r = 2",
    "SELECT bidder, price, k FROM"
    " (SELECT *, RANK() OVER (PARTITION BY auction DIV 2 ORDER BY price DESC) AS k FROM bid) AS b"
    " WHERE 3 > b.k AND bidder <> 'Ann'",
    "SELECT auction, d FROM (SELECT *, DENSE_RANK() OVER (ORDER BY price NULLS LAST) AS d FROM bid) WHERE d IN (2, 4)",
    "SELECT auction DIV 2, price FROM bid"
    " QUALIFY ROW_NUMBER() OVER (PARTITION BY auction DIV 2 ORDER BY price * -1, ts, bidder, auction) < 3",
    f"SELECT *, {RANK} AS r FROM bid QUALIFY r <= 4 AND r <> 2",
    f"SELECT DISTINCT bidder FROM bid QUALIFY {RANK} = 1",
    f"WITH r AS (SELECT *, {RANK} AS n FROM bid) SELECT x.auction, x.price, y.price AS second FROM r x JOIN r y"
    " ON x.auction = y.auction WHERE x.n = 1 AND y.n = 2",
    f"SELECT bidder, count(*) AS won FROM (SELECT *, {RANK} AS r FROM bid) WHERE r = 1 GROUP BY bidder",
    "SELECT bidder, price FROM bid ORDER BY price DESC NULLS FIRST, 1 LIMIT 5",
    "SELECT bidder FROM (SELECT * FROM bid ORDER BY ts, price, bidder, auction LIMIT 7) GROUP BY bidder",
    "SELECT auction AS n FROM bid UNION SELECT id FROM auction ORDER BY n DESC LIMIT 4",
    "SELECT bidder, max(price) AS most FROM bid GROUP BY bidder ORDER BY most DESC, bidder LIMIT 2",
]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, list[Row]]:
    """Bids and auctions with ties and nulls, under their names; also as views."""
    chance, begin = random.Random(11), datetime(2026, 1, 1, tzinfo=UTC)
    found: dict[str, list[Row]] = {"auction": [], "bid": []}
    for id_ in range(8):
        opens = begin + timedelta(minutes=id_)
        found["auction"].append((id_, id_ % 3, opens, opens + timedelta(minutes=5)))
    for _ in range(120):
        bidder, price = chance.choice(["Ann", "Bob", "Cem", None]), chance.choice([None, *range(0, 60, 5)])
        ts = begin + timedelta(minutes=chance.randrange(15))
        auction = chance.choice([None, *range(8)])
        found["bid"].append((auction, bidder, None if price is None else Decimal(price), ts))
    for name, node in read(TABLES + "SELECT * FROM bid").tables.items():
        view(spark, name, found[name], node.schema)
    return found


@pytest.mark.sampled(5)
@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_a_plan_computes_what_spark_computes(spark: SparkSession, rows: dict[str, list[Row]], query: str) -> None:
    answer = spark.sql(query)
    (plan,) = results(read(TABLES + query).plan(spark))
    assert [(a.name, a.domain.type.lower()) for a in plan.schema] == [
        (field.name, field.dataType.simpleString()) for field in answer.schema
    ]
    found = computed(optimized(plan), {name: spark.table(name) for name in rows})
    assert Counter(map(str, found.collect())) == Counter(map(str, answer.collect())) != Counter()


@pytest.mark.spark
@pytest.mark.parametrize("query", [WINNING, QUERIES[11]], ids=["winning bids", "limit"])
def test_slice_by_slice_it_comes_to_what_spark_answers_at_once(
    spark: SparkSession, rows: dict[str, list[Row]], query: str
) -> None:
    (plan,) = results(read(TABLES + query).plan(spark))
    first, whole = walked(spark, optimized(plan), rows)
    answer = values_of(spark.sql(query), plan.schema)
    assert whole == answer if isinstance(plan.operator, Sort) else Counter(whole) == Counter(answer)
    ids = plan.schema.names[0] == "id"
    assert Counter(first) == Counter(t for t in answer if ids and t[0] <= 2)


def walked(spark: SparkSession, root: Node, rows: dict[str, list[Row]]) -> tuple[list[Row], list[Row]]:
    """What the plan puts out once auctions 0 to 2 are closed, and in all, after a restart and the end."""
    schemas = {name: node.schema for name, node in read(TABLES + "SELECT * FROM bid").tables.items()}
    early = [t for t in rows["bid"] if t[0] in (0, 1, 2)]
    late = [t for t in rows["bid"] if t[0] not in (0, 1, 2)]
    closed = {
        name: [Punctuation.at(s, {0: Range(0, 2, low_closed=True, high_closed=True)})] for name, s in schemas.items()
    }
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(spark, Path(directory), root)
        first = walk.slice({"bid": (early + late[:40], closed["bid"]), "auction": (rows["auction"], closed["auction"])})
        walk.restart()
        second = walk.slice({"bid": (late[40:], []), "auction": ([], [])})
        last = walk.slice({name: ([], [Punctuation.all(s)]) for name, s in schemas.items()})
    assert last.kept == 0
    return first.tuples, [*first.tuples, *second.tuples, *last.tuples]


BUILT: list[tuple[Callable[[xs.Query], xs.Query], str]] = [
    (
        lambda q: q.group_by("auction").top(3, "price DESC", "ts"),
        "SELECT auction, bidder, price, ts FROM"
        " (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, ts) AS r FROM bid) WHERE r <= 3",
    ),
    (
        lambda q: q.group_by("auction DIV 2").top(1, "ts", number="place", rank="dense_rank"),
        "SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY auction DIV 2 ORDER BY ts) AS place FROM bid)"
        " WHERE place = 1",
    ),
    (lambda q: q.order_by("ts DESC", "price").limit(3), "SELECT * FROM bid ORDER BY ts DESC, price LIMIT 3"),
    (
        lambda q: q.group_by().top(3, "price NULLS LAST").where("price > 5"),
        "SELECT * FROM (SELECT * FROM bid ORDER BY price NULLS LAST LIMIT 3) WHERE price > 5",
    ),
]


@pytest.mark.spark
def test_the_builder_gives_the_plans_that_sql_gives(spark: SparkSession) -> None:
    bid = xs.read(spark, "bid.xml", schema=SCHEMA, rowTag="bid", schemes="auction", name="bid")
    for built, query in BUILT:
        assert built(bid).plan == xs.from_sql(spark, TABLES + query).plan
    limited = bid.order_by("ts").limit(2).root
    assert isinstance(limited.operator, Sort)
    assert isinstance(limited.inputs[0].operator, TopN)
    with pytest.raises(QueryError, match="limit without an order"):
        bid.limit(3)
    with pytest.raises(UsageError, match="top 0"):
        bid.order_by("ts").limit(0)
    with pytest.raises(QueryError, match="top needs an order"):
        bid.group_by("auction").top(3)
    with pytest.raises(QueryError, match="no attribute prize"):
        bid.group_by("auction").top(3, "prize DESC")
    with pytest.raises(QueryError, match="not a sort key"):
        bid.group_by("auction").top(3, "price * 2")


def test_a_view_may_choose_by_an_order_and_has_none() -> None:
    view = "CREATE VIEW dear AS SELECT * FROM bid ORDER BY price DESC {}; SELECT bidder FROM dear"
    operators = [node.operator for node in topological(read(TABLES + view.format("LIMIT 3")).sketch())]
    assert [operator.n for operator in operators if isinstance(operator, TopN)] == [3]
    assert not any(isinstance(operator, Sort) for operator in operators)
    with pytest.raises(QueryError, match="ORDER BY"):
        read(TABLES + view.format(""))


def test_a_rank_that_nobody_asks_for_is_not_computed_nor_an_attribute_read() -> None:
    query = (
        "SELECT auction FROM (SELECT *, RANK() OVER (PARTITION BY auction ORDER BY price) AS r FROM bid) WHERE r = 1"
    )
    nodes = topological(optimized(read(TABLES + query).sketch()))
    assert [node.schema.names for node in nodes if isinstance(node.operator, TopN)] == [("auction", "price")]
    assert [n.operator.options.columns for n in nodes if isinstance(n.operator, Scan)] == [("auction", "price")]
