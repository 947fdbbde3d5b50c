"""Random SQL, many queries over the same streams at once, held to Spark's own batch answer.

Each is planned from its text, made cheaper, and walked slice by slice, with a restart; all results of a slice are one
Spark job. What comes out is what Spark says of all tuples at once, no tuple follows a punctuation that matches it, and
when the sources are closed nothing is kept. `drawn_queries` and `drawn_expressions` say what is drawn.

    make nights SEARCHES=drawn_queries

asks for 2,000 of them in each round.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.running import view
from tests.harness.walking import Walk
from tests.oracles import oracle
from tests.oracles.relational import answers
from tests.properties.drawn_queries import Drawn, queries
from tests.properties.test_random_plans import ENDS, SPACE, TABLES, arrived, tuples_in
from tests.samples.strategies import sliced_streams, small_tuples
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, together
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

AT_ONCE = 20 if AT_NIGHT else 6
"""Queries over the same streams."""

EXAMPLES = 100 if AT_NIGHT else 2
"""Streams: 2,000 queries at night, twelve otherwise."""

COLUMNS = dict.fromkeys("rs", SPACE.schema.names)

REFUSED = (
    "without an equality",
    "not determined",
    "several attributes have this name",
    "it names an item of SELECT and an attribute",
    "neither a key of GROUP BY nor aggregated",
    "Spark understands this query differently",
    "repeats a comparison",
    "of the query around",
    "a condition on the query around",
    "with the query around is not supported in a value",
)
"""What is refused with words although Spark has an answer."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The slices of both streams, the slice after which the walk restarts, and the queries."""

    slices: list[list[list[Any]]]
    restart: int
    asked: list[str] = field(default_factory=list)


@st.composite
def streams(draw: st.DrawFn) -> Streams:
    """Few slices, for each costs a job; one stream in four has no tuple at all."""
    found = []
    for _ in "rs":
        slices = draw(sliced_streams(SPACE, most=5 if AT_NIGHT else 3))
        slices[0] = [*draw(st.lists(small_tuples(SPACE), min_size=4, max_size=8)), *slices[0]]
        if draw(st.integers(0, 3)) == 0:
            slices = [[item for item in slice_ if isinstance(item, Punctuation)] for slice_ in slices]
        found.append(slices)
    asked = [draw(queries(draw(st.integers(0, 3)), COLUMNS)).text for _ in range(AT_ONCE)]
    return Streams(found, draw(st.integers(0, 2)), asked)


def known(spark: SparkSession, given: Streams) -> None:
    """Makes the tuples of both streams known to Spark as views, and Spark read as-of joins."""
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    for name, slices in zip("rs", given.slices, strict=True):
        rows = [item for slice_ in slices for item in slice_ if not isinstance(item, Punctuation)]
        view(spark, name, rows, SPACE.schema)


def planned(spark: SparkSession, asked: Sequence[str], tables: str = TABLES) -> dict[str, Node]:
    """The plans of the queries, but for those that are refused by name, and those that Spark itself refuses."""
    from pyspark.errors import AnalysisException, ParseException

    found: dict[str, Node] = {}
    for query in asked:
        try:
            spark.sql(query)
        except (AnalysisException, ParseException):
            continue
        try:
            found[query] = read(tables + query).plan(spark)
        except QueryError as error:
            if not any(reason in str(error) for reason in REFUSED):
                raise AssertionError(f"{error}\n{query}") from None
    return found


def answered(spark: SparkSession, plans: dict[str, Node]) -> tuple[dict[str, Node], list[Counter[tuple[Any, ...]]]]:
    """The plans of the queries that plain Spark can compute, with its answers.

    Some of nested subqueries end in an error of its own: an attribute that it cannot find, or several rows of `max`.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return plans, answers([spark.sql(query) for query in plans])
    except (Py4JJavaError, PySparkException):
        found = {}
        for query in plans:
            with suppress(Py4JJavaError, PySparkException):
                (found[query],) = answers([spark.sql(query)])
    return {query: plans[query] for query in found}, list(found.values())


def walked(spark: SparkSession, roots: Sequence[Node], given: Streams) -> tuple[list[list[Any]], int]:
    """All that each of the plans put out, in order, and what is kept at the end."""
    said = {name: PunctuationSet(SPACE.schema) for name in "rs"}
    found: list[list[Any]] = [[] for _ in roots]
    kept = 0
    end = [Punctuation.parse(text, SPACE.schema) for text in ENDS]
    length = max(len(slices) for slices in given.slices)
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(spark, Path(directory), optimized(together(roots, [f"q{n}" for n in range(len(roots))])))
        for i in range(length + 1):
            here = [slices[i : i + 1] if i < length else [end] for slices in given.slices]
            done, kept = walk.each({name: arrived(said[name], at) for name, at in zip("rs", here, strict=True)})
            for items, (tuples, punctuations) in zip(found, done, strict=True):
                items += [*tuples, *punctuations]
            if i == given.restart:
                walk.restart()
    return found, kept


def failures(spark: SparkSession, given: Streams) -> list[str]:
    """What is wrong with the answers, query by query."""
    known(spark, given)
    plans = planned(spark, given.asked)
    if given in SEEN:
        assert list(plans) == given.asked
    if len(plans) < 2:
        plans |= planned(spark, ["SELECT a FROM r", "SELECT b AS a, a AS b FROM s"])
    plans, expected = answered(spark, plans)
    found, kept = walked(spark, list(plans.values()), given)
    wrong = [] if kept == 0 else [f"{kept} tuples are kept at the end"]
    for query, items, wanted in zip(plans, found, expected, strict=True):
        if Counter(tuples_in(items)) != wanted:
            wrong.append(f"{query}\n    gave {dict(Counter(tuples_in(items)))}\n    not  {dict(wanted)}")
        if (offence := oracle.first_offence(items)) is not None:
            wrong.append(f"{query}\n    is not grammatical: {offence}")
    return wrong


def _growing(of: int) -> list[list[Any]]:
    """Four slices of a stream, each with its own value of `b`, which it closes."""
    rows = [[(a, b, 1) for a in range(2, 5)] for b in range(4)]
    return [[*rows[b][of:], Punctuation.parse(f"<*, {b}, *>", SPACE.schema)] for b in range(4)]


SEEN: list[Streams] = [
    Streams(
        [_growing(of=0), _growing(of=1)],
        1,
        [
            # Logs of as-of joins are rewritten in each slice.
            *(
                f"SELECT p.a, p.b, q.b AS c FROM r AS p {kind} s AS q MATCH_CONDITION ({match}) ON p.a = q.a"
                for kind in ("ASOF JOIN", "LEFT ASOF JOIN")
                for match in ("timestamp_seconds(p.b) >= timestamp_seconds(q.b)", "CAST(p.b AS BIGINT) > q.b")
            ),
            # Spark folds such a filter to no row, and has observed nothing below it.
            *(
                f"SELECT p.a, p.b FROM r AS p {join} AS q ON p.a = q.a WHERE {never}"
                for join in ("LEFT JOIN s", "LEFT ANTI JOIN s", "LEFT JOIN (SELECT a, max(b) AS b FROM s GROUP BY a)")
                for never in ("1 = 0", "p.b + 1 = 2.5BD")
            ),
            "SELECT p.a, p.b FROM r AS p LEFT JOIN s AS q ON p.a = q.a WHERE q.b + 1 = 2.5BD",
            # The moment of a session is one of its keys.
            *(
                f"SELECT unix_seconds(session_window.start) AS a, count(*) AS b FROM {timed} GROUP BY {by}"
                for timed in ["(SELECT *, timestamp_seconds(b) AS d FROM r) AS p"]
                for by in ("session_window(d, '1 second'), d", "D, a, session_window(d, '1 second')")
            ),
        ],
    )
]
"""What was found wrong once."""


@pytest.mark.rest
def test_any_query_answers_as_spark_does(spark: SparkSession) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(streams())
    def holds(given_: Streams) -> None:
        assert failures(spark, given_) == [], given_.slices

    for seen in SEEN:
        holds = example(seen)(holds)
    holds()


def test_what_explain_takes_run_takes(spark: SparkSession) -> None:
    """Each operator of a plan can say what it keeps, whatever its keys are called."""
    one = st.integers(1, 3).flatmap(lambda depth: queries(depth, COLUMNS))

    @settings(
        max_examples=settings().max_examples // 3,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    @given(st.lists(one, min_size=1, max_size=4))
    def holds(drawn: list[Drawn]) -> None:
        for root in planned(spark, [query.text for query in drawn]).values():
            with tempfile.TemporaryDirectory() as directory:
                Walk(spark, Path(directory), optimized(root))

    holds()
