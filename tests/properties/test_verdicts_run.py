"""Verdicts against runs: of random plans under random schemes, what was said is what happens.

Sources promise of endless domains. A run has tuples of some values, and every promised punctuation on these and on more
to either side. A query that is said to answer has put out all then, while its inputs go on; an operator that is said to
be cleansed keeps nothing. A query that is said not to be keeps something of one of some inputs, if anything comes to
what keeps it: all tuples of one source beside some of the other, so that there are those with partners and those whose
partners may still come (as in the proof of Theorem 1 of Li et al. 2006).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from operators.join import Join
from operators.look_ahead import LookAhead
from operators.multiway_join import MultiwayJoin
from operators.semi_join import SemiJoin
from operators.session import Session
from punct_ns.pattern import Constant, Pattern, Range, canonical
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, Term
from punct_ns.scheme_order import is_compact
from tests.harness.nights import AT_NIGHT
from tests.harness.running import Items, tuples_of
from tests.harness.walking import Walk
from tests.properties.test_random_plans import queries
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, topological
from xmlstream.safety.verdicts import Kept, OperatorVerdict, When, judged
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

TABLE = (
    "CREATE TABLE {} (a INT, b INT NOT NULL, c INT) USING punctuated_xml"
    " OPTIONS (path '{}.xml', rowTag 'r', schemes '{}');\n"
)
SCHEMES = ["", "a", "b", "c", "a; b", "b; c", "a, b", "a prefix", "b prefix", "a; b prefix", "b, a prefix", "a, b; c"]
Inputs: TypeAlias = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
"""The tuples of both sources."""

VALUES = (0, 1, 2, 3)
SAID = (-50, 50)
"""The values that punctuations speak of: those of tuples, and what expressions make of them."""

DEEPEST = 3 if settings().max_examples > 50 else 2


@dataclass(frozen=True, slots=True, repr=False)
class Judged:
    """A query, what its sources promise, their tuples, and whether it runs as it was written."""

    query: str
    schemes: tuple[str, str]
    tuples: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
    as_written: bool


@st.composite
def promising(draw: st.DrawFn) -> Judged:
    schemes = draw(st.sampled_from(SCHEMES)), draw(st.sampled_from(SCHEMES))
    query = draw(queries(draw(st.integers(0, DEEPEST))))
    drawn: list[list[tuple[Any, ...]]] = []
    for said in schemes:
        a = st.sampled_from(VALUES if "a prefix" in said else (*VALUES, None))
        whole = st.tuples(a, st.sampled_from(VALUES), st.sampled_from((*VALUES, None)))
        drawn.append(draw(st.lists(whole, min_size=2, max_size=5)))
    return Judged(query, schemes, (drawn[0], drawn[1]), draw(st.integers(0, 3)) == 0)


HALF_UNDECIDED = Judged(
    "SELECT a, b FROM (SELECT a, b FROM (SELECT a, b DIV 2 AS b FROM s WHERE c IS NULL OR c > 1) AS p UNION"
    " SELECT a, b FROM (SELECT a, b FROM r AS p LEFT SEMI JOIN s USING (c)) AS q) AS p WHERE (a IS NOT NULL)",
    ("b; c", "b prefix"),
    ([(None, 3, 1), (None, 1, 3)], [(3, 2, 1), (None, 3, None)]),
    as_written=False,
)
"""What the semi join lets through hides that it has tuples of the same `b` about which nothing is decided."""


OF_ITSELF = Judged(
    "SELECT a, b FROM (SELECT a, b FROM s AS p LEFT SEMI JOIN s USING (c)) AS q WHERE b < 3",
    ("", "b prefix"),
    ([], [(0, 0, 1), (0, 0, 0)]),
    as_written=False,
)
"""A tuple whose partner may be itself never waits for one, which no promise tells."""

HELD_BACK_BY_NOTHING = Judged(
    "SELECT a, b FROM (SELECT a, p.b FROM (SELECT p.a, q.b FROM (SELECT a, b FROM r WHERE a IS NULL AND a IN (0, 1, 3))"
    " AS p JOIN s AS q ON p.a = q.a) AS p FULL JOIN r AS q USING (a)) AS p WHERE a IN (0, 1, 3)",
    ("a", "b prefix"),
    ([(0, 3, 0), (3, 0, 3)], [(None, 0, 3), (3, 1, 3)]),
    as_written=False,
)
"""Tuples that the first join would keep for ever would hold back what frees the second of its; but none comes."""

OF_ONE_SIDE_OF_A_FULL_JOIN = Judged(
    "SELECT max(a) AS a, b FROM (SELECT a, b FROM (SELECT a, p.b FROM (SELECT a, b FROM (SELECT a, b FROM"
    " (SELECT a, b FROM r) AS p LEFT SEMI JOIN (SELECT a, x AS b FROM r LATERAL VIEW explode(array(b, c)) AS x"
    " WHERE c IS NULL OR x < 3) AS q ON p.a = q.a) AS p WHERE (a <= b)) AS p FULL JOIN (SELECT p.a, q.c AS b FROM r"
    " AS p JOIN s AS q ON p.b = q.b AND q.a > 0 AND p.c < 3 WHERE p.b > 0) AS q USING (a)) AS p WHERE (a IN (0, 1, 3)))"
    " AS p GROUP BY b",
    ("a; b prefix", "b"),
    ([(3, 0, 2), (3, 2, 0)], [(0, 2, 3), (0, 0, 1)]),
    as_written=True,
)
"""Only tuples with `a` above `b` have partners on one side of the outer join alone, and null in `b` behind it."""

BEHIND_THE_LAST_ROWS = Judged(
    "SELECT a, b FROM (SELECT q.a, p.b FROM (SELECT a, b FROM (SELECT CAST(count(a) OVER (ORDER BY b, a ROWS BETWEEN 1"
    " PRECEDING AND 2 FOLLOWING) AS INT) AS a, b FROM (SELECT x AS a, b FROM r LATERAL VIEW OUTER"
    " explode(IF(a = c, array(), array(a, b))) p AS x) AS p) AS p WHERE a <> 2 OR b = 1) AS p RIGHT JOIN"
    " (SELECT a, b FROM s) AS q ON p.b = q.b AND p.a < q.a) AS p WHERE (a <= b)",
    ("b prefix", "b prefix"),
    ([(3, 2, 1), (1, 0, 3), (0, 3, 3), (1, 3, 3), (1, 3, 2)], [(2, 3, 3), (0, 1, 1), (2, 3, 2)]),
    as_written=False,
)
"""The last rows hold back the end of what the join waits for, until others come behind them, which never do here."""

WITHOUT_NULL_ON_ONE_SIDE = Judged(
    "SELECT c AS a, b FROM s UNION SELECT a, x AS b FROM s LATERAL VIEW explode(array(b, c)) AS x",
    ("", "a; b"),
    ([], [(1, 3, None), (2, 0, 3)]),
    as_written=False,
)
"""Null is closed of the second query alone: in the first one there is none."""

NEVER_WITHIN = Judged(
    "SELECT a, b FROM (SELECT q.a, p.b FROM (SELECT x AS a, b FROM s LATERAL VIEW OUTER explode(IF(a = c, array(),"
    " array(a, b))) p AS x) AS p RIGHT JOIN (SELECT a, b FROM r) AS q ON p.b = q.b AND p.a < q.a) AS p"
    " WHERE (a IS NULL) AND (a <= b)",
    ("a, b", "a, b"),
    ([(2, 1, 0), (None, 0, 3)], [(0, 0, 0), (1, 1, 1)]),
    as_written=False,
)
"""Partners have no `a`, as the predicate says: none is within the bound, and nothing waits for one."""

NO_MOMENT = Judged(
    "SELECT b, CAST(unix_seconds(session_window.end) AS INT) AS a FROM (SELECT a, b FROM s WHERE a IS NULL) AS p"
    " GROUP BY b, session_window(timestamp_seconds(a), '1 second')",
    ("a", "c"),
    ([], [(2, 1, 3), (None, 0, 2)]),
    as_written=False,
)
"""What is null, as the predicate says, is in no session, and nothing is kept of it."""

WITHOUT_ITS_LIKE = Judged(
    "SELECT x AS a, b FROM r LATERAL VIEW OUTER explode(IF(a = c, array(), array(a, b))) p AS x INTERSECT"
    " SELECT a, b FROM r",
    ("a, b", ""),
    ([(0, 3, 3), (0, 1, 3)], []),
    as_written=True,
)
"""Only a tuple of equal `a` and `c` has no like in the first query, unless another one of its `a` and `b` comes."""

OF_NO_NULL = Judged(
    "SELECT a, b FROM (SELECT q.a, p.b FROM (SELECT a, b FROM r) AS p RIGHT JOIN (SELECT a, b FROM r WHERE a IS NULL)"
    " AS q ON p.b = q.b AND p.a < q.a) AS p WHERE a > 0 UNION SELECT a, b FROM r",
    ("b; c", "c"),
    ([(3, 1, 2), (2, 2, None)], []),
    as_written=False,
)
"""Tuples of the outer join would be kept for ever with null in `b`, and there are none: its predicates contradict."""

PINNED = [HALF_UNDECIDED, NEVER_WITHIN, NO_MOMENT, BEHIND_THE_LAST_ROWS, WITHOUT_NULL_ON_ONE_SIDE]
if AT_NIGHT:
    PINNED += [OF_ITSELF, HELD_BACK_BY_NOTHING, OF_ONE_SIDE_OF_A_FULL_JOIN, WITHOUT_ITS_LIKE, OF_NO_NULL]
"""What was once found; by night what takes long, too."""

PLANS = max(5, settings().max_examples // 5)
"""How many are drawn: a thousand by the long profile."""


def test_what_is_said_of_a_query_is_what_happens(spark: SparkSession) -> None:
    said: Counter[str] = Counter()

    @settings(
        max_examples=PLANS,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(promising())
    def holds(drawn: Judged) -> None:
        tables = "".join(TABLE.format(name, name, said) for name, said in zip("rs", drawn.schemes, strict=True))
        written = read(tables + drawn.query).plan(spark)
        root = written if drawn.as_written else optimized(written)
        verdict = judged(root, follow=True)
        told = f"{drawn.query} under {drawn.schemes}"
        said["plans"] += 1
        said["answer"] += verdict.is_enabled
        said["are cleansed"] += verdict.is_cleansed
        if said["plans"] % 50 == 0:
            print(told_so_far(said), flush=True)
        _, kept, out = ran(spark, root, drawn.tuples)
        unended = {one.node for one in verdict.operators if waits_for_more(one)}
        if verdict.is_enabled and not unended:
            assert Counter(out) == answered(spark, drawn), told
        growing = {one.node: one for one in verdict.operators if not one.is_cleansed}
        left = {node for node, left in kept.items() if left and node not in growing}
        assert not {node.label for node in left if unended.isdisjoint(topological(node))}, told
        if not growing:
            return
        if any(kept[node] for node in growing) or any(keeps_any(spark, root, growing, drawn.schemes)):
            said["keep something"] += 1
            return
        # What is asked can be contradictory, so that nothing ever comes to be kept; nor to hold back promises of what
        # is above.
        said["keep nothing, since nothing comes"] += 1
        idle: set[Node] = set()
        for node, one in growing.items():
            if idle.isdisjoint(topological(node)):
                logs = [log for log in one.keeps if log.until.when is When.NEVER]
                assert not any(comes(spark, node, log, drawn.schemes) for log in logs), f"{one.name} in {told}"
            idle.add(node)

    for pinned in PINNED:
        holds = example(pinned)(holds)
    holds()
    print(told_so_far(said))
    assert said["plans"] >= PLANS


def waits_for_more(verdict: OperatorVerdict) -> bool:
    """Whether the last rows of groups wait for others behind them, which never come here."""
    return isinstance(verdict.node.operator, LookAhead) and not verdict.is_cleansed


def told_so_far(said: Counter[str]) -> str:
    """How many plans there were, and what was said of them."""
    return ", ".join(f"{count} {what}" for what, count in said.items())


def keeps_any(spark: SparkSession, root: Node, growing: Collection[Node], schemes: tuple[str, str]) -> Iterator[bool]:
    """Of one fuller input after the other, whether one of these operators keeps anything of it."""
    for tuples in grown(schemes):
        _, after, _ = ran(spark, root, tuples)
        yield any(after[node] for node in growing)


def comes(spark: SparkSession, node: Node, log: Kept, schemes: tuple[str, str]) -> bool:
    """Whether anything comes that an operator would keep in a log, and from its other side what it would wait for.

    What has no moment is in no session; what has no key, or is bounded by null, joins nothing; where all partners are
    so, their predicates say at once that none comes. Of a semi join of a source with itself nobody knows: both sides
    come together, so that each tuple has a partner. What is promised but of null is waited for by null alone.
    """
    operator, side = node.operator, log.model.input
    scans = [{each for each in topological(below) if isinstance(each.operator, Scan)} for below in node.inputs]
    if isinstance(operator, SemiJoin) and scans[0] == scans[1]:
        return False
    if isinstance(operator, Join | SemiJoin):
        key = operator.equi_join.bounded_keys[side]
        ends = [bound.plain for bound in key.bounds if bound.plain is not None]
        own, others = (*operator.equi_join.on[side], *ends), (*key.others, *key.bounded)
        return any_has(spark, node.inputs[side], own, schemes) and any_has(
            spark, node.inputs[1 - side], others, schemes
        )
    keys = tuple(operator.graph.keys(side).values()) if isinstance(operator, MultiwayJoin) else ()
    if isinstance(operator, Session):
        keys = (operator.of,)
    return any_has(spark, node.inputs[side], keys, schemes, promised_but_of_null(log, node.inputs[side].schema))


def promised_but_of_null(log: Kept, schema: Schema) -> list[tuple[str, ...]]:
    """Attributes such that a tuple of a log is forgotten in the end unless one of them is null in it."""
    found: list[tuple[str, ...]] = []
    for grouping, scheme in product(log.until.groupings, log.of.running):
        whole = Scheme(tuple(replace(term, null=True) for term in scheme.terms))
        if grouping.input == log.model.input and is_compact(grouping.attributes, whole, schema, null=grouping.null):
            found.append(tuple(term.attribute for term in scheme.terms if not term.null))
    return found


def any_has(
    spark: SparkSession,
    part: Node,
    names: Sequence[str],
    schemes: tuple[str, str],
    with_null: Sequence[Sequence[str]] = (),
) -> bool:
    """Whether a tuple that a part of a plan puts out has values of these attributes, and null in one of each of others.

    All of the former have values; of the latter's groups there is a null in each.
    """
    places = [part.schema.index(name) for name in names]
    nulls = [[part.schema.index(name) for name in group] for group in with_null]
    out = (whole for tuples in grown(schemes) for whole in ran(spark, part, tuples)[2])
    return any(
        all(whole[at] is not None for at in places) and all(any(whole[at] is None for at in group) for group in nulls)
        for whole in out
    )


SOME: Sequence[Callable[[tuple[Any, ...]], bool]] = (
    lambda _: False,
    lambda _: True,
    lambda whole: whole[0] == whole[1],
    lambda whole: whole[2] == 2,
    lambda whole: whole[1] == 1,
    lambda whole: whole[0] == 0,
    lambda whole: whole[0] == whole[2],
    lambda whole: (3 * (whole[0] or 0) + whole[1] + (whole[2] or 1)) % 4 == 0,
)


def grown(schemes: tuple[str, str]) -> Iterator[Inputs]:
    """Inputs in which tuples of one source, or of both, find no partner, or some, or all."""
    every: list[list[tuple[Any, ...]]] = []
    for said in schemes:
        a = (0, 1, 3) if "a prefix" in said else (0, 1, 3, None)
        every.append([tuple(whole) for whole in product(a, (1, 3), (0, 2, None))])
    for these in SOME:
        beside = [[whole for whole in all_ if these(whole)] for all_ in every]
        yield every[0], beside[1]
        yield beside[0], every[1]


def ran(spark: SparkSession, root: Node, tuples: Inputs) -> tuple[dict[Node, int], dict[Node, int], list[Any]]:
    """What each operator keeps of the tuples, what once all is said that is promised of their values, and what is out.

    Both come in a slice of their own.
    """
    sources = {node.operator.name: node.operator for node in topological(root) if isinstance(node.operator, Scan)}
    first: dict[str, Items] = {}
    second: dict[str, Items] = {}
    for name, whole in zip("rs", tuples, strict=True):
        if name in sources:
            options = sources[name].options
            said = [p for scheme in options.schemes for p in promised(scheme, options.schema)]
            first[name], second[name] = (whole, []), ([], PunctuationSet(options.schema).add_all(said))
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(spark, Path(directory), root)
        out = walk.slice(first).tuples
        before = walk.sizes
        out = [*out, *walk.slice(second).tuples]
        return before, walk.sizes, out


def promised(scheme: Scheme, schema: Schema) -> list[Punctuation]:
    """All punctuations of a scheme on the values that are spoken of, coalesced."""
    places = [schema.index(term.attribute) for term in scheme.terms]
    patterns = [of_term(term, schema) for term in scheme.terms]
    return [Punctuation.at(schema, dict(zip(places, chosen, strict=True))) for chosen in product(*patterns)]


def of_term(term: Term, schema: Schema) -> list[Pattern]:
    domain = schema.attribute(term.attribute).domain
    low, high = SAID
    if term.kind == "prefix":
        return [canonical(Range(None, high, high_closed=True), domain)]
    values = canonical(Range(low, high, True, True), domain)
    return [values, Constant(None)] if domain.nullable else [values]


def answered(spark: SparkSession, drawn: Judged) -> Counter[tuple[Any, ...]]:
    """Spark's own answer over the tuples."""
    schema = Schema.parse("a INT, b INT NOT NULL, c INT")
    for name, rows in zip("rs", drawn.tuples, strict=True):
        found = tuples_of(spark, rows, schema)
        frame = spark.createDataFrame([], schema.ddl()) if found is None else found.frame
        frame.createOrReplaceTempView(name)
    return Counter(tuple(row) for row in spark.sql(drawn.query).collect())
