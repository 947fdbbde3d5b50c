"""Plans of random operators as two texts: SQL as Spark has it, and once more in DuckDB's own, written by hand.

DuckDB's text is asked of all tuples at once. It shares no code with what translates expressions for the engine in
process: each template of `test_random_plans` that the two databases do not have in common stands here twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from tests.harness.drawn_rows import insert
from tests.properties.test_random_plans import ABOVE_ONE, ABOVE_TWO, CONDITIONS, DEEPEST, LEAVES, SLICES, SPACE
from tests.samples.strategies import sliced_streams, small_tuples
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.xml_form import PUNCT_NS, write_element

_SESSION = "sum(fresh::INT) OVER (PARTITION BY b ORDER BY a RANGE UNBOUNDED PRECEDING)"
_FRESH = "coalesce(a > lag(a) OVER (PARTITION BY b ORDER BY a) + 1, TRUE)"

OTHERWISE = {
    LEAVES[2]: "SELECT a, b // 2 AS b FROM {} WHERE c IS NULL OR c > 1",
    LEAVES[4]: "SELECT a, b FROM {} AS p SEMI JOIN s USING (c)",
    LEAVES[5]: "SELECT a, x AS b FROM {} AS t, unnest([b, c]) AS u(x) WHERE c IS NULL OR x < 3",
    LEAVES[6]: "SELECT x AS a, b FROM {} AS t LEFT JOIN LATERAL "
    "(SELECT unnest(CASE WHEN a = c THEN []::INT[] ELSE [a, b] END) AS x) ON TRUE",
    ABOVE_ONE[4]: "SELECT min(a) AS a, CAST(count(DISTINCT b) AS INT) AS b FROM ({}) AS p GROUP BY trunc(b / 2)",
    ABOVE_ONE[12]: "SELECT CAST(floor(a / 2) * 2 AS INT) AS a, max(b) AS b FROM ({}) AS p "
    "WHERE a IS NOT NULL GROUP BY floor(a / 2)",
    ABOVE_ONE[13]: "SELECT a, CAST(sum(b) AS INT) AS b FROM ({}) AS p, range(-50, 50) AS steps(i) "
    "WHERE 2 * i + 1 <= b AND b < 2 * i + 4 GROUP BY a, i",
    ABOVE_ONE[14]: f"SELECT max(a) + 1 AS a, b FROM (SELECT a, b, {_SESSION} AS n FROM (SELECT a, b, {_FRESH} AS fresh "
    "FROM ({}) AS p WHERE a IS NOT NULL)) GROUP BY b, n",
    ABOVE_TWO[9]: "SELECT a, b FROM ({}) AS p SEMI JOIN ({}) AS q ON p.a = q.a",
    ABOVE_TWO[10]: "SELECT a, b FROM ({}) AS p ANTI JOIN ({}) AS q ON p.b = q.b AND p.a > q.a",
}
"""The templates that DuckDB has otherwise; all others mean the same in both."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A query in Spark's SQL and in DuckDB's."""

    spark: str
    duckdb: str


def _of(template: str, *inputs: Texts) -> Texts:
    others = OTHERWISE.get(template, template)
    return Texts(template.format(*(each.spark for each in inputs)), others.format(*(each.duckdb for each in inputs)))


@st.composite
def texts(draw: st.DrawFn, depth: int) -> Texts:
    """A query over r and s, whose result has the attributes a and b."""
    if depth == 0:
        name = draw(st.sampled_from("rs"))
        return _of(draw(st.sampled_from(LEAVES)), Texts(name, name))
    kind = draw(st.sampled_from(["one", "two", "where"]))
    if kind == "one":
        return _of(draw(st.sampled_from(ABOVE_ONE)), draw(texts(depth - 1)))
    inner = _of(draw(st.sampled_from(ABOVE_TWO)), draw(texts(depth - 1)), draw(texts(draw(st.integers(0, 1)))))
    if kind == "two":
        return inner
    conditions = draw(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2, unique=True))
    return _of(f"SELECT a, b FROM ({{}}) AS p WHERE ({') AND ('.join(conditions)})", inner)


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """A query; the slices of both streams; and the slice after which it restarts."""

    query: Texts
    streams: list[list[list[Any]]]
    restart: int


@st.composite
def two_streams(draw: st.DrawFn, most: int = SLICES) -> list[list[list[Any]]]:
    """The slices of both streams, in which joins find partners."""
    streams = [draw(sliced_streams(SPACE, most=most)) for _ in range(2)]
    for slices in streams:
        slices[0] = [*draw(st.lists(small_tuples(SPACE), min_size=3, max_size=6)), *slices[0]]
    return streams


@st.composite
def drawn_plans(draw: st.DrawFn) -> Drawn:
    """Queries with slices in which joins find partners."""
    return Drawn(draw(texts(draw(st.integers(1, DEEPEST)))), draw(two_streams()), draw(st.integers(0, 2)))


OF_PLANS = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
"""How plans are drawn: they take long to make, and are not made smaller."""


def document(items: Sequence[Any]) -> str:
    """A document with a slice of a stream."""
    rows = (
        write_element(item, "r")
        if isinstance(item, Punctuation)
        else f"<r>{''.join(f'<{n}>{v}</{n}>' for n, v in zip('abc', item, strict=True) if v is not None)}</r>"
        for item in items
    )
    return f"<rs xmlns:punct='{PUNCT_NS}'>{''.join(rows)}</rs>"


class Answers:
    """A database that is asked of all tuples of streams with these names at once."""

    def __init__(self, names: str = "rs") -> None:
        self._database = duckdb.connect()
        self._database.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name in names:
            self._database.execute(f"CREATE TABLE {name} (a INT, b INT, c INT)")

    def of(self, query: str, streams: Mapping[str, Sequence[Sequence[Any]]]) -> Counter[tuple[Any, ...]]:
        """The tuples that a query answers."""
        for name, slices in streams.items():
            self._database.execute(f"DELETE FROM {name}")
            insert(
                self._database,
                name,
                (item for slice_ in slices for item in slice_ if not isinstance(item, Punctuation)),
            )
        return Counter(self._database.execute(query).fetchall())
