"""What `coming_from` says of other engines, each row of its table on both sides: their rules stand here as Python.

Flink: a row is late for a window whose end is not after the watermark, the greatest moment so far less the delay.
Spark: a session takes in a row up to a gap after its last one, and ends a gap after it; ksqlDB: it ends with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.nights import AT_NIGHT
from tests.harness.pages import ROOT
from xmlstream.punct_ns.errors import QueryError, UngrammaticalStream, UnsafeQuery

LENGTH, DELAY = 10, 5
MOMENTS = st.lists(st.integers(0, 80), min_size=1, max_size=25)
DRAWN = settings(
    max_examples=25 if not AT_NIGHT else 1_000,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

FEW = settings(DRAWN, max_examples=5 if not AT_NIGHT else 200)


def windows_of_flink(moments: Iterable[int]) -> Counter[int]:
    """How many rows each window has, by its begin."""
    found, watermark = Counter[int](), -DELAY
    for moment in moments:
        begin = moment // LENGTH * LENGTH
        if begin + LENGTH > watermark:
            found[begin] += 1
        watermark = max(watermark, moment - DELAY)
    return found


def answered(
    session: xs.Session, directory: Path, moments: Iterable[int], slack: int, query: str
) -> list[tuple[int, ...]]:
    """The rows of the query, all numbers, where late tuples are dropped."""
    rows = "".join(f"<r><ts>1970-01-01T00:{m // 60:02}:{m % 60:02}Z</ts></r>" for m in moments)
    (directory / "s.xml").write_text(f"<rows>{rows}</rows>")
    table = f"""CREATE TABLE s (ts TIMESTAMP) USING punctuated_xml OPTIONS (path '{directory}/s.xml', rowTag 'r',
        punctuate 'order of ts, slack {slack}s', ungrammatical 'drop');"""
    found = xs.from_sql(session, table + query).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


WINDOWS = """SELECT unix_seconds(window.start) AS begin, count(*) AS n FROM s GROUP BY window(ts, '10 seconds')"""
SESSIONS = """SELECT unix_seconds(session_window.start) AS begin, unix_seconds(session_window.end) AS until,
    count(*) AS n FROM s GROUP BY session_window(ts, '10 seconds')"""


@DRAWN
@given(MOMENTS)
def test_a_slack_longer_by_the_window_keeps_what_flink_keeps(
    in_process: xs.Session, tmp_path: Path, moments: list[int]
) -> None:
    theirs = windows_of_flink(moments)
    fewer, more = Counter[int](), Counter[int]()
    for found, slack in ((fewer, DELAY), (more, DELAY + LENGTH)):
        for begin, number in answered(in_process, tmp_path, moments, slack, WINDOWS):
            found[begin] = number
    assert fewer <= theirs <= more


def test_the_slack_of_a_watermark_drops_a_row_that_flink_counts(in_process: xs.Session, tmp_path: Path) -> None:
    moments = [1, 8, 2]  # 2 is behind the watermark 3, in a window that is open until 10
    assert windows_of_flink(moments) == {0: 3}
    assert answered(in_process, tmp_path, moments, DELAY, WINDOWS) == [(0, 2)]


def sessions(moments: Iterable[int]) -> list[tuple[int, ...]]:
    """Begin, end and number of rows of each session of Spark."""
    found = list[list[int]]()
    for moment in sorted(moments):
        if found and moment - found[-1][-1] <= LENGTH:
            found[-1].append(moment)
        else:
            found.append([moment])
    return [(rows[0], rows[-1] + LENGTH, len(rows)) for rows in found]


@DRAWN
@given(MOMENTS)
@example([0, 10])
@example([0, 11])
def test_sessions_are_those_of_spark(in_process: xs.Session, tmp_path: Path, moments: list[int]) -> None:
    assert answered(in_process, tmp_path, moments, 100, SESSIONS) == sessions(moments)


def test_null_is_a_key_of_sessions(in_process: xs.Session, tmp_path: Path) -> None:
    """And ksqlDB's end is the last row: a gap before ours."""
    rows = "".join(f"<r><k>{k}</k><ts>1970-01-01T00:00:0{m}Z</ts></r>" for k, m in ((1, 0), (1, 4)))
    (tmp_path / "s.xml").write_text(f"<rows>{rows}<r><ts>1970-01-01T00:00:02Z</ts></r></rows>")
    table = f"CREATE TABLE s (k INT, ts TIMESTAMP) USING punctuated_xml OPTIONS (path '{tmp_path}/s.xml', rowTag 'r');"
    query = "SELECT k, unix_seconds(session_window.end) AS until FROM s GROUP BY k, session_window(ts, '10 seconds')"
    found = xs.from_sql(in_process, table + query).to_arrow().to_pylist()
    assert sorted(found, key=str) == [{"k": 1, "until": 14}, {"k": None, "until": 12}]


def at(second: int) -> str:
    return f"1970-01-01T00:{second // 60:02}:{second % 60:02}Z"


def table(name: str = "bid", schemes: str = "", punctuate: str = "", more: str = "", ts: str = "TIMESTAMP") -> str:
    """A stream of auctions, prices and moments."""
    options = f"path '{name}', rowTag 'r', schemes '{schemes}'{more}"
    if punctuate:
        options += f", punctuate '{punctuate}'"
    return f"CREATE TABLE {name} (auction INT, price INT, ts {ts}) USING punctuated_xml OPTIONS ({options});\n"


def values(result: xt.SliceResult) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in result.rows)


ROWS: dict[str, Callable[..., None]] = {}
"""The tests by the row of the page that they try, which is named by the begin of its first cell."""


def row(begin: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Notes the row of the page that a test tries."""

    def noted(test: Callable[..., None]) -> Callable[..., None]:
        ROWS[begin] = test
        return test

    return noted


row("a row behind the watermark")(test_a_slack_longer_by_the_window_keeps_what_flink_keeps)
row("a session")(test_sessions_are_those_of_spark)


def updates(prices: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The updates of `count(*) GROUP BY auction`: one with each row."""
    counts, found = Counter[int](), []
    for auction, _ in prices:
        counts[auction] += 1
        found.append((auction, counts[auction]))
    return found


BIDS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=12)


@row("`SELECT auction, count(*)")
@FEW
@given(BIDS)
def test_a_count_comes_once_with_the_last_of_the_updates(bids: list[tuple[int, int]]) -> None:
    case = xt.case(table(schemes="auction") + "SELECT auction, count(*) AS n FROM bid GROUP BY auction")
    found, left = list[Any](), [auction for auction, _ in bids]
    for auction, price in bids:
        left.remove(auction)
        closed = f" <{auction}, *, *>" if auction not in left else ""
        found += values(case.slice(bid=f"({auction}, {price}, null){closed}"))
    theirs = updates(bids)
    assert len(found) == len({auction for auction, _ in bids}) <= len(theirs)
    assert dict(found) == dict(theirs)  # of a key the last
    assert [auction for auction, _ in found] == list(dict.fromkeys(reversed([a for a, _ in bids])))[::-1]


@row("`… FROM TUMBLE(…)")
@FEW
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_a_window_comes_when_the_watermark_passes_its_end(steps: list[int]) -> None:
    """Flink: the watermark is the greatest moment less the delay, and a window comes once it is at its end."""
    case = xt.case(table(punctuate=f"order of ts, slack {DELAY}s") + windows("TUMBLE", "10"))
    moments = list(accumulate(steps))
    for i, moment in enumerate(moments):
        theirs = [
            (begin, begin + 10, sum(begin <= m < begin + 10 for m in moments[: i + 1]))
            for begin in range(0, moment, 10)
            if (moments[i - 1] if i else -1) - DELAY < begin + 10 <= moment - DELAY
        ]
        assert values(case.slice(bid=f"(1, 1, {at(moment)})")) == [each for each in theirs if each[2]]


def windows(function: str, *lengths: str) -> str:
    given = ", ".join(f"INTERVAL '{length}' SECONDS" for length in lengths)
    return f"""SELECT unix_seconds(window_start) AS begin, unix_seconds(window_end) AS until, count(*) AS n
        FROM TABLE({function}(TABLE bid, DESCRIPTOR(ts), {given})) GROUP BY window_start, window_end"""


@row("`… FROM TABLE(CUMULATE")
@FEW
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_a_cumulated_window_comes_when_the_watermark_passes_it(steps: list[int]) -> None:
    case = xt.case(table(punctuate="order of ts") + windows("CUMULATE", "10", "30"))
    moments = list(accumulate(steps))
    for i, moment in enumerate(moments):
        ends = range(10, moment + 1, 10)
        theirs = [
            (begin, end, sum(begin <= m < end for m in moments[: i + 1]))
            for end, begin in ((end, (end - 1) // 30 * 30) for end in ends)
            if (moments[i - 1] if i else -1) < end <= moment
        ]
        assert values(case.slice(bid=f"(1, 1, {at(moment)})")) == [each for each in theirs if each[2]]


@row("`GROUP BY auction, window(ts, '1 hour')` with one slow sender")
def test_a_window_of_one_key_does_not_wait_for_a_slow_sender() -> None:
    query = """SELECT auction, unix_seconds(window.start) AS begin, count(*) AS n FROM bid
        GROUP BY auction, window(ts, '10 seconds')"""
    case = xt.case(table(schemes="auction, ts prefix") + query)
    heard = {7: 12, 8: 4}  # each sender's last moment
    assert min(heard.values()) < 10  # so the one watermark of all closes nothing
    assert values(case.slice(bid=f"(7, 1, {at(3)}) (7, 1, {at(12)}) (8, 1, {at(4)})")) == []
    assert values(case.slice(bid=f"<7, *, (,{at(10)})>")) == [(7, 0, 1)]
    assert values(case.slice(bid=f"<8, *, (,{at(10)})>")) == [(8, 0, 1)]


@row("a row that comes too late")
def test_a_late_row_stops_the_query_or_is_set_aside_or_dropped() -> None:
    query = "SELECT auction, price FROM bid"
    for choice, kept, aside in (("fail", None, None), ("divert", [], 1), ("drop", [], 0)):
        case = xt.case(table(punctuate="order of ts", more=f", ungrammatical '{choice}'") + query)
        case.slice(bid=f"(1, 1, {at(9)})")
        if kept is None:
            with pytest.raises(UngrammaticalStream):
                case.slice(bid=f"(1, 2, {at(3)})")
            continue
        found = case.slice(bid=f"(1, 2, {at(3)})")
        assert (values(found), len(found.dead_letters)) == (kept, aside)


@row("a source that is idle")
@FEW
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=12))
def test_two_sources_wait_for_the_slower_one(steps: list[tuple[str, int]]) -> None:
    """As in Spark, whose watermark is the least of all inputs; Flink leaves out one that is idle."""
    tables = "".join(table(name, punctuate="order of ts") for name in "ab")
    both = "(SELECT ts FROM a UNION ALL SELECT ts FROM b)"
    query = f"SELECT unix_seconds(window.start) AS begin, count(*) AS n FROM {both} GROUP BY window(ts, '10 seconds')"
    case, heard, rows = xt.case(tables + query), {"a": -1, "b": -1}, list[int]()
    for name, step in steps:
        before = min(heard.values())
        heard[name] = max(heard[name], 0) + step
        rows.append(heard[name])
        least = min(heard.values())
        theirs = [
            (begin, sum(begin <= m < begin + 10 for m in rows))
            for begin in range(0, max(rows) + 1, 10)
            if before < begin + 10 <= least
        ]
        found = case.slice({name: f"(1, 1, {at(heard[name])})"})
        assert values(found) == [each for each in theirs if each[1]]


def test_a_clock_ends_the_waiting_for_an_idle_source() -> None:
    clocks = [table("a", punctuate="order of ts"), table("b", punctuate="clock of ts, delay 5s", more=_DROP)]
    both = "(SELECT ts FROM a UNION ALL SELECT ts FROM b)"
    query = f"SELECT unix_seconds(window.start) AS begin, count(*) AS n FROM {both} GROUP BY window(ts, '10 seconds')"
    case = xt.case("".join(clocks) + query, at=at(1))
    assert values(case.slice(a=f"(1, 1, {at(3)}) (1, 1, {at(12)})")) == []
    assert values(case.at(at(20)).slice()) == [(0, 1)]


_DROP = ", ungrammatical 'drop'"


@row("`EMIT CHANGES`")
@pytest.mark.parametrize("emit", ["EMIT CHANGES", "EMIT FINAL", "EMIT ON WINDOW CLOSE"])
def test_what_says_how_results_are_emitted_is_refused(emit: str) -> None:
    query = f"SELECT auction, count(*) AS n FROM bid GROUP BY auction {emit}"
    with pytest.raises(QueryError) as refused:
        xt.case(table(schemes="auction") + query)
    assert "leave" in str(refused.value.hint)
    assert ("so-far" in str(refused.value.hint)) == (emit == "EMIT CHANGES")


FIRST = """SELECT auction, price FROM
    (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY {by}) AS r FROM bid) WHERE r = 1"""


@row("`ROW_NUMBER() OVER")
@FEW
@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 30)), min_size=1, max_size=8, unique_by=lambda b: b[1]))
def test_the_first_of_a_key_is_the_last_of_flinks_updates(bids: list[tuple[int, int]]) -> None:
    """Flink: the first row at once, and again whenever a row with an earlier moment comes."""
    least, changes = dict[int, int](), list[tuple[int, int]]()
    for auction, moment in bids:
        if moment < least.get(auction, 99):
            least[auction] = moment
            changes.append((auction, moment))
    case = xt.case(table(schemes="auction") + FIRST.format(by="ts"))
    for auction, moment in bids:
        assert values(case.slice(bid=f"({auction}, {moment}, {at(moment)})")) == []
    last: list[Any] = values(case.end())
    assert dict(last) == dict(changes)
    arrived = xt.case(table(schemes="auction") + FIRST.format(by="arrival"))
    ordered = xt.case(
        table(schemes="auction", punctuate="order of ts", ts="TIMESTAMP NOT NULL") + FIRST.format(by="ts")
    )
    seen = set[int]()
    for number, (auction, moment) in enumerate(bids):
        at_once = [] if auction in seen else [(auction, moment)]
        assert values(arrived.slice(bid=f"({auction}, {moment}, {at(moment)})")) == at_once
        assert values(ordered.slice(bid=f"({auction}, {moment}, {at(number)})")) == at_once
        seen.add(auction)


@row('`dropDuplicates(["id"])`')
def test_a_key_whose_duplicates_are_dropped_is_forgotten_when_it_is_closed(in_process: xs.Session) -> None:
    source = xs.from_sql(in_process, table(schemes="auction") + "SELECT auction, price FROM bid")
    case = xt.case(source.drop_duplicates(["auction"]))
    first = case.slice(bid="(1, 1, null) (1, 2, null) (2, 3, null)")
    again = case.slice(bid="(1, 4, null) (3, 5, null) <1, *, *>")
    assert (values(first), first.kept) == ([(1, 1), (2, 3)], 2)
    assert (values(again), again.kept) == ([(3, 5)], 2)  # 2 and 3


JOIN = "SELECT a.price AS p, b.price AS q FROM a {how} b ON a.auction = b.auction"
PAIR = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=10)


def joined(case: xt.Case, items: list[tuple[str, int, int]]) -> list[list[tuple[object, ...]]]:
    """What comes with each row, each a slice, where a side closes a key with its last row; and at the end."""
    left, found = [(name, auction) for name, auction, _ in items], []
    for name, auction, price in items:
        left.remove((name, auction))
        closed = "" if (name, auction) in left else f" <{auction}, *, *>"
        found.append([tuple(r.values()) for r in case.slice({name: f"({auction}, {price}, null){closed}"}).rows])
    return [*found, [tuple(r.values()) for r in case.end().rows]]


@row("`a JOIN b")
@FEW
@given(PAIR)
def test_rows_of_a_join_are_kept_until_the_other_side_closes_their_key(items: list[tuple[str, int, int]]) -> None:
    """With a time to live of two rows, the other engines miss partners; here none is missed, and nothing is left."""
    case = xt.case(table("a", schemes="auction") + table("b", schemes="auction") + JOIN.format(how="JOIN"))
    found = Counter(each for part in joined(case, items) for each in part)
    a, b = ([(k, p) for name, k, p in items if name == side] for side in "ab")
    assert found == Counter((p, q) for k, p in a for l, q in b if k == l)  # noqa: E741 - a key of the other side
    of_ttl = Counter[tuple[int, int]]()
    for i, (name, k, p) in enumerate(items):
        for other, l, q in items[max(i - 2, 0) : i]:  # noqa: E741 - as above
            if other != name and k == l:
                of_ttl[(p, q) if name == "a" else (q, p)] += 1
    assert of_ttl <= found
    assert case.slices[-1].kept == 0
    with pytest.raises(UnsafeQuery):
        xt.case(table("a") + table("b") + JOIN.format(how="JOIN"))


@row("`a LEFT JOIN b")
@FEW
@given(PAIR)
def test_a_left_join_gives_what_is_left_of_flinks_changes(items: list[tuple[str, int, int]]) -> None:
    """Flink: a row without a partner so far goes out with null, which is taken back when one comes."""
    changes, kept = Counter[tuple[object, ...]](), list[tuple[str, int, int]]()
    for name, k, p in items:
        partners: list[int | None] = [q for other, l, q in kept if other != name and l == k]  # noqa: E741 - a key
        if name == "a":
            changes.update(Counter[tuple[object, ...]]((p, q) for q in partners or [None]))
        else:
            first = not any(other == "b" and l == k for other, l, _ in kept)  # noqa: E741 - as above
            for q in partners:
                changes.update({(q, p): 1, (q, None): -1 if first else 0})
        kept.append((name, k, p))
    case = xt.case(table("a", schemes="auction") + table("b", schemes="auction") + JOIN.format(how="LEFT JOIN"))
    found = joined(case, items)
    assert Counter(each for part in found for each in part) == +changes
    pairs = {k for name, k, _ in items if name == "b"}
    for (name, k, p), part in zip(items, found, strict=False):
        assert not (name == "a" and k in pairs and (p, None) in part)  # never first with null


@row("`WHERE a.id IN")
def test_in_and_exists_come_with_the_first_partner_the_others_once_the_key_is_closed() -> None:
    tables = table("a", schemes="auction") + table("b", schemes="auction")
    largest = "(SELECT max(price) FROM b WHERE b.auction = a.auction)"
    exists = "EXISTS (SELECT 1 FROM b WHERE b.auction = a.auction)"
    for condition, at_once, at_last in (
        ("auction IN (SELECT auction FROM b)", [(5,)], []),
        (exists, [(5,)], []),
        (f"NOT {exists}", [], [(7,)]),
        (f"price < {largest}", [], [(5,)]),
    ):
        case = xt.case(f"{tables} SELECT a.price FROM a WHERE {condition}")
        assert values(case.slice(a="(1, 5, null) (2, 7, null)")) == []
        assert values(case.slice(b="(1, 9, null)")) == at_once
        assert values(case.slice(b="<1, *, *> <2, *, *>")) == at_last


@row("`SELECT x IN (SELECT y FROM b)`")
@pytest.mark.spark
def test_in_a_select_is_false_where_spark_says_so_and_null_elsewhere(
    spark: xs.Session, in_process: xs.Session, tmp_path: Path
) -> None:
    (tmp_path / "a.xml").write_text("<s><r><x>1</x></r><r><x>3</x></r><r/></s>")
    (tmp_path / "b.xml").write_text("<s><r><y>1</y></r><r/></s>")
    tables = "".join(
        f"CREATE TABLE {name} ({column} INT) USING punctuated_xml OPTIONS (path '{tmp_path}/{name}.xml', rowTag 'r');"
        for name, column in (("a", "x"), ("b", "y"))
    )
    sides = "(VALUES (1), (3), (NULL)) AS a (x)", "(VALUES (1), (NULL)) AS b (y)"
    for form, theirs in (("x IN", [True, None, None]), ("x NOT IN", [False, None, None])):
        query = f"SELECT x, {form} (SELECT y FROM {{}}) AS found FROM {{}}"
        ours = xs.from_sql(in_process, tables + query.format("b", "a")).to_arrow().to_pylist()
        plain: Any = spark
        assert [r["found"] for r in sorted(ours, key=lambda r: r["x"] or 9)] == [form == "x IN", False, False]
        with_spark = [r.asDict() for r in plain.sql(query.format(sides[1], sides[0])).collect()]
        assert sorted(with_spark, key=str) == sorted(ours, key=str)
        elsewhere = duckdb.sql(query.format(sides[1], sides[0]) + " ORDER BY x NULLS LAST").fetchall()
        assert [found for _, found in elsewhere] == theirs


@row("`GROUP BY ROLLUP (a)` of no rows")
@pytest.mark.spark
def test_a_rollup_of_no_rows_has_none_as_in_spark(spark: xs.Session, in_process: xs.Session, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<s/>")
    source = f"CREATE TABLE a (x INT) USING punctuated_xml OPTIONS (path '{tmp_path}/a.xml', rowTag 'r');"
    query = "SELECT x, count(*) AS n FROM {} GROUP BY ROLLUP (x)"
    plain: Any = spark
    none = "(SELECT * FROM (VALUES (1)) AS v (x) WHERE x > 1) AS a"
    assert xs.from_sql(in_process, source + query.format("a")).to_arrow().num_rows == 0
    assert plain.sql(query.format(none)).collect() == []
    assert duckdb.sql(query.format(none)).fetchall() == [(None, 0)]


@row("`LIMIT 10`")
def test_the_rows_of_a_limit_are_those_that_come_first_for_good() -> None:
    case = xt.case(table() + "SELECT price FROM bid LIMIT 3", allow_unsafe=True)
    found = values(case.slice(bid="(1, 9, null) (1, 8, null)"))
    case.restart()
    found += values(case.slice(bid="(1, 1, null) (1, 2, null)")) + values(case.slice(bid="(1, 0, null)"))
    assert found == [(8,), (9,), (1,)]


@row("`ORDER BY ts`")
@FEW
@given(st.lists(st.integers(0, 20), min_size=1, max_size=12))
def test_rows_come_in_order_once_no_other_can_come_before(moments: list[int]) -> None:
    """Flink sorts by time, too: what is behind the watermark, the greatest moment less the delay, goes out sorted."""
    case = xt.case(
        table(punctuate="order of ts, slack 5s", more=_DROP, ts="TIMESTAMP NOT NULL")
        + "SELECT unix_seconds(ts) AS s FROM bid ORDER BY ts"
    )
    watermark, waiting = -99, list[int]()
    for moment in moments:
        if moment >= watermark:
            waiting.append(moment)
        watermark = max(watermark, moment - 5)
        theirs = sorted(m for m in waiting if m < watermark)
        waiting = [m for m in waiting if m >= watermark]
        assert [r["s"] for r in case.slice(bid=f"(1, 1, {at(moment)})").rows] == theirs
    assert [r["s"] for r in case.end().rows] == sorted(waiting)


@row("`WHERE ts > now()")
def test_the_decision_by_the_time_of_the_slice_is_final() -> None:
    """Materialize: a row leaves the view five minutes after its moment; here it was a result when it came."""
    case = xt.case(table() + "SELECT price FROM bid WHERE ts > now() - INTERVAL 5 MINUTES", at=at(600))
    assert values(case.slice(bid=f"(1, 1, {at(400)}) (1, 2, {at(299)})")) == [(1,)]
    case.at(at(1800))
    assert values(case.slice()) == []
    assert [row for result in case.slices for row in values(result)] == [(1,)]


@row("`count(*)` without")
def test_a_count_of_all_comes_at_the_end() -> None:
    query = table(schemes="auction") + "SELECT count(*) AS n FROM bid"
    with pytest.raises(UnsafeQuery):
        xt.case(query)
    case = xt.case(query, allow_unsafe=True)
    bids = [(1, 5), (1, 6), (2, 7)]
    for auction, price in bids:
        assert values(case.slice(bid=f"({auction}, {price}, null) <{auction}, {price}, *>")) == []
    assert values(case.end()) == [(len(bids),)]  # the last of an update per row


@row("`a / b`")
def test_arithmetic_has_sparks_meaning() -> None:
    """Flink: 7 / 2 and the mean of 3 and 4 are 3, and null is the greatest of null and 1."""
    case = xt.case(table() + "SELECT 7 / auction AS q, greatest(price, 1) AS g FROM bid")
    assert values(case.slice(bid="(2, null, null)")) == [(3.5, 1)]
    mean = xt.case(table(schemes="auction") + "SELECT avg(price) AS m FROM bid GROUP BY auction")
    assert values(mean.slice(bid="(1, 3, null) (1, 4, null) <1, *, *>")) == [(3.5,)]
    extracted = "SELECT regexp_extract('ab', '(c)', 1) AS none, regexp_extract('ab', '(b)', 1) AS b FROM bid"
    assert values(xt.case(table() + extracted).slice(bid="(1, 1, null)")) == [("", "b")]


def test_each_row_of_the_page_is_tried() -> None:
    page = (ROOT / "xmlstream/manual/coming_from.md").read_text()
    section = page.partition("\n## The same text, another answer\n")[2].partition("\n\n## ")[0]
    texts = [line[2:] for line in section.splitlines() if line.startswith("| ")][2:]
    for text in texts:
        assert any(text.startswith(begin) for begin in ROWS), text
    assert len(texts) == len(ROWS)


@pytest.mark.parametrize(("ts", "order", "waits"), [
    ("TIMESTAMP", "ts", True), ("TIMESTAMP NOT NULL", "ts", False), ("TIMESTAMP", "ts NULLS LAST", False),
])  # fmt: skip
def test_a_null_that_may_come_first_is_said_before_the_start(
    in_process: xs.Session, ts: str, order: str, waits: bool
) -> None:
    text = table(punctuate="order of ts", ts=ts) + f"SELECT price FROM bid ORDER BY {order}"
    said = "null of ts comes first, and is waited for: declare NOT NULL, or write ORDER BY ts NULLS LAST"
    assert (said in xs.from_sql(in_process, text).explain("text", follow=True)) == waits
    case = xt.case(text)
    case.slice(bid=f"(1, 1, {at(3)})")
    assert values(case.slice(bid=f"(1, 2, {at(9)})")) == ([] if waits else [(1,)])
