"""Plans of random operators, drawn as SQL: faithful to Spark's own answer, proper, and with nothing kept at the end.

The optimized plan is held to the plan as it was written, too: by the end of the streams, before they are closed, it has
let out all that the other has, tuples and punctuations. And a plan without the distincts that nothing above them can
tell says the same as with them, slice by slice.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.running import Done, view
from tests.harness.walking import Walk
from tests.oracles import oracle
from tests.samples.strategies import Small, SmallSchema, sliced_streams, small_tuples
from xmlstream.optimizer.choose_joins import choose_joins
from xmlstream.optimizer.insertions import punctuate_excluded
from xmlstream.optimizer.push_down import push_down_predicates
from xmlstream.optimizer.rules import RULES, optimized
from xmlstream.optimizer.simplify import eliminate_distinct
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

TABLES = "".join(
    f"CREATE TABLE {name} (a INT, b INT NOT NULL, c INT) USING punctuated_xml OPTIONS (path '{name}.xml', rowTag 'r',"
    " domains 'a 0..4, b 0..3, c 0..3', schemes 'a; a, b; b');\n"
    for name in ("r", "s")
)
SPACE = SmallSchema(
    next(iter(read(TABLES + "SELECT * FROM r").tables.values())).schema,
    (
        Small(Domain("INT", low=0, high=4), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, None)),
        Small(Domain("INT", nullable=False, low=0, high=3), (0, 1, 2, 3), (0, 1, 2, 3)),
        Small(Domain("INT", low=0, high=3), (0, 1, 2, 3), (0, 1, 2, 3, None)),
    ),
)
ENDS = ["<[3,), *, *>", "<*, [2,), *>", "<{0,1,2}, *, *>", "<null, *, *>"]
"""What closes a source without an end."""

LEAVES = [
    "SELECT a, b FROM {}",
    "SELECT c AS a, b FROM {}",
    "SELECT a, b DIV 2 AS b FROM {} WHERE c IS NULL OR c > 1",
    "SELECT p.a, q.c AS b FROM {} AS p, r AS q WHERE p.b = q.b",
    "SELECT a, b FROM {} AS p LEFT SEMI JOIN s USING (c)",
    "SELECT a, x AS b FROM {} LATERAL VIEW explode(array(b, c)) AS x WHERE c IS NULL OR x < 3",
    "SELECT x AS a, b FROM {} LATERAL VIEW OUTER explode(IF(a = c, array(), array(a, b))) p AS x",
    "SELECT p.a, q.c AS b FROM {} AS p JOIN s AS q ON p.b = q.b AND q.a > 0 AND p.c < 3 WHERE p.b > 0",
]
ABOVE_ONE = [
    "SELECT DISTINCT a, b FROM ({}) AS p",
    "SELECT a, b FROM ({}) AS p WHERE a <> 2 OR b = 1",
    "SELECT a, CAST(count(*) AS INT) AS b FROM ({}) AS p GROUP BY a",
    "SELECT max(a) AS a, b FROM ({}) AS p GROUP BY b",
    "SELECT min(a) AS a, CAST(count(DISTINCT b) AS INT) AS b FROM ({}) AS p GROUP BY b DIV 2",
    "SELECT b AS a, a + 1 AS b FROM ({}) AS p",
    "SELECT coalesce(a, b) AS a, a AS b FROM ({}) AS p",
    "SELECT a, CAST(sum(b) OVER (PARTITION BY a ORDER BY b ROWS 1 PRECEDING) AS INT) AS b FROM ({}) AS p",
    "SELECT lag(a, 2, b) OVER (ORDER BY b, a) AS a, b FROM ({}) AS p",
    "SELECT a, CAST(count(a) OVER (PARTITION BY b ORDER BY a NULLS LAST) AS INT) AS b FROM ({}) AS p",
    "SELECT a, lead(b, 1, a) OVER (PARTITION BY a ORDER BY b) AS b FROM ({}) AS p",
    "SELECT CAST(count(a) OVER (ORDER BY b, a ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS INT) AS a, b FROM ({}) AS p",
    "SELECT CAST(unix_seconds(window.start) AS INT) AS a, max(b) AS b FROM ({}) AS p"
    " GROUP BY window(timestamp_seconds(a), '2 seconds')",
    "SELECT a, CAST(sum(b) AS INT) AS b FROM ({}) AS p"
    " GROUP BY a, window(timestamp_seconds(b), '3 seconds', '2 seconds', '1 second')",
    "SELECT CAST(unix_seconds(session_window.end) AS INT) AS a, b FROM ({}) AS p"
    " GROUP BY b, session_window(timestamp_seconds(a), '1 second')",
]
ABOVE_TWO = [
    "SELECT a, b FROM ({}) AS p UNION ALL SELECT a, b FROM ({}) AS q",
    "SELECT a, b FROM ({}) AS p UNION SELECT a, b FROM ({}) AS q",
    "SELECT a, b FROM ({}) AS p INTERSECT SELECT a, b FROM ({}) AS q",
    "SELECT a, b FROM ({}) AS p EXCEPT SELECT a, b FROM ({}) AS q",
    "SELECT p.a, q.b FROM ({}) AS p JOIN ({}) AS q ON p.a = q.a",
    "SELECT q.a, p.b FROM ({}) AS p JOIN ({}) AS q ON p.a = q.a AND p.b <= q.b",
    "SELECT p.a, q.b FROM ({}) AS p LEFT JOIN ({}) AS q ON p.a = q.b",
    "SELECT q.a, p.b FROM ({}) AS p RIGHT JOIN ({}) AS q ON p.b = q.b AND p.a < q.a",
    "SELECT a, p.b FROM ({}) AS p FULL JOIN ({}) AS q USING (a)",
    "SELECT a, b FROM ({}) AS p LEFT SEMI JOIN ({}) AS q ON p.a = q.a",
    "SELECT a, b FROM ({}) AS p LEFT ANTI JOIN ({}) AS q ON p.b = q.b AND p.a > q.a",
]


DEEPEST, SLICES = (3, 6) if AT_NIGHT else (2, 3)
"""Operators above each other, and slices of a source; more at night."""

CONDITIONS = [
    "a > 0",
    "b < 3",
    "a IS NULL",
    "a IS NOT NULL",
    "a IN (0, 1, 3)",
    "a <> 2 OR b = 1",
    "a <= b",
    "a + b > 1",
]


@st.composite
def queries(draw: st.DrawFn, depth: int) -> str:
    """SQL over r and s, whose result has the attributes a and b."""
    if depth == 0:
        return draw(st.sampled_from(LEAVES)).format(draw(st.sampled_from("rs")))
    if draw(st.booleans()):
        conditions = draw(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2, unique=True))
        inner = draw(st.sampled_from(ABOVE_TWO)).format(draw(queries(depth - 1)), draw(queries(0)))
        return f"SELECT a, b FROM ({inner}) AS p WHERE ({') AND ('.join(conditions)})"
    if draw(st.booleans()):
        return draw(st.sampled_from(ABOVE_ONE)).format(draw(queries(depth - 1)))
    return draw(st.sampled_from(ABOVE_TWO)).format(draw(queries(depth - 1)), draw(queries(draw(st.integers(0, 1)))))


@dataclass(frozen=True, slots=True, repr=False)
class Example:
    """A query; the slices of both streams; and the slice after which it restarts."""

    query: str
    streams: list[list[list[Any]]]
    restart: int


@st.composite
def examples(draw: st.DrawFn) -> Example:
    streams = [draw(sliced_streams(SPACE, most=SLICES)) for _ in range(2)]
    for slices in streams:
        # In front of all punctuations, so that joins find partners.
        slices[0] = [*draw(st.lists(small_tuples(SPACE), min_size=3, max_size=6)), *slices[0]]
    return Example(draw(queries(draw(st.integers(1, DEEPEST)))), streams, draw(st.integers(0, 2)))


def test_any_plan_answers_as_spark_does_and_says_only_what_is_true(spark: SparkSession) -> None:
    @settings(
        max_examples=max(5, settings().max_examples // 25),
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(examples())
    def holds(example: Example) -> None:
        for name, slices in zip("rs", example.streams, strict=True):
            rows = [item for slice_ in slices for item in slice_ if not isinstance(item, Punctuation)]
            view(spark, name, rows, SPACE.schema)
        expected = Counter(tuple(row) for row in spark.sql(example.query).collect())
        written = read(TABLES + example.query).plan(spark)
        before, after = walked(spark, optimized(written), example)
        assert Counter(tuples_in(before + after)) == expected, example.query
        if push_down_predicates(written) != written or eliminate_distinct(written) != written:
            assert_nothing_is_lost(spark, written, before, example)

    holds()


DISTINCTS = [
    "SELECT max(a) AS a, b FROM (SELECT a, b FROM r WHERE a > 0 OR c = 1 UNION SELECT a, b FROM s) AS p GROUP BY b",
    "SELECT a, CAST(count(DISTINCT c) AS INT) AS b FROM (SELECT DISTINCT a, c FROM r) AS p GROUP BY a",
    "SELECT a, b FROM (SELECT DISTINCT a, b FROM r) AS p INTERSECT SELECT a, b FROM (SELECT DISTINCT a, b FROM s) AS q",
    "SELECT DISTINCT a, b FROM (SELECT a, b FROM r LEFT ANTI JOIN (SELECT DISTINCT b AS d FROM s) AS q ON a = d) AS p"
    " EXCEPT SELECT DISTINCT a, b FROM s WHERE c = 2",
]
"""Each with one or two that nothing above can tell, below each of the operators that cannot."""


@pytest.mark.parametrize("query", DISTINCTS)
def test_without_what_cannot_be_told_each_slice_says_the_same(spark: SparkSession, query: str) -> None:
    @settings(max_examples=max(2, settings().max_examples // 50), deadline=None, phases=[Phase.generate])
    @given(examples())
    def holds(example: Example) -> None:
        written = read(TABLES + query).plan(spark)
        left = eliminate_distinct(written)
        assert left != written
        assert by_slice(spark, left, example) == by_slice(spark, written, example), query

    holds()


def by_slice(spark: SparkSession, root: Node, example: Example) -> list[tuple[list[Any], list[str]]]:
    """What each slice lets out, the last of which closes the sources: its tuples, and all that was said until then."""
    said = {name: PunctuationSet(SPACE.schema) for name in "rs"}
    end = [Punctuation.parse(text, SPACE.schema) for text in ENDS]
    out = PunctuationSet(root.schema)
    found = []
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(spark, Path(directory), root)
        for i in range(max(len(slices) for slices in example.streams) + 1):
            here = [slices[i : i + 1] or [end] * (i >= len(slices)) for slices in example.streams]
            done = walk.slice({name: arrived(said[name], at) for name, at in zip("rs", here, strict=True)})
            out.add_all(done.punctuations)
            found.append((sorted(done.tuples, key=str), sorted(map(str, out))))
    return found


def walked(spark: Session, root: Node, example: Example) -> tuple[list[Any], list[Any]]:
    """All that the plan puts out, before its sources are closed and after; a tuple that breaks what was said fails."""
    length = max(len(slices) for slices in example.streams)
    said = {name: PunctuationSet(SPACE.schema) for name in "rs"}
    items: list[Any] = []
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(spark, Path(directory), root)
        for i in range(length):
            here = [slices[i : i + 1] for slices in example.streams]
            items += out_of(walk.slice({name: arrived(said[name], at) for name, at in zip("rs", here, strict=True)}))
            if i == example.restart:
                walk.restart()
        end = [Punctuation.parse(text, SPACE.schema) for text in ENDS]
        done = walk.slice({name: ([], told.add_all(end)) for name, told in said.items()})
    assert oracle.first_offence([*items, *out_of(done)]) is None, example.query
    assert done.kept == 0, example.query
    return items, out_of(done)


def at_once(spark: Session, root: Node, example: Example) -> list[Any]:
    """All that the plan puts out of its sources before they are closed, in one slice."""
    whole = {n: arrived(PunctuationSet(SPACE.schema), s) for n, s in zip("rs", example.streams, strict=True)}
    with tempfile.TemporaryDirectory() as directory:
        return out_of(Walk(spark, Path(directory), root).slice(whole))


def arrived(said: PunctuationSet, slices: list[list[Any]]) -> tuple[list[Any], list[Punctuation]]:
    """Slices of a source as one."""
    items = [item for slice_ in slices for item in slice_]
    new = said.add_all([item for item in items if isinstance(item, Punctuation)])
    return tuples_in(items), new


def tuples_in(items: list[Any]) -> list[Any]:
    return [item for item in items if not isinstance(item, Punctuation)]


def out_of(done: Done) -> list[Any]:
    return [*done.tuples, *done.punctuations]


def assert_nothing_is_lost(session: Session, written: Node, found: list[Any], example: Example) -> None:
    """What a plan lets out as it was written, its rewritten form has let out, too.

    A select that says what it never passes may close its stream whole. The punctuation of wildcards alone is cut at the
    keys of a join and nowhere else: what comes late for that must have come without these selects. And each join says
    of its own keys what the tuples that it keeps leave open: joins in another order say it of other attributes.
    """
    out = at_once(session, written, example)
    if lost(out, found, written.schema):
        root = written
        for rule in RULES:
            root = root if rule in (punctuate_excluded, choose_joins) else rule(root)
        found, _ = walked(session, root, example)
    assert not lost(out, found, written.schema), example.query


def lost(written: list[Any], found: list[Any], schema: Schema) -> list[str]:
    """The tuples and punctuations that were found in one, but not in the other."""
    said = PunctuationSet(schema)
    said.add_all([item for item in found if isinstance(item, Punctuation)])
    tuples = Counter(tuples_in(written)) - Counter(tuples_in(found))
    return [*map(str, tuples), *(str(p) for p in written if isinstance(p, Punctuation) and not said.covers(p))]
