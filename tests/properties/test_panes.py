"""Windows that overlap, aggregated by panes: each slice says what tuple by tuple it says, and all is Spark's answer.

The moments of the streams are few microseconds, so that punctuations begin and end anywhere in panes and windows.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.refused_in_process import is_refusal
from tests.harness.running import Done, view
from tests.harness.walking import Walk
from tests.oracles import oracle
from tests.properties.test_random_plans import arrived
from tests.properties.test_window_contract import MICRO, MOMENTS, moments
from tests.samples.strategies import Small, SmallSchema, fewer, sliced_streams, small_tuples
from xmlstream.optimizer.insertions import aggregate_panes
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.session.engines import is_in_process
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

TABLE = (
    "CREATE TABLE r (a INT, b {}, c INT) USING punctuated_xml OPTIONS (path 'r.xml', rowTag 'r',"
    " domains 'a 0..2, c 0..3', schemes 'b prefix; a, b prefix; a; c');\n"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEYS = ["{w}", "{w}, a", "a, {w}", "{w}, c", "a, c, {w}"]
AGGREGATES = [
    "count(*)",
    "count(c)",
    "sum(c)",
    "sum(CAST(c AS DECIMAL(5,2)))",
    "avg(c)",
    "min(c)",
    "max(unix_micros(b))",
    "count(*) FILTER (WHERE c > 1)",
    "avg(c) FILTER (WHERE c < 2)",
]


@dataclass(frozen=True, slots=True, repr=False)
class Example:
    """A query, its table, and a stream; the slice after which it restarts.

    `starts` are those of windows around the moments that there are, in microseconds, and null.
    """

    query: str
    starts: list[int | None]
    table: str
    space: SmallSchema
    slices: list[list[Any]]
    restart: int


@st.composite
def examples(draw: st.DrawFn) -> Example:
    nullable = draw(st.booleans())
    small = moments(nullable=nullable)
    table = TABLE.format("TIMESTAMP" if nullable else "TIMESTAMP NOT NULL")
    space = SmallSchema(
        next(iter(read(table + "SELECT * FROM r").tables.values())).schema,
        (
            Small(Domain("INT", low=0, high=2), (0, 1, 2), (0, 1, 2, None)),
            Small(Domain("TIMESTAMP", nullable), small.ends, small.universe),
            Small(Domain("INT", low=0, high=3), (0, 1, 2, 3), (0, 1, 2, 3, None)),
        ),
    )
    slide = draw(st.integers(1, 4))
    size = draw(st.integers(slide + 1, 9))
    offset = draw(st.integers(1 - slide, slide - 1))
    window = f"window(b, '{size} microseconds', '{slide} microseconds', '{offset} microseconds')"
    asked = draw(st.lists(st.sampled_from(AGGREGATES), max_size=3, unique=True))
    items = ", ".join(["unix_micros(window.start) AS s", *(f"{text} AS x{i}" for i, text in enumerate(asked))])
    where = draw(st.sampled_from(["", " WHERE c > 0", " WHERE a IS NOT NULL"]))
    query = f"SELECT {items} FROM r{where} GROUP BY {draw(st.sampled_from(KEYS)).format(w=window)}"
    slices = draw(sliced_streams(space, most=4))
    slices[0] = [*draw(st.lists(small_tuples(space), min_size=3, max_size=8)), *slices[0]]
    around = ((MOMENTS[0] - EPOCH) // MICRO + micros for micros in range(-20, 30))
    starts = [None, *(start for start in around if (start - offset) % slide == 0)]
    return Example(query, starts, table, space, slices, draw(st.integers(0, 3)))


def closed(said: PunctuationSet, example: Example) -> list[int | None]:
    """The starts of windows that are closed. What is said of moments between two of them may differ: there are none."""
    return [s for s in example.starts if said.covers(Punctuation.at(said.schema, {0: Constant(s)}))]


def walked(session: Session, root: Node, example: Example) -> list[Done]:
    """What each slice lets out, the last of which closes the source."""
    schema = example.space.schema
    said = PunctuationSet(schema)
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(session, Path(directory), root)
        found = []
        for i, slice_ in enumerate(example.slices):
            found.append(walk.slice({"r": arrived(said, [slice_])}))
            if i == example.restart:
                walk.restart()
        return [*found, walk.slice({"r": ([], said.add_all([Punctuation.all(schema)]))})]


def answered(session: Session, written: Node, example: Example) -> list[tuple[Any, ...]]:
    """The whole answer: Spark's own; in process, that of the plan as written, of all tuples at once."""
    rows = [item for slice_ in example.slices for item in slice_ if not isinstance(item, Punctuation)]
    if is_in_process(session):
        return [t for done in walked(session, written, replace(example, slices=[rows])) for t in done.tuples]
    view(session, "r", rows, example.space.schema)
    return [tuple(row) for row in session.sql(example.query).collect()]


def test_each_slice_says_the_same_by_panes(session: Session) -> None:
    @settings(
        fewer(3 if is_in_process(session) else 10),
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(examples())
    def holds(example: Example) -> None:
        try:
            written = read(example.table + example.query).plan(session)
        except QueryError as error:
            if not is_refusal(error):
                raise
            return
        expected = answered(session, written, example)
        by_tuples, by_panes = (
            walked(session, root, example) for root in (written, aggregate_panes(optimized(written)))
        )
        assert oracle.same_bag([t for done in by_panes for t in done.tuples], expected), example.query
        told = [PunctuationSet(written.schema) for _ in range(2)]
        for one, other in zip(by_tuples, by_panes, strict=True):
            assert oracle.same_bag(one.tuples, other.tuples), example.query
            assert one.kept == other.kept, example.query
            for of, done in zip(told, (one, other), strict=True):
                of.add_all(done.punctuations)
            one_closed, other_closed = (closed(of, example) for of in told)
            assert one_closed == other_closed, example.query
        items: list[Any] = [item for done in by_panes for item in (*done.tuples, *done.punctuations)]
        assert oracle.first_offence(items) is None, example.query
        assert by_panes[-1].kept == 0

    holds()
