"""What a stopped query waits for, read from its checkpoint: whose word is missing, of which groups and tuples."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.sealed_files import unseal
from xmlstream.diagnosis.inspection import inspect
from xmlstream.diagnosis.report import WaitingReport, in_words
from xmlstream.monitor.closed_map import ClosedMap
from xmlstream.operators.expressions.constant_evaluation import evaluated
from xmlstream.plan.written_plan import PLAN_FILE, decoded
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.punct_ns.image import Function
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, made_whole
from xmlstream.session.engines import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SENSOR = "(sid STRING, hour INT, currtmp DOUBLE)"


def said(report: WaitingReport, seconds: int = 40) -> list[str]:
    """The report in words, so long after its last slice; without its first line, nor the numbers of slices."""
    lines = in_words(report, report.at.time + timedelta(seconds=seconds)).splitlines()[1:]
    return [re.sub(r"\d+ s ago|\d+ s or more ago", "a while ago", line) for line in lines]


class Stream:
    """A directory of documents, each a piece of a stream: `S1 5 70.5` is a tuple, `<S1 5 *>` a punctuation."""

    def __init__(self, directory: Path, names: str = "sid hour currtmp") -> None:
        directory.mkdir(parents=True)
        self._directory, self._names, self._count = directory, names.split(), 0

    def comes(self, *items: str) -> None:
        """One more document."""
        self._count += 1
        written = "".join(map(self._element, items))
        text = f"<r xmlns:punct='{PUNCT_NS}'>{written}</r>"
        (self._directory / f"{self._count:03}.xml").write_text(text)

    def _element(self, item: str) -> str:
        tag = "punct:t" if item.startswith("<") else "t"
        leaves = zip(self._names, item.strip("<>").split(), strict=True)
        return f"<{tag}>{''.join(f'<{name}>{value}</{name}>' for name, value in leaves)}</{tag}>"


def declared(tmp_path: Path, columns: str = SENSOR, **schemes: str) -> str:
    return "".join(
        f"CREATE TABLE {name} {columns} USING punctuated_xml OPTIONS (path '{tmp_path / name}', rowTag 't', {said});\n"
        for name, said in schemes.items()
    )


def ran(spark: SparkSession, tmp_path: Path, query: str) -> Path:
    """The checkpoint of the query after one more run."""
    xs.from_sql(spark, query).run(tmp_path / "out", tmp_path / "state", keep_open=True)
    return tmp_path / "state"


def by(spark: SparkSession) -> object:
    def function(expression: str, x: Attribute, y: Domain, local: bool) -> Function:
        return evaluated(expression, x, y, engine_of(spark), local=local)

    return function


@pytest.mark.spark
def test_of_each_group_it_is_told_who_must_say_what_and_who_has_said_it_when(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = declared(tmp_path, s1="schemes 'hour'", s2="schemes 'hour'")
    query = f"{tables}SELECT hour, max(currtmp) AS top FROM (SELECT * FROM s1 UNION ALL SELECT * FROM s2) GROUP BY hour"
    s1, s2 = (Stream(tmp_path / name) for name in ("s1", "s2"))
    s1.comes("S1 5 70", "S1 6 71", "<* 5 *>")
    s2.comes("S2 5 72")
    with pytest.raises(StateError, match="there is no checkpoint in"):
        inspect(tmp_path / "state")
    state = ran(spark, tmp_path, query)
    s2.comes("S2 7 70", "<* 4 *>")
    ran(spark, tmp_path, query)
    # A run that goes on from here knows who spoke last in which slice.
    closed = ClosedMap.of(decoded(unseal(state / PLAN_FILE)))
    closed.add(made_whole(CommitLog(state / "commits").records()) or Commit(0))
    assert [(row.input, row.last_sent and row.last_sent.slice) for row in closed.compared()[0].rows] == [
        ("s1", 0),
        ("s2", 1),
    ]
    before = sorted((path, path.stat().st_mtime_ns) for path in state.rglob("*"))
    report = inspect(state)
    assert said(report) == [
        "group_by: 3 groups wait, the oldest since slice 0, a while ago; none has left yet",
        "  hour=5 waits since slice 0, a while ago, for s2: <*, 5, *>, which promises hour;"
        " s1 sent it a while ago, in slice 0",
        "  hour=6 waits since slice 0, a while ago, for s1: <*, 6, *>, which promises hour;"
        " s2: <*, 6, *>, which promises hour",
        "  hour=7 waits since slice 1, a while ago, for s1: <*, 7, *>, which promises hour;"
        " s2: <*, 7, *>, which promises hour",
    ]
    promises = ", which promises hour"
    asked = {
        "5": f"s2: <*, 5, *>{promises}; s1 sent it a while ago, in slice 0",
        "[4,5]": f"s1: <*, 4, *>{promises}; s2: <*, 5, *>{promises}",
        "6": f"s1: <*, 6, *>{promises}; s2: <*, 6, *>{promises}",
    }
    for hour, answer in asked.items():
        assert said(inspect(state, {"HOUR": hour}))[0] == f"HOUR={hour} is not final: it waits for {answer}"
    assert said(inspect(state, {"hour": "9"}))[1] == "  no operator holds a row of it yet"
    assert said(inspect(state, {"hour": "5"}))[1] == "  group_by holds 1 row of it"
    assert sorted((path, path.stat().st_mtime_ns) for path in state.rglob("*")) == before
    s1.comes("<* 6 *>")
    s2.comes("<* 5 *>", "<* 6 *>", "S2 7 71")
    ran(spark, tmp_path, query)
    assert said(inspect(state, {"hour": "5"})) == ["hour=5 is out, and final since slice 2, a while ago."]
    report = inspect(state)
    # The oldest are gone, and a group is as old as its first tuple.
    assert said(report)[0] == (
        "group_by: 1 group waits, since slice 1, a while ago; the last one left in slice 2, a while ago"
    )
    told = json.loads(json.dumps(report.json()))
    (waits,) = told["waits"]
    assert [since["slice"] for since in (waits["since"], waits["examples"][0]["since"])] == [1, 1]
    assert waits["examples"][0]["needs"][1] == {
        "source": "s2", "wanted": "<*, 7, *>", "missing": ["<*, 7, *>"], "sent": None, "promised": ["hour"],
        "rule": None, "holds": None,
    }  # fmt: skip
    for key, refusal in (({"hours": "5"}, "no result has the attributes hours"), ({"hour": "x"}, "cannot be read")):
        with pytest.raises(UsageError, match=refusal):
            inspect(state, key)


@pytest.mark.spark
def test_rules_of_punctuate_joins_and_computed_columns_are_followed_back(spark: SparkSession, tmp_path: Path) -> None:
    tables = declared(
        tmp_path,
        slow="schemes '', punctuate 'order of hour, per sid'",
        names="schemes 'sid'",
    )
    query = (
        f"{tables}SELECT slow.sid, slow.hour DIV 10 AS ten, count(names.sid) AS n"
        " FROM slow LEFT JOIN names ON slow.sid = names.sid GROUP BY 1, 2"
    )
    slow, named = (Stream(tmp_path / name) for name in ("slow", "names"))
    slow.comes("S1 5 70", "S1 25 71", "S2 8 70", "S3 9 70", "S3 21 70")
    named.comes("S1 1 1", "<S1 * *>", "<S2 * *>")
    state = ran(spark, tmp_path, query)
    report = inspect(state, functions=by(spark))  # type: ignore[arg-type]
    lines = said(report)
    assert lines[0].startswith("join: 2 tuples of the left side wait")
    assert lines[1] == "  sid=S3 waits since slice 0, a while ago, for names: <S3, *, *>, which promises sid"
    (groups,) = (waits for waits in report.waits if waits.operator.startswith("group_by"))
    assert groups.count == 2
    needs = {e.key["sid"] + e.key["ten"]: [(n.source, n.missing, n.rule) for n in e.needs if n.missing]
             for e in groups.examples}  # fmt: skip
    assert needs == {
        "S12": [("punctuate", ("<S1, [25,29], *>",), "by order of hour per sid")],
        "S20": [("punctuate", ("<S2, [8,9], *>",), "by order of hour per sid")],
    }


@pytest.mark.spark
def test_windows_and_sessions_wait_for_the_moments_that_are_in_them(spark: SparkSession, tmp_path: Path) -> None:
    tables = declared(tmp_path, "(sid STRING, ts TIMESTAMP)", s="schemes 'ts prefix'")
    for name, query, key, missing in (
        (
            "hopping",
            "SELECT window.start AS b, count(*) AS n FROM s GROUP BY window(ts, '10 minutes', '5 minutes')",
            "b=2026-01-01T10:15:00Z",
            "<*, [2026-01-01T10:22:00Z,2026-01-01T10:24:59.999999Z]>",
        ),
        (
            "sessions",
            "SELECT sid, count(*) AS n FROM s GROUP BY sid, session_window(ts, '5 minutes')",
            None,
            "<S1, [2026-01-01T10:22:00Z,2026-01-01T10:26:00Z]>",
        ),
    ):
        there = tmp_path / name
        stream = Stream(there / "s", "sid ts")
        stream.comes("S1 2026-01-01T10:21:00Z", "<* (,2026-01-01T10:22:00Z)>")
        text = tables.replace(str(tmp_path), str(there)) + query
        state = ran(spark, there, text)
        lines = said(inspect(state, dict([key.split("=")]) if key else None))
        assert any(f" for s: {missing}" in line for line in lines), lines
        low, high = re.findall(r"2026[^,\])]*", missing)
        stream.comes(f"<* [{low},{high}]>")
        ran(spark, there, text)
        assert inspect(state, {"b": "2026-01-01T10:15:00Z"}).answer.out if key else not inspect(state).waits  # type: ignore[union-attr]


def test_there_is_a_word_for_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there is no checkpoint in"):
        inspect(tmp_path)
    (tmp_path / "query.json").write_text("")
    with pytest.raises(StateError, match="has no plan"):
        inspect(tmp_path)
