"""Windows over a stream that is cut anywhere, the query killed at each cut: what comes out is what the whole gives.

Every way of cutting is a stream of its own, told by a number; all of them, and all queries, go through one walk.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.notation import slices
from tests.harness.running import view
from tests.harness.walking import Walk
from tests.oracles import oracle
from tests.oracles.relational import answers
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import together
from xmlstream.punct_ns.pattern import WILDCARD, Constant, matches
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.rest, pytest.mark.spark]

COLUMNS = "n INT NOT NULL, a INT, b INT NOT NULL, c INT"
TABLE = (
    f"CREATE TABLE r ({COLUMNS}) USING punctuated_xml OPTIONS (path 'r.xml', rowTag 'r', schemes 'n; n, b prefix');\n"
)
STREAM = "(1,2,7) (2,3,8) (1,3,9) <*,(,2],*> (1,5,1) (null,6,2) <1,(,6],*> (2,9,4) <*,(,8],*> (1,12,5) <*,[10,11],*>"
ITEMS = slices(STREAM, Schema.parse("a INT, b INT NOT NULL, c INT"))[0]
BY = "PARTITION BY n, a ORDER BY b"
QUERIES = {
    "tumbling": "SELECT n, a, unix_seconds(window.start) AS s, sum(c) AS c FROM r"
    " GROUP BY n, a, window(timestamp_seconds(b), '3 seconds')",
    "hopping": "SELECT n, unix_seconds(window.end) AS e, count(*) AS k, max(c) AS c FROM r"
    " GROUP BY n, window(timestamp_seconds(b), '5 seconds', '2 seconds')",
    "hopping, tuples kept": "SELECT n, unix_seconds(window.end) AS e, count(DISTINCT a) AS k FROM r"
    " GROUP BY n, window(timestamp_seconds(b), '5 seconds', '2 seconds', '-1 second')",
    "session": "SELECT n, a, unix_seconds(session_window.end) AS e, count(*) AS k FROM r"
    " GROUP BY n, a, session_window(timestamp_seconds(b), '2 seconds')",
    "session, tuples kept": "SELECT n, unix_seconds(session_window.start) AS s, count(DISTINCT a) AS k FROM r"
    " GROUP BY n, session_window(timestamp_seconds(b), '2 seconds')",
    "rows": f"SELECT n, a, b, sum(c) OVER ({BY} ROWS 1 PRECEDING) AS c, max(c) OVER ({BY}) AS m,"
    f" lag(b) OVER ({BY}) AS before FROM r",
    "rows ahead": f"SELECT n, a, b, lead(c) OVER ({BY}) AS c FROM r",
}
MOST = len(ITEMS) if AT_NIGHT else 2
"""Into how many pieces the stream is cut."""

if not AT_NIGHT:
    QUERIES = {name: query for name, query in QUERIES.items() if not name.endswith("tuples kept")}


def cuts() -> list[list[list[Any]]]:
    """The stream in pieces; first as a whole."""
    places = [at for number in range(MOST) for at in combinations(range(1, len(ITEMS)), number)]
    return [[ITEMS[low:high] for low, high in zip((0, *at), (*at, len(ITEMS)), strict=True)] for at in places]


def of_stream(number: int, p: Punctuation) -> Punctuation | None:
    """What an output's punctuation says of a stream, without its number; None for nothing."""
    return Punctuation(p.schema, (WILDCARD, *p.patterns[1:])) if matches(p.patterns[0], number) else None


def expected(spark: SparkSession) -> list[list[Any]]:
    """What Spark answers of the whole stream; and its windows of tuples."""
    rows = [item for item in ITEMS if not isinstance(item, Punctuation)]
    view(spark, "r", [(0, *row) for row in rows], Schema.parse(COLUMNS))
    found = [[t[1:] for t in of.elements()] for of in answers([spark.sql(query) for query in QUERIES.values()])]
    groups: dict[Any, list[Any]] = {}
    for a, _, c in rows:
        groups.setdefault(a, []).append(c)
    counted: list[Any] = [(a, sum(cs[end - 3 : end])) for a, cs in groups.items() for end in range(3, len(cs) + 1, 2)]
    return [*found, counted]


def test_wherever_a_stream_under_windows_is_cut_the_same_comes_out(spark: SparkSession, tmp_path: Path) -> None:
    given = read(TABLE + "SELECT * FROM r").tables["r"].schema
    counted = xs.read(spark, "r.xml", schema=COLUMNS, rowTag="r", name="r").tuple_window(3, slide=2, per=["n", "a"])
    roots = [read(TABLE + query).plan(spark) for query in QUERIES.values()] + [counted.agg("sum(c) AS c").root]
    names = [*QUERIES, "tuple windows"]
    streams = cuts()
    walk = Walk(spark, tmp_path, optimized(together(roots, [f"q{i}" for i in range(len(roots))])), positioned=True)
    found: list[list[list[Any]]] = [[[] for _ in streams] for _ in roots]
    told = [[PunctuationSet(root.schema) for _ in streams] for root in roots]
    at_the_end: list[list[list[Any]]] = []
    for i in range(MOST + 1):
        now = [(n, item) for n, pieces in enumerate(streams) for item in (pieces[i] if i < len(pieces) else ())]
        rows = [(n, *item) for n, item in now if not isinstance(item, Punctuation)]
        said = [Punctuation(given, (Constant(n), *p.patterns)) for n, p in now if isinstance(p, Punctuation)]
        done, kept = walk.each({"r": (rows, said) if i < MOST else ([], [Punctuation.all(given)])})
        if i == MOST:
            at_the_end = [[list(tuples) for tuples in of] for of in found]
        for of, sets, (tuples, punctuations) in zip(found, told, done, strict=True):
            for n, *rest in tuples:
                of[n].append(tuple(rest))
            for n, each in enumerate(sets if i < MOST else []):
                each.add_all(p for q in punctuations if (p := of_stream(n, q)) is not None)
        walk.restart()
    assert kept == 0
    assert sum(len(sets[0]) > 0 for sets in told) > 4
    for name, of, wanted in zip(names, found, expected(spark), strict=True):
        assert oracle.same_bag(of[0], wanted), name
    for name, of, before, sets in zip(names, found, at_the_end, told, strict=True):
        assert before[0], name
        for n, pieces in enumerate(streams):
            for whole, cut in ((of[0], of[n]), (before[0], before[n])):
                assert oracle.same_bag(cut, whole), (name, pieces, cut, whole)
            for one, other in ((sets[0], sets[n]), (sets[n], sets[0])):
                assert [str(p) for p in one if not other.covers(p)] == [], (name, pieces)
