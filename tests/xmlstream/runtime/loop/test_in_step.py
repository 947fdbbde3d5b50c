"""Sources in step: which of joined or merged sources gets no bytes in the next slice, and what is kept by that."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.xmlstream.runtime.loop_run import ROOT, Listed, rows
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.domain import Cut
from xmlstream.runtime.loop.in_step import PATIENCE, InStep, axes
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

TABLE = """
CREATE TABLE {name} (h INT, v INT) USING punctuated_xml
OPTIONS (path '{path}', rowTag 'row', schemes 'h', maxBytesPerSlice '{bytes}');
"""
UNION = "SELECT h, count(*) AS n FROM (SELECT * FROM a UNION ALL SELECT * FROM b UNION ALL SELECT * FROM c) GROUP BY h;"
THREE = "SELECT a.h, count(*) AS n FROM a JOIN b ON a.h = b.h JOIN c ON a.h = c.h GROUP BY a.h;"
JOIN = "SELECT a.h, count(*) AS n FROM a JOIN b ON a.h = b.h GROUP BY a.h;"
NAMES = ("a", "b", "c")


def in_step(query: str, names: str, cuts: dict[str, Cut | None]) -> InStep:
    """What finds the sources of a query that are ahead, whose closed hours reach the values in `cuts`, now or later."""
    tables = "".join(TABLE.format(name=name, path=f"{name}.xml", bytes="4k") for name in names)
    return InStep(read(tables + query).sketch(), lambda name, attribute: cuts[name] if attribute == "h" else None)


def test_the_source_that_was_ahead_a_slice_before_waits() -> None:
    cuts: dict[str, Cut | None] = {"a": 1, "b": 10}
    steps = in_step(JOIN, "ab", cuts)
    assert steps.ahead({"a", "b"}) == set()
    cuts.update(a=2, b=20)
    assert steps.ahead({"a", "b"}) == {"b"}
    for reached in range(3, 20):
        cuts.update(a=reached)
        assert steps.ahead({"a", "b"}) == {"b"}
    cuts.update(a=21)
    assert steps.ahead({"a", "b"}) == set()


def test_sources_of_one_pace_are_read_together() -> None:
    cuts: dict[str, Cut | None] = {"a": 0, "b": 0}
    steps, drawn = in_step(JOIN, "ab", cuts), Random(5)
    for number in range(100):
        cuts.update(a=10 * number + drawn.randrange(9), b=10 * number + drawn.randrange(9))
        assert steps.ahead({"a", "b"}) == set()


@pytest.mark.parametrize(
    ("a", "waiting"),
    [(None, {"a", "b"}), (1, {"a", "b"}), (1, {"b"})],
    ids=["closed nothing", "closes nothing more", "has no backlog"],
)
def test_none_waits_for_a_source_that(a: int | None, waiting: set[str]) -> None:
    cuts: dict[str, Cut | None] = {"a": a, "b": 10}
    steps = in_step(JOIN, "ab", cuts)
    held = []
    for number in range(20):
        cuts.update(b=10 + number)
        held.append(steps.ahead(waiting))
    assert not any(held[PATIENCE + 1 :])


def test_of_three_merged_sources_the_slowest_is_waited_for() -> None:
    cuts: dict[str, Cut | None] = {"a": 5, "b": 50, "c": 500}
    steps = in_step(" UNION ALL ".join(f"SELECT h, v FROM {name}" for name in NAMES) + ";", "abc", cuts)
    steps.ahead(set(NAMES))
    cuts.update(a=6, b=60, c=600)
    assert steps.ahead(set(NAMES)) == {"b", "c"}
    cuts.update(a=55)
    assert steps.ahead(set(NAMES)) == {"b", "c"}
    cuts.update(a=65)  # b is at 60 since it waited, and is what c waits for
    assert steps.ahead(set(NAMES)) == {"c"}


def test_attributes_that_no_operator_makes_one_are_not_compared() -> None:
    cuts: dict[str, Cut | None] = {"a": 1, "b": 10}
    steps = in_step("SELECT a.h, b.h AS other FROM a JOIN b ON a.v = b.v;", "ab", cuts)
    for number in range(9):
        cuts.update(a=number, b=100 * number)
        assert steps.ahead({"a", "b"}) == set()


def written(path: Path, name: str, rows: int, *, hours: int = 60, ends: bool = True) -> None:
    drawn = Random(rows)
    lines = ["<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"]
    for hour in range(hours):
        lines += (f"<row><h>{hour}</h><v>{drawn.randrange(9)}</v></row>" for _ in range(rows))
        lines.append(f"<p:row><h>{hour}</h></p:row>")
    (path / f"{name}.xml").write_text("\n".join(lines) + ("\n</r>" if ends else "\n<row><h>"), encoding="utf-8")


BY_ORDER = TABLE.replace("schemes 'h'", "punctuate 'order of h'")


def answered(
    session: Session, path: Path, query: str = JOIN, names: str = "ab", table: str = TABLE
) -> tuple[list[dict[str, object]], list[int]]:
    """The answers of a query over these documents, in order; and how many tuples each slice left."""
    tables = "".join(table.format(name=name, path=path / f"{name}.xml", bytes="4k") for name in names)
    metrics = path / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    xs.from_sql(session, tables + query).run(path / "out.parquet", metrics=metrics, overwrite=True)
    lines = metrics.read_text(encoding="utf-8").splitlines()
    kept = [sum(operator["kept"] for operator in json.loads(line)["operators"]) for line in lines]
    found = pq.read_table(path / "out.parquet").to_pylist()
    return sorted(found, key=str), kept


@pytest.mark.parametrize("table", [TABLE, BY_ORDER])
def test_of_files_that_differ_tenfold_the_smaller_waits_and_is_not_kept(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    written(tmp_path, "a", rows=100)
    written(tmp_path, "b", rows=10)
    found, kept = answered(in_process, tmp_path, table=table)
    monkeypatch.setattr(InStep, "ahead", lambda self, waiting: frozenset())
    as_before, kept_before = answered(in_process, tmp_path, table=table)
    assert [row["n"] for row in found] == [1000] * 60
    assert found == as_before
    assert max(kept) < max(kept_before) / 2
    assert sum(kept) / len(kept) < sum(kept_before) / len(kept_before) / 2


def test_what_waits_is_read_when_the_other_source_has_but_a_piece_of_an_item(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    written(tmp_path, "a", rows=100, hours=20, ends=False)
    written(tmp_path, "b", rows=10, hours=40)
    with pytest.raises(xs.InputError, match="Premature end of data"):
        answered(in_process, tmp_path)
    written(tmp_path, "a", rows=100, hours=20)
    found, _ = answered(in_process, tmp_path)
    assert [row["n"] for row in found] == [1000] * 20


@settings(max_examples=6 if not AT_NIGHT else 200, deadline=None)
@given(
    rows=st.lists(st.integers(1, 60), min_size=3, max_size=3),
    hours=st.lists(st.integers(1, 30), min_size=3, max_size=3),
    query=st.sampled_from([JOIN, UNION, THREE]),
    table=st.sampled_from([TABLE, BY_ORDER]),
)
def test_answers_are_the_same_whoever_waits(
    in_process: InProcessSession,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[int],
    hours: list[int],
    query: str,
    table: str,
) -> None:
    path = tmp_path_factory.mktemp("in-step")
    for name, many, until in zip(NAMES, rows, hours, strict=True):
        written(path, name, rows=many, hours=until)
    names = "ab" if query == JOIN else "abc"
    found, _ = answered(in_process, path, query, names, table)
    expected = Counter[int]()
    for hour in range(max(hours)):
        each = [many if hour < until else 0 for many, until in zip(rows, hours, strict=True)]
        expected[hour] = {JOIN: each[0] * each[1], UNION: sum(each), THREE: each[0] * each[1] * each[2]}[query]
    assert {row["h"]: row["n"] for row in found} == {hour: n for hour, n in expected.items() if n}


def test_none_waits_for_a_source_whose_input_fits_in_a_slice(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(f"{ROOT}{rows(0, 10)}</r>", encoding="utf-8")
    (tmp_path / "b.xml").write_text(f"{ROOT}{rows(0, 1000)}</r>", encoding="utf-8")
    run, asked = Listed(tmp_path, "a.xml", "b.xml"), list[set[str]]()

    def ahead(waiting: Collection[str]) -> Collection[str]:
        asked.append(set(waiting))
        return ()

    run.reader = run.loop._reader = SourcesReader(run.reader.sources, ahead=ahead)
    assert sorted(run.run()) == sorted([*range(10), *range(1000)])
    assert asked[0] == {"b"}
    assert asked[-1] == set()


BELOW = {
    "where": "SELECT * FROM t WHERE v > 1",
    "rename": "SELECT x, v + 1 AS q FROM t",
    "distinct": "SELECT DISTINCT x, k FROM t",
    "group": "SELECT x, max(v) AS m FROM t GROUP BY x",
    "having": "SELECT x, max(v) AS m FROM t GROUP BY x HAVING max(v) > 1",
    "rank": "SELECT * FROM (SELECT x, v, row_number() OVER (PARTITION BY x ORDER BY ts) AS r FROM t) WHERE r = 1",
    "lag": "SELECT x, lag(v) OVER (PARTITION BY x ORDER BY ts) AS l FROM t",
    "sum over": "SELECT x, sum(v) OVER (PARTITION BY x ORDER BY ts) AS l FROM t",
    "explode": "SELECT x, tag FROM t LATERAL VIEW explode(tags) e AS tag",
    "semi": "SELECT x FROM t WHERE k IN (SELECT k FROM w)",
    "anti": "SELECT x FROM t WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.k = t.k)",
    "left": "SELECT t.x, w.v FROM t LEFT JOIN w ON t.k = w.k",
    "right": "SELECT t.x, w.v FROM w RIGHT JOIN t ON t.k = w.k",
    "inner": "SELECT t.x, w.v FROM t JOIN w ON t.k = w.k",
    "static": "SELECT t.x, c.name FROM t JOIN c USING (k)",
    "union": "SELECT x, v FROM t UNION ALL SELECT x, v FROM w",
    "union d": "SELECT x, v FROM t UNION SELECT x, v FROM w",
    "except": "SELECT x FROM t EXCEPT SELECT x FROM w",
    "intersect": "SELECT x FROM t INTERSECT SELECT x FROM w",
    "session": "SELECT x, count(*) AS n FROM t GROUP BY x, session_window(ts, '5 minutes')",
    "window": "SELECT x, count(*) AS n FROM t GROUP BY x, window(ts, '5 minutes')",
    "scalar": "SELECT x, (SELECT max(v) FROM w WHERE w.k = t.k) AS m FROM t",
    "asof": "SELECT t.x, w.v FROM t ASOF JOIN w MATCH_CONDITION (t.ts >= w.ts) ON t.k = w.k",
    "now": "SELECT x, current_timestamp() AS came FROM t",
    "qualify": "SELECT x, v FROM t QUALIFY row_number() OVER (PARTITION BY x ORDER BY arrival) = 1",
    "distinct on first": "SELECT x, min_by(v, ts) AS v FROM t GROUP BY x",
}
"""Queries over t that hand x on as it is: not FULL JOIN, which makes nulls of it, nor LIMIT, which holds all back."""

OF_THREE = "".join(
    f"CREATE TABLE {name} (x INT, k INT, v INT, ts TIMESTAMP, tags ARRAY<INT>) USING punctuated_xml"
    f" OPTIONS (path '{name}.xml', rowTag 'r', schemes 'x; k; x, k; ts prefix', punctuate 'order of ts');"
    for name in "tuw"
)


@pytest.mark.parametrize("shape", BELOW)
def test_an_attribute_that_is_handed_on_stays_on_its_axis(shape: str) -> None:
    static = "CREATE TABLE c (k INT, name STRING) USING csv OPTIONS (path 'c.csv');"
    plan = read(f"{OF_THREE}{static} SELECT a.x FROM ({BELOW[shape]}) AS a JOIN u AS b ON a.x = b.x", {}).sketch()
    for each in (plan, optimized(plan)):
        assert any({("t", "x"), ("u", "x")} <= {*axis} for axis in axes(each))
