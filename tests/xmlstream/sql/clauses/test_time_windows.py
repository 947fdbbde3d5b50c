"""Windows in queries: Spark's batch answer is the oracle, and what is closed is out before the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.kept_answers import Answers, asked, both_ways
from tests.harness.refused_in_process import is_refusal
from xmlstream.punct_ns.errors import QueryError

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

ROOT = '<readings xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">{}</readings>'
COLUMNS = "sid INT, ts TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE, v INT"
TABLE = """CREATE TABLE s ({}) USING punctuated_xml
OPTIONS (path '{}', rowTag 'r', schemes 'sid', maxFilesPerSlice '1');
"""


def reading(second: int) -> str:
    moment = f"2024-01-0{1 + second // 300}T23:{(50 + second // 60) % 60:02d}:{second % 60:02d}"
    ts = "" if second % 17 == 3 else f"<ts>{moment}Z</ts>"
    return f"<r><sid>{second % 3}</sid>{ts}<ntz>{moment}</ntz><day>{moment[:10]}</day><v>{second}</v></r>"


READINGS = [reading(second) for second in range(0, 600, 7)]

QUERIES = [
    "SELECT window.start, window.end, count(*) AS n FROM s GROUP BY window(ts, '1 minute')",
    "SELECT window, sum(v) AS v, sid FROM s GROUP BY sid, window(ts, '1 minute', '20 seconds')",
    "SELECT window.end AS till, count(*) AS n FROM s GROUP BY window(ts, '70 seconds', '20 seconds', '-7 seconds')",
    "SELECT w, count(*) AS n FROM (SELECT window(ts, '2 minutes') AS w FROM s) GROUP BY w",
    "SELECT window(ts, '1 hour') AS w, max(v) AS v FROM s GROUP BY w",
    "SELECT window(ts, '1 hour') AS w, max(v) AS v FROM s GROUP BY 1",
    "SELECT *, window(ts, '30 seconds').start AS begin FROM s WHERE v < 100",
    "SELECT window_time(window) AS t, n FROM (SELECT window, count(*) AS n FROM s GROUP BY window(ts, '30 seconds'))",
    "SELECT window.start, sum(n) AS n FROM (SELECT window AS w, count(*) AS n FROM s GROUP BY window(ts, '30 seconds'))"
    " GROUP BY window(w, '1 minute')",
    "SELECT window(window, '2 minutes') AS w, sum(n) AS n FROM (SELECT window, count(*) AS n FROM s"
    " GROUP BY window(ts, '30 seconds')) GROUP BY 1",
    "SELECT window(window_time(window), '2 minutes', '1 minute').end AS till, max(window.start) AS s, sum(n) AS n FROM"
    " (SELECT window, count(*) AS n FROM s GROUP BY window(ts, '30 seconds'))"
    " GROUP BY window(window_time(window), '2 minutes', '1 minute')",
    "SELECT window(window_time(window), '2 minutes'), sum(n) AS n FROM (SELECT sid, window, count(*) AS n FROM s GROUP"
    " BY sid, window(ts, '30 seconds')) GROUP BY sid, window(window_time(window), '2 minutes')",
    "SELECT session_window.end AS till, count(*) AS n FROM (SELECT window, count(*) AS n FROM s WHERE v % 9 < 3"
    " GROUP BY window(ts, '10 seconds')) GROUP BY session_window(window_time(window), '20 seconds')",
    "SELECT window.start, count(*) AS n FROM s GROUP BY window(ntz, '90 seconds', '45 seconds')",
    "SELECT window.start, count(*) AS n FROM s GROUP BY window(day, '1 day')",
    "SELECT window.start, count(*) AS n FROM s GROUP BY window(ts + INTERVAL 10 SECONDS, '90 seconds')",
    "SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '1 minute') HAVING count(*) > 5 AND"
    " window.start > TIMESTAMP'2024-01-01T23:51:00Z'",
    "SELECT a.window.start AS begin, a.n, b.n AS other"
    " FROM (SELECT window, count(*) AS n FROM s WHERE sid = 1 GROUP BY window(ts, '1 minute')) a"
    " JOIN (SELECT window, count(*) AS n FROM s WHERE sid = 2 GROUP BY window(ts, '1 minute')) b"
    " ON a.window.start = b.window.start",
    "SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '604800 seconds')",
    "SELECT sid, session_window.start, session_window.end, count(*) AS n, max(v) AS v FROM s WHERE v % 4 < 2"
    " GROUP BY sid, session_window(ts, '21 seconds')",
    "SELECT session_window, count(DISTINCT sid) AS n FROM s WHERE v % 9 < 3 GROUP BY session_window(ts, '40 seconds')",
    "SELECT session_window(ntz, '14 seconds') AS w, sum(v) AS v FROM s WHERE v % 3 = 0 GROUP BY 1",
    "SELECT sid, count(*) AS n FROM s WHERE v % 4 < 2 GROUP BY sid, session_window(ts, '20.5 seconds')"
    " HAVING session_window.end > TIMESTAMP'2024-01-01T23:51:00Z'",
]
REFUSED = (QUERIES[13], QUERIES[21])
"""What only Spark computes."""


def rows_of(directory: Path) -> list[tuple[str | None, ...]]:
    found = []
    for path in sorted(directory.glob("slice-*.xml")):
        items = [item for item in etree.parse(path).getroot() if not str(item.tag).startswith("{")]
        found += [tuple(leaf.text for leaf in item.iter() if len(leaf) == 0) for item in items]
    return found


def written(value: Any) -> str:
    return (
        f"{value.isoformat(timespec='microseconds').removesuffix('+00:00')}" if hasattr(value, "hour") else str(value)
    )


def flat(row: Any) -> tuple[str, ...]:
    values: list[str] = []
    for value in row:
        values += flat(value) if isinstance(value, tuple) else [] if value is None else [written(value)]
    return tuple(values)


@pytest.fixture(scope="module", params=both_ways())
def answers(request: pytest.FixtureRequest) -> Iterator[Answers]:
    """What Spark makes of a query over the same tuples: by day as it is kept."""
    yield from asked(request)


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of three documents."""
    directory = tmp_path_factory.mktemp("windows")
    for part in range(3):
        items = "".join(READINGS[part * 30 : part * 30 + 30])
        (directory / f"{part}.xml").write_text(ROOT.format(items), encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def found(
    answers: Answers, in_process: InProcessSession, readings: Path, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[tuple[str, ...]]]:
    """What each query writes, all of them in one run: by day in process, else under Spark."""
    session, out = answers.spark() if answers.asks_spark else in_process, tmp_path_factory.mktemp("written")
    table = TABLE.format(COLUMNS, readings)
    asked_ = QUERIES if answers.asks_spark else [query for query in QUERIES if query not in REFUSED]
    xs.run([xs.from_sql(session, table + query).insert_into(out / str(i)) for i, query in enumerate(asked_)])
    rows = {query: rows_of(out / str(i)) for i, query in enumerate(asked_)}
    return {q: [tuple(str(value).removesuffix("Z") for value in row) for row in of] for q, of in rows.items()}


@pytest.mark.parametrize("query", QUERIES)
def test_spark_answers_the_same(
    query: str,
    answers: Answers,
    in_process: InProcessSession,
    found: Mapping[str, list[tuple[str, ...]]],
    readings: Path,
    tmp_path: Path,
) -> None:
    if query not in found:
        with pytest.raises(QueryError) as raised:
            xs.from_sql(in_process, TABLE.format(COLUMNS, readings) + query).run(tmp_path / "out")
        assert is_refusal(raised.value)
        return

    def of_spark(asked_: list[str]) -> dict[str, list[Any]]:
        frame = answers.spark().read.format("xml").option("rowTag", "r").schema(COLUMNS).load(str(readings))
        frame.createOrReplaceTempView("s")
        rows = {each: sorted(list(flat(row)) for row in answers.spark().sql(each).collect()) for each in asked_}
        answers.spark().catalog.dropTempView("s")
        return {each: [of] for each, of in rows.items()}

    mine = sorted(map(list, found[query]))
    assert mine
    answers.agree("windows in time", {query: [mine]}, of_spark)
