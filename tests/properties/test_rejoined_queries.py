"""A query goes on although its streams are joined in another way: at once, one after the other, or in groups.

Joins of three and four streams are drawn, and for each slice the plan by which it runs. Together they answer what
DuckDB answers of the whole input, each row once. No row comes after a punctuation that matches it. Before the streams
end, as much is closed as by a run that has had the last plan from the beginning, unless joins purge lazily: in which
slices they do depends on when they began.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.properties.drawn_expressions import join_conditions
from tests.properties.plan_answers import OF_PLANS, Answers, document
from tests.properties.test_changed_queries import closed, written
from tests.properties.test_random_plans import ENDS, SPACE
from tests.samples.strategies import sliced_streams, small_tuples
from xmlstream.optimizer.choose_joins import Choice
from xmlstream.optimizer.join_plans import JoinPlan
from xmlstream.punct_ns.errors import StateError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.runtime.change import join_trees
from xmlstream.runtime.change.rejoining import Rejoining

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

LAZY = "/*+ LAZY_PURGE(2) */ "
DRAWN = 600 if AT_NIGHT else 8


@dataclass(frozen=True, slots=True, repr=False)
class Rejoined:
    """A join, the columns of its result, the slices of the streams, and for each slice which plan it runs by."""

    query: str
    names: list[str]
    streams: list[list[list[Any]]]
    plans: list[int]


@st.composite
def rejoined(draw: st.DrawFn) -> Rejoined:
    count = draw(st.integers(3, 4))
    conditions = join_conditions(draw, count, ["=", "<=", "<>"])
    tables = ", ".join(f"{draw(st.sampled_from('rst'))} AS p{i}" for i in range(count))
    every = [f"p{i}.{name} AS {name}{i}" for i in range(count) for name in "abc"]
    columns = every if draw(st.booleans()) else draw(st.lists(st.sampled_from(every), min_size=2, unique=True))
    hint = draw(st.sampled_from(["", "", "", LAZY]))
    streams = [draw(sliced_streams(SPACE, most=4)) for _ in range(3)]
    for slices in streams:
        slices[0] = [*draw(st.lists(small_tuples(SPACE), min_size=3, max_size=5)), *slices[0]]
    return Rejoined(
        f"SELECT {hint}{', '.join(columns)} FROM {tables} WHERE {' AND '.join(conditions)}",
        [column.partition(" AS ")[2] for column in columns],
        streams,
        draw(st.lists(st.integers(0, 11), min_size=4, max_size=4)),
    )


@contextmanager
def planned(which: int) -> Iterator[list[str]]:
    """Has the planner choose one of all safe ways to join, by number; notes those that it has chosen."""
    noted: list[str] = []

    def chosen(self: Choice) -> JoinPlan:
        safe = [*self.safe, *([self.written] if self.written.is_safe else [])]
        plan = safe[which % len(safe)] if safe else self.written
        noted.append(plan.text)
        return plan

    with mock.patch.object(Choice, "chosen", property(chosen)):
        yield noted


class Feed:
    """Three directories that fill: a document of each stream in each slice, and at last the one that closes it."""

    def __init__(self, home: Path, streams: Sequence[Sequence[Sequence[Any]]]) -> None:
        self.home, self.streams, self.sent = home, streams, 0
        self.slices = max(map(len, streams)) + 1
        for name in "rst":
            (home / name).mkdir(parents=True)

    @property
    def is_last(self) -> bool:
        return self.sent == self.slices

    def send(self) -> None:
        for name, slices in zip("rst", self.streams, strict=True):
            items = slices[self.sent] if self.sent < len(slices) else []
            if self.sent == self.slices - 1:
                items = [Punctuation.parse(text, SPACE.schema) for text in ENDS]
            (self.home / name / f"{self.sent}.xml").write_text(document(items))
        self.sent += 1

    def run(self, session: Any, query: str, which: int, state: str = "state", **options: Any) -> str:
        """Runs the query by a plan; returns the plan."""
        tables = "".join(
            f"CREATE TABLE {name} (a INT, b INT NOT NULL, c INT) USING punctuated_xml OPTIONS"
            f" (path '{self.home / name}', rowTag 'r', domains 'a 0..4, b 0..3, c 0..3',"
            " schemes 'a; a, b; b; c');\n"
            for name in "rst"
        )
        sink = f"CREATE TABLE o USING punctuated_xml OPTIONS (path '{self.home / state}-out', rowTag 'row');\n"
        with planned(which) as noted:
            inserts = xs.inserts_from_sql(session, f"{tables}{sink}INSERT INTO o {query};")
            xs.run(inserts, self.home / state, keep_open=True, **options)
        return noted[0] if noted else ""


class Checked:
    """Runs what is drawn, slice by slice, each by its plan, and counts what has become of the changes."""

    def __init__(self, session: Any, home: Path) -> None:
        self._session, self._home = session, home
        self._answers = Answers("rst")
        self.seen: Counter[str] = Counter()

    def __call__(self, drawn: Rejoined) -> None:
        """Runs one.

        Raises:
            AssertionError: Its rows or its punctuations are wrong, or one is missing.
        """
        shutil.rmtree(self._home, ignore_errors=True)
        feed = Feed(self._home, drawn.streams)
        out, domains = self._home / "state-out", {a.name: a.domain for a in SPACE.schema}
        schema = Schema(tuple(Attribute(name, domains[name[0]]) for name in drawn.names))

        def closed_in(directory: Path) -> list[Punctuation]:
            return [Punctuation(schema, p.patterns) for p in closed(directory, drawn.names)]

        which, plan = 0, ""
        while not feed.is_last:
            feed.send()
            before = closed_in(out) if out.exists() else []
            now = drawn.plans[feed.sent % len(drawn.plans)]
            try:
                took = feed.run(self._session, drawn.query, now, change=True)
                self.seen["the same" if took in (plan, "") else "another" if plan else "first"] += 1
                which, plan = now, took
            except StateError as refused:
                self.seen[re.sub(r".*before: .*?: |\n(.|\n)*|\d+", "", f"{refused}")[:60]] += 1
                feed.run(self._session, drawn.query, which)
            rows = written(out, drawn.names, feed.sent - 1)
            assert not [(row, str(p)) for row in rows for p in before if p.matches(row)], drawn.query
            if feed.sent == feed.slices - 1 and LAZY not in drawn.query:
                feed.run(self._session, drawn.query, which, "alone")
                known = PunctuationSet(schema, closed_in(out))
                assert not [str(p) for p in closed_in(self._home / "alone-out") if not known.covers(p)], drawn.query
        whole = dict(zip("rst", drawn.streams, strict=True))
        assert written(out, drawn.names) == self._answers.of(drawn.query.replace(LAZY, ""), whole)


def closing(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, SPACE.schema) for text in texts]


SELECTED = Rejoined(
    "SELECT p0.c AS c0, p1.a AS a1, p0.b AS b0, p2.a AS a2, p0.a AS a0 FROM t AS p0, r AS p1, r AS p2"
    " WHERE p1.b = p0.a AND p2.b = p1.b AND p1.b <= p0.a AND p0.a = p2.c",
    ["c0", "a1", "b0", "a2", "a0"],
    [[[(1, 0, 1), (0, 2, 1), (3, 0, 1), (0, 0, 2)], [(4, 0, 3), (4, 2, 0)]], [[]], [[(2, 0, 2), (0, 3, 1)]]],
    [3, 4, 10, 4],
)
"""An input selects by an equality of two of its attributes only where the planner has not left that to a join."""

EVERY = [f"p{i}.{name} AS {name}{i}" for i in range(3) for name in "abc"]
DUE = Rejoined(
    f"SELECT {', '.join(EVERY)} FROM r AS p0, t AS p1, r AS p2 WHERE p1.b = p0.a AND p2.a = p0.b AND p1.a <= p0.a",
    [column.partition(" AS ")[2] for column in EVERY],
    [
        [[(1, 3, 1), (None, 1, 0), (4, 0, 0), (1, 3, 3), (3, 1, 3), *closing("<*, *, *>")], []],
        [[], [], [], []],
        [
            [(3, 0, 0), (0, 0, None), (2, 0, 2), (1, 1, 2), (4, 2, None)],
            [(None, 0, 1), (3, 1, None), (1, 3, 2), (None, 1, 2), (None, 3, 1), (0, 1, None), (4, 3, 0)],
        ],
    ],
    [7, 4, 2, 1],
)
"""What one way to join holds back, and another does not, is sent after the change."""

PINNED = {"an input selects": SELECTED, "a punctuation is due": DUE}


@pytest.mark.parametrize("name", PINNED)
def test_what_was_found_once_goes_on(name: str, in_process: InProcessSession, tmp_path: Path) -> None:
    checked = Checked(in_process, tmp_path / "home")
    checked(PINNED[name])
    assert checked.seen["another"]


def test_a_query_goes_on_however_its_streams_are_joined(in_process: InProcessSession, tmp_path: Path) -> None:
    checked = Checked(in_process, tmp_path / "home")

    @settings(OF_PLANS, max_examples=DRAWN)
    @given(rejoined())
    def holds(drawn: Rejoined) -> None:
        checked(drawn)

    holds()
    print(dict(checked.seen))
    assert checked.seen["another"] >= DRAWN // 4


def no_condition(patch: pytest.MonkeyPatch) -> None:
    """Kept tuples of an input are not selected as the new plan selects."""
    patch.setattr(join_trees, "_back", lambda *_: "true")


def nothing_is_due(patch: pytest.MonkeyPatch) -> None:
    """What the old joins have held back is taken for sent."""
    patch.setattr(Rejoining, "_has_due", staticmethod(lambda *_: None))


@pytest.mark.parametrize(
    ("fault", "name"), [(no_condition, "an input selects"), (nothing_is_due, "a punctuation is due")]
)
def test_a_fault_in_what_is_moved_is_noticed(
    fault: Callable[[pytest.MonkeyPatch], None],
    name: str,
    in_process: InProcessSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        Checked(in_process, tmp_path / "home")(PINNED[name])
