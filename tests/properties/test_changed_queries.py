"""A changed query goes on where the one before was: together they answer what the new one does, each group once.

Plans are those of `plan_answers`, changes are drawn: a select list or a condition above, another query altogether,
schemes, domains. Where a change is refused, nothing may have happened. The definition is DuckDB's answer over the whole
input, less what the new query has answered by itself over the beginning.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.properties.plan_answers import OF_PLANS, Answers, Texts, document, texts, two_streams
from tests.properties.test_random_plans import CONDITIONS, DEEPEST, ENDS, SPACE
from xmlstream.punct_ns.errors import QueryError, StateError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.closings import reader_of

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

DRAWN = 600 if AT_NIGHT else 5

ABOVE = {
    "the same": "SELECT a, b FROM ({}) AS p",
    "renamed": "SELECT a AS x, b AS y FROM ({}) AS p",
    "fewer columns": "SELECT a FROM ({}) AS p",
    "another order": "SELECT b, a FROM ({}) AS p",
    "one more": "SELECT a, b, a + b AS c FROM ({}) AS p",
    **{f"where {condition}": f"SELECT a, b FROM ({{}}) AS p WHERE {condition}" for condition in CONDITIONS},
}
"""What may stand above a query."""

DECLARED = {
    "the same": "domains 'a 0..4, b 0..3, c 0..3', schemes 'a; a, b; b'",
    "fewer schemes": "domains 'a 0..4, b 0..3, c 0..3', schemes 'a; b'",
    "wider domains": "domains 'a 0..9, b 0..7, c 0..9', schemes 'a; a, b; b'",
    "renamed": "domains 'x 0..4, b 0..3, c 0..3', schemes 'x; x, b; b', path.x 'a'",
}


@dataclass(frozen=True, slots=True, repr=False)
class Change:
    """A query, another one, and what both declare; the slices of both streams, and the one before which it changes.

    `kind` is the same if nothing but what is declared differs. If it is `added`, the old query goes on beside the new.
    """

    kind: str
    before: Texts
    after: Texts
    declared: str
    streams: list[list[list[Any]]]
    at: int
    added: bool = False


@st.composite
def changes(draw: st.DrawFn) -> Change:
    streams = draw(two_streams(3))
    inner = draw(texts(draw(st.integers(1, DEEPEST))))
    one, other = draw(st.sampled_from([*ABOVE])), draw(st.sampled_from([*ABOVE]))
    other_inner, declared = inner, "the same"
    match draw(st.sampled_from(["above", "above", "declared", "another"])):
        case "another":
            other_inner = draw(texts(draw(st.integers(1, DEEPEST))))
        case "declared":
            declared, other = draw(st.sampled_from([*DECLARED])), one
    return Change(
        "the same" if (one, inner) == (other, other_inner) else "above" if inner == other_inner else "another",
        Texts(ABOVE[one].format(inner.spark), ABOVE[one].format(inner.duckdb)),
        Texts(ABOVE[other].format(other_inner.spark), ABOVE[other].format(other_inner.duckdb)),
        declared,
        streams,
        draw(st.integers(1, 2)),
        draw(st.booleans()) and declared == "the same",
    )


def tables(directory: Path, declared: str) -> str:
    name_of, first, view = "{0}", "a", ""
    if declared == "renamed":
        name_of, first, view = "other_{0}", "x", "CREATE VIEW {0} AS SELECT x AS a, b, c FROM other_{0};\n"
    return "".join(
        f"CREATE TABLE {name_of.format(name)} ({first} INT, b INT NOT NULL, c INT) USING punctuated_xml"
        f" OPTIONS (path '{directory / name}', rowTag 'r', {DECLARED[declared]});\n{view.format(name)}"
        for name in "rs"
    )


class Feed:
    """Two directories that fill: a document of each stream in each slice, and at last the one that closes it."""

    def __init__(self, home: Path, streams: Sequence[Sequence[Sequence[Any]]]) -> None:
        self.home, self.streams, self.sent = home, streams, 0
        self.slices = max(map(len, streams)) + 1
        for name in "rs":
            (home / name).mkdir(parents=True)

    def send(self) -> None:
        for name, slices in zip("rs", self.streams, strict=True):
            items = slices[self.sent] if self.sent < len(slices) else []
            if self.sent == self.slices - 1:
                items = [Punctuation.parse(text, SPACE.schema) for text in ENDS]
            (self.home / name / f"{self.sent}.xml").write_text(document(items))
        self.sent += 1

    def run(self, session: Any, queries: dict[str, str], declared: str, state: str, **options: Any) -> None:
        sinks = "".join(
            f"CREATE TABLE {out} USING punctuated_xml OPTIONS (path '{self.home / out}', rowTag 'row');\n"
            f"INSERT INTO {out} {query};\n"
            for out, query in queries.items()
        )
        inserts = xs.inserts_from_sql(session, tables(self.home, declared) + sinks)
        xs.run(inserts, self.home / state, keep_open=True, **options)


def names_of(query: str) -> list[str]:
    """The columns of a query of `ABOVE`."""
    return re.findall(r"(?:AS )?(\w+)(?:,| FROM)", query.partition(" FROM (")[0] + " FROM")


def written(directory: Path, names: Sequence[str], since: int = 0) -> Counter[tuple[Any, ...]]:
    """The tuples of the documents in a directory from a slice on."""
    found: Counter[tuple[Any, ...]] = Counter()
    for path in sorted(directory.glob("slice-*.xml")):
        if int(path.stem.removeprefix("slice-")) >= since:
            for element in etree.parse(path).getroot().iterfind("row"):
                cells = {child.tag: child.text for child in element}
                found[tuple(None if cells.get(n) is None else int(str(cells[n])) for n in names)] += 1
    return found


def closed(directory: Path, names: Sequence[str]) -> list[Punctuation]:
    """The punctuations in the documents of a directory: what is final."""
    schema = Schema.of(**dict.fromkeys(names, "INT"))
    return [Punctuation.parse(text, schema) for _, text in reader_of(str(directory))().punctuations]


def test_a_changed_query_answers_what_the_new_one_would_have_answered_from_then_on(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()
    answers = Answers()

    @settings(OF_PLANS, max_examples=DRAWN)
    @given(changes())
    def holds(change: Change) -> None:
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        feed = Feed(home, change.streams)
        before, new = {"out": change.before.spark}, {"new": change.after.spark}
        after = {**before, **new} if change.added else new
        alone: Counter[Any] = Counter()
        names = names_of(change.after.spark)
        try:
            for _ in range(change.at):
                feed.send()
                feed.run(in_process, before, "the same", "state")
                feed.run(in_process, new, change.declared, "alone")
            alone = written(home / "new", names)
            shutil.rmtree(home / "new")
        except QueryError as error:
            if not is_refusal(error):
                raise
            seen["refused by the engine"] += 1
            return
        was = {path.name: path.read_bytes() for path in (home / "state" / "commits").iterdir()}
        feed.send()
        try:
            feed.run(in_process, after, change.declared, "state", change=True)
        except StateError:
            assert {path.name: path.read_bytes() for path in (home / "state" / "commits").iterdir()} == was
            feed.run(in_process, before, "the same", "state")
            seen[f"{change.kind}: refused"] += 1
            return
        while feed.sent < feed.slices:
            feed.send()
            feed.run(in_process, after, change.declared, "state")
        whole = dict(zip("rs", change.streams, strict=True))
        texts_ = f"{change.before.spark}\n{change.after.spark}"
        answered, found = answers.of(change.after.duckdb, whole), written(home / "new", names)
        seen["taken over"] += 1
        if change.added:
            assert written(home / "out", names_of(change.before.spark)) == answers.of(change.before.duckdb, whole), (
                texts_
            )
            since = answers.of(change.after.duckdb, {name: slices[change.at :] for name, slices in whole.items()})
            how = "with state" if found == answered - alone else "from then on" if found == since else "in part"
            seen[f"added, {how}"] += 1
        else:
            seen[f"{change.kind}: goes on"] += 1
            if change.kind == "the same":
                assert written(home / "out", names) + found == answered, texts_
                final = closed(home / "out", names)
                assert not [row for row in found for p in final if p.matches(row)], texts_
            else:
                assert found == answered - alone, texts_

    holds()
    print(dict(seen))
    assert seen["taken over"] >= DRAWN // 8


RULES = ["order of hour", "order of hour, slack 1", "order of hour, slack 3", "order of hour, per sid, slack 1", ""]


@st.composite
def reports(draw: st.DrawFn) -> list[list[tuple[int, int]]]:
    """Reports of two sensors in three documents, roughly in order."""
    hour = st.integers(0, 4)
    return [[(draw(st.integers(1, 2)), 3 * n + draw(hour)) for _ in range(draw(st.integers(1, 6)))] for n in range(3)]


def test_under_another_rule_each_group_is_answered_once_and_each_tuple_counted_once_or_set_aside(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=DRAWN, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(reports(), st.permutations(RULES))
    def holds(documents: list[list[tuple[int, int]]], rules: list[str]) -> None:
        home = tmp_path / str(len(list(tmp_path.iterdir())))
        (home / "in").mkdir(parents=True)
        for number, reports_ in enumerate(documents):
            rows = "".join(f"<t><sid>{sid}</sid><hour>{hour}</hour></t>" for sid, hour in reports_)
            (home / "in" / f"{number}.xml").write_text(f"<s>{rows}</s>")
            rule = rules[min(number, 1)]
            punctuate = f", punctuate '{rule}'" if rule else ""
            table = (
                "CREATE TABLE report (sid INT, hour INT) USING punctuated_xml OPTIONS"
                f" (path '{home}/in', rowTag 't', schemes '', domains 'sid 1..2', ungrammatical 'divert'{punctuate});\n"
                f"CREATE TABLE counted USING punctuated_xml OPTIONS (path '{home}/out', rowTag 'row');\n"
                "INSERT INTO counted SELECT hour, count(*) AS n FROM report GROUP BY hour;"
            )
            inserts = xs.inserts_from_sql(in_process, table)
            xs.run(inserts, home / "state", change=number == 1, keep_open=number < 2)
        found = written(home / "out", ["hour", "n"])
        letters = [line for path in (home / "out").glob("_dead_letters/*") for line in path.read_text().splitlines()]
        seen[f"{len(letters)} set aside"] += 1
        hours = Counter(hour for hour, _ in found.elements())
        assert set(hours.values()) == {1}, f"{rules[:2]}: {documents}"
        sent = sum(map(len, documents))
        assert sum(n for _, n in found.elements()) + len(letters) == sent, f"{rules[:2]}: {documents}"

    holds()
    print(dict(seen))
    assert len(seen) > 1
