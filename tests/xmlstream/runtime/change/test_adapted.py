"""A start with `adapt`: the joins that it chooses, when it leaves them, and with which plan later runs go on."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import xmlstream as xs
from tests.harness.chained_streams import CHAIN, FAST, rows, run, send, tables
from tests.harness.dying import Died, dying
from tests.harness.nights import AT_NIGHT, SPARK_IN_THE_REST
from xmlstream.operators.storage.store import Folder
from xmlstream.optimizer.choose_joins import with_rates
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.runtime import better_joins
from xmlstream.runtime.better_joins import BETTER
from xmlstream.runtime.change import adapted
from xmlstream.runtime.change.changed_checkpoint import planned_change
from xmlstream.runtime.change.query_change import Verdict
from xmlstream.runtime.checkpoint.checkpoint import COUNTS
from xmlstream.runtime.checkpoint.remote_checkpoint import RemoteCheckpoint, readable
from xmlstream.runtime.checkpoint.same_query import QueryRecord, rates_in
from xmlstream.runtime.checkpoint.slice_report import Measured

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession


@pytest.fixture(autouse=True)
def soon() -> Any:
    """Rates are known after four slices."""
    with mock.patch.object(better_joins, "ENOUGH", 4):
        yield


def record(home: Path) -> QueryRecord:
    return QueryRecord.of(Folder(home / "state"))


def inner(home: Path) -> list[str]:
    """What the two joins of the plan in the checkpoint join, the inner one first: the sources below each input."""
    nodes = json.loads((home / "state" / "plan.json").read_text().splitlines()[0])["nodes"]
    below: list[set[str]] = []
    for node in nodes:
        below.append({node["label"]} if not node["inputs"] else set().union(*(below[i] for i in node["inputs"])))
    joins = [node for node in nodes if node["label"] in ("join", "multiway_join")]
    return [" ".join(sorted("+".join(sorted(below[i])) for i in join["inputs"])) for join in joins]


def begun(session: Any, home: Path, rates: dict[str, float]) -> None:
    """A query begins whose joins were chosen by these rates."""
    original = adapted.planned_by_rates

    def planned(root: Node, *others: Any) -> Node:
        return original(with_rates(root, rates), *others)

    with mock.patch("xmlstream.builder.run_options.planned_by_rates", planned):
        run(session, home)


FIRST, OTHER = ["s1 s2", "s1+s2 s3"], ["s2 s3", "s1 s2+s3"]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [each.getMessage() for each in caplog.records if each.name == "xmlstream.plan"]
    caplog.clear()
    return lines


def test_a_query_goes_on_with_the_rates_that_its_checkpoint_has(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", 0)
    begun(in_process, tmp_path, FAST)
    assert (inner(tmp_path), record(tmp_path).rates) == (OTHER, FAST)
    send(tmp_path / "in", 1, 2)
    assert run(in_process, tmp_path).slices == 2
    assert (inner(tmp_path), record(tmp_path).rates) == (OTHER, FAST)
    send(tmp_path / "once" / "in", 0, 1, 2)
    run(in_process, tmp_path / "once")
    assert inner(tmp_path / "once") == FIRST
    assert rows(tmp_path) == rows(tmp_path / "once") != {}


def test_a_query_with_other_names_of_its_sources_is_planned_with_the_same_rates(
    tmp_path: Path, in_process: InProcessSession
) -> None:
    """They are known by their paths; and of others nothing is known."""
    send(tmp_path / "in", 0)
    begun(in_process, tmp_path, FAST)
    text = tables(tmp_path / "in") + CHAIN
    for name in ("s1", "s2"):
        text = text.replace(f"TABLE {name} ", f"TABLE new{name} ").replace(f"{name}.", f"new{name}.")
    text = text.replace("FROM s1 JOIN s2", "FROM news1 JOIN news2")
    plans = list[Node]()
    with (
        mock.patch("xmlstream.builder.run_options.planned_by_rates", side_effect=_kept(plans)),
        pytest.raises(StateError, match="belongs to another query"),
    ):
        xs.from_sql(in_process, text).run(tmp_path / "out", tmp_path / "state", keep_open=True)
    assert rates_in(plans[0]) == {"news1": 20, "news2": 2, "s3": 2}


def _kept(plans: list[Node]) -> Any:
    original = adapted.planned_by_rates

    def planned(*given: Any) -> Node:
        plans.append(original(*given))
        return plans[-1]

    return planned


def test_a_rate_that_is_declared_later_counts_for_the_whole_plan(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", 0)
    begun(in_process, tmp_path, FAST)
    with pytest.raises(StateError, match="belongs to another query"):
        run(in_process, tmp_path, rates={"s1": "1"})


@pytest.mark.parametrize(
    ("query", "rates", "slices", "why"),
    [
        (CHAIN, {}, 3, "3 slices with tuples are measured, of 4"),
        (CHAIN, {}, 1, "1 slice with tuples is measured, of 4"),
        (CHAIN, {"s2": "1"}, 5, "it follows the declared rate of s2"),
        ("SELECT a, c FROM s1 JOIN s2 ON s1.b = s2.b", {}, 5, "it joins no more than two streams at a time"),
        (CHAIN.replace("SELECT", "SELECT /*+ LAZY_PURGE(2) */"), {}, 5, "no other keeps clearly less"),
    ],
)
def test_a_plan_stays_and_a_line_says_why(
    tmp_path: Path,
    in_process: InProcessSession,
    caplog: pytest.LogCaptureFixture,
    query: str,
    rates: dict[str, str],
    slices: int,
    why: str,
) -> None:
    send(tmp_path / "in", *range(slices))
    run(in_process, tmp_path, query, rates, adapt=True)
    fresh = said(caplog)
    assert fresh == [
        "adapting nothing, the plan stays: "
        + ("nothing is measured yet" if "slice" in why or "clearly" in why else why)
    ]
    before, plan = inner(tmp_path), (tmp_path / "state" / "query.json").read_text()
    send(tmp_path / "in", slices)
    assert run(in_process, tmp_path, query, rates, adapt=True).slices == 1
    (line,) = said(caplog)
    assert line.startswith("adapting nothing, the plan stays: ")
    assert line.endswith(why)
    assert (inner(tmp_path), (tmp_path / "state" / "query.json").read_text()) == (before, plan)


def test_equal_rates_leave_the_plan(
    tmp_path: Path, in_process: InProcessSession, caplog: pytest.LogCaptureFixture
) -> None:
    send(tmp_path / "in", *range(5), s1=2)
    run(in_process, tmp_path)
    run(in_process, tmp_path, adapt=True)
    assert said(caplog) == ["adapting nothing, the plan stays: at the measured rates no other keeps clearly less"]


def test_without_adapt_nothing_changes_and_nothing_is_said(
    tmp_path: Path, in_process: InProcessSession, caplog: pytest.LogCaptureFixture
) -> None:
    send(tmp_path / "in", *range(6))
    run(in_process, tmp_path)
    send(tmp_path / "in", 6)
    run(in_process, tmp_path)
    assert said(caplog) == []
    assert (inner(tmp_path), record(tmp_path).rates) == (FIRST, {})


def test_another_query_is_refused_and_nothing_is_touched(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", *range(5))
    run(in_process, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").rglob("*") if path.is_file()}
    with pytest.raises(StateError, match="belongs to another query") as error:
        run(in_process, tmp_path, CHAIN.replace("s1.b =", "s1.b + 1 ="), adapt=True)
    assert "--change" in (error.value.hint or "") or "checkpoint of its own" in (error.value.hint or "")
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").rglob("*") if path.is_file()}
    assert after == before


def test_where_what_is_kept_cannot_be_moved_the_plan_stays(
    tmp_path: Path, in_process: InProcessSession, caplog: pytest.LogCaptureFixture
) -> None:
    send(tmp_path / "in", *range(5))
    run(in_process, tmp_path)
    send(tmp_path / "in", 5)
    original = planned_change

    def refused(*given: Any, **options: Any) -> Any:
        change = original(*given, **options)
        change.verdicts = [Verdict("join", "refused", "its rows are gone")]
        return change

    with mock.patch.object(adapted, "planned_change", refused):
        assert run(in_process, tmp_path, adapt=True).slices == 1
    assert said(caplog) == [
        "adapting nothing, the plan stays: what is kept cannot be moved: join: refused, its rows are gone"
    ]
    assert inner(tmp_path) == FIRST


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"undo": True}, "adapt=True and undo=True exclude each other"),
        ({"as_written": True}, "adapt=True and as_written=True exclude each other"),
        ({"checkpoint": None}, "adapt=True without a checkpoint"),
    ],
)
def test_what_contradicts_it_is_refused(
    tmp_path: Path, in_process: InProcessSession, options: dict[str, Any], what: str
) -> None:
    send(tmp_path / "in", 0)
    with pytest.raises(UsageError, match=what):
        run(in_process, tmp_path, adapt=True, **options)


def test_a_damaged_record_is_said_by_the_run(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", 0)
    run(in_process, tmp_path)
    (tmp_path / "state" / "query.json").write_text("{}")
    with pytest.raises(StateError, match=r"query\.json"):
        run(in_process, tmp_path, adapt=True)


def moved(session: Any, home: Path, **options: Any) -> Any:
    """A start that adapts a query that six slices were measured of, and has slices to go on with."""
    send(home / "in", *range(6))
    run(session, home)
    send(home / "in", 6, 7)
    return run(session, home, adapt=True, **options)


def alone(session: Any, home: Path, slices: int, query: str = CHAIN) -> Counter[tuple[str, ...]]:
    """The rows of a query that was never stopped."""
    send(home / "in", *range(slices))
    run(session, home, query)
    return rows(home)


@SPARK_IN_THE_REST
def test_a_start_goes_over_to_the_plan_that_keeps_less(
    tmp_path: Path, session: Any, caplog: pytest.LogCaptureFixture
) -> None:
    summary = moved(session, tmp_path)
    (line,) = said(caplog)
    assert line == (
        "adapting join-2: at the measured rates (s1 20, s2 2, s3 2 tuples a slice) join(join(s1, s2), s3) keeps 44"
        " tuples for each slice that a value stays open, and join(s1, join(s2, s3)) would keep 26"
    )
    assert BETTER not in {one.kind for one in summary.findings}
    assert (inner(tmp_path), record(tmp_path).rates) == (OTHER, FAST)
    # Later runs go on with it; the same rates change nothing.
    for number, adapts in ((8, False), (9, True), (10, True)):
        send(tmp_path / "in", number)
        assert run(session, tmp_path, adapt=adapts).slices == 1
        assert (inner(tmp_path), record(tmp_path).rates) == (OTHER, FAST)
        told = ["adapting nothing, the plan stays: at the measured rates no other keeps clearly less"]
        assert said(caplog) == (told if adapts else [])
    assert rows(tmp_path) == alone(session, tmp_path / "alone", 11)


def test_rates_that_have_turned_turn_the_plan(tmp_path: Path, in_process: InProcessSession) -> None:
    moved(in_process, tmp_path)
    with mock.patch.object(Measured, "MOST", 8):
        for number in range(8, 40):
            send(tmp_path / "in", number, s1=2, s3=20)
        run(in_process, tmp_path)
        send(tmp_path / "in", 40, s1=2, s3=20)
        run(in_process, tmp_path, adapt=True)
    assert inner(tmp_path) == FIRST
    assert record(tmp_path).rates["s3"] > 5 * record(tmp_path).rates["s1"]


def test_it_is_undone_until_the_next_slice(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", *range(6))
    run(in_process, tmp_path)
    run(in_process, tmp_path, adapt=True)
    assert (inner(tmp_path), record(tmp_path).rates) == (OTHER, FAST)
    run(in_process, tmp_path, undo=True)
    assert (inner(tmp_path), record(tmp_path).rates) == (FIRST, {})
    send(tmp_path / "in", 6)
    run(in_process, tmp_path)
    assert rows(tmp_path) == alone(in_process, tmp_path / "alone", 7)


def test_another_select_list_and_another_plan_at_once(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", *range(6))
    run(in_process, tmp_path)
    send(tmp_path / "in", 6, 7)
    before = rows(tmp_path)
    run(in_process, tmp_path, CHAIN.replace(", e ", ", e, a + e AS f "), change=True, adapt=True)
    assert (inner(tmp_path), record(tmp_path).rates) == (OTHER, FAST)
    more = alone(in_process, tmp_path / "alone", 8) - before
    assert rows(tmp_path) - before == Counter({(*row, str(int(row[0]) + int(row[3]))): n for row, n in more.items()})


def test_sources_with_other_names_keep_their_rates_and_their_plan(tmp_path: Path, in_process: InProcessSession) -> None:
    moved(in_process, tmp_path)
    send(tmp_path / "in", 8)
    text = tables(tmp_path / "in") + CHAIN
    for name in ("s1", "s2", "s3"):
        text = text.replace(f"TABLE {name} ", f"TABLE new{name} ").replace(f"{name}.", f"new{name}.")
        text = text.replace(f"FROM {name}", f"FROM new{name}").replace(f"JOIN {name}", f"JOIN new{name}")
    for change in (True, False):
        xs.from_sql(in_process, text).run(tmp_path / "out", tmp_path / "state", keep_open=True, change=change)
        assert record(tmp_path).rates == {f"new{name}": rate for name, rate in FAST.items()}
        assert inner(tmp_path) == [each.replace("s", "news") for each in OTHER]
    assert rows(tmp_path) == alone(in_process, tmp_path / "alone", 9)


def test_a_declared_rate_is_followed_by_a_change(tmp_path: Path, in_process: InProcessSession) -> None:
    """What the finding of declared rates says."""
    declared = dict.fromkeys(FAST, "1")
    send(tmp_path / "in", *range(6))
    (told,) = run(in_process, tmp_path, rates=declared).findings
    now = dict(re.findall(r"(s\d) '(\d+)'", told.what))
    assert now == {"s1": "20", "s2": "2", "s3": "2"}
    send(tmp_path / "in", 6)
    assert run(in_process, tmp_path, rates=now, change=True).findings == ()
    assert (inner(tmp_path), record(tmp_path).rates) == (OTHER, {})
    assert rows(tmp_path) == alone(in_process, tmp_path / "alone", 7)


def test_two_regions_of_a_query_are_measured_each_for_itself(tmp_path: Path, in_process: InProcessSession) -> None:
    """The second one is joined well already."""
    query = f"{CHAIN} UNION ALL SELECT u1.a, u2.b, u2.c, u3.e FROM u1 JOIN u2 ON u1.b = u2.b JOIN u3 ON u2.c = u3.c"

    def start(home: Path, *slices: int, **options: Any) -> None:
        send(home / "in", *slices)
        send(home / "other", *slices, s1=2, s3=20)
        more = tables(home / "other").replace("TABLE s", "TABLE u")
        text = tables(home / "in") + more + query
        xs.from_sql(in_process, text).run(home / "out", home / "state", keep_open=True, **options)

    start(tmp_path, *range(6))
    start(tmp_path, 6, adapt=True)
    assert record(tmp_path).rates == {**FAST, "u1": 2, "u2": 2, "u3": 20}
    start(tmp_path, 7)
    assert sorted(inner(tmp_path)) == sorted([*OTHER, *(each.replace("s", "u") for each in FIRST)])
    start(tmp_path / "alone", *range(8))
    assert rows(tmp_path) == rows(tmp_path / "alone") != {}


WRITES = [(Folder, name) for name in ("move", "link", "create", "replace", "delete", "write")]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_start_that_is_killed_leaves_the_one_plan_or_the_other(tmp_path: Path, in_process: InProcessSession) -> None:
    home = tmp_path / "home"
    send(home / "in", *range(6))
    run(in_process, home)
    send(home / "in", 6)
    shutil.copytree(home, tmp_path / "kept")
    expected = alone(in_process, tmp_path / "alone", 8)
    at, points, plans = 0, 1000, Counter[tuple[bool, bool]]()
    while at < points:
        shutil.rmtree(home)
        shutil.copytree(tmp_path / "kept", home)
        with dying(at, *WRITES) as done, suppress(Died):
            run(in_process, home, adapt=True)
            points = len(done)
        # With or without the option, whatever it finds.
        again = bool(at % 2)
        run(in_process, home, adapt=again)
        has_moved = inner(home) == OTHER
        assert record(home).rates == (FAST if has_moved else {}), at
        assert has_moved or not again, at
        send(home / "in", 7)
        run(in_process, home)
        assert (inner(home) == OTHER) is has_moved
        assert rows(home) == expected, at
        plans[has_moved, again] += 1
        at += 1 if AT_NIGHT else 7
    assert plans[False, False]
    assert plans[True, False]
    assert plans[True, True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_start_that_is_killed_half_way_is_said_and_undone(tmp_path: Path, in_process: InProcessSession) -> None:
    home = tmp_path / "home"
    send(home / "in", *range(6))
    run(in_process, home)
    shutil.copytree(home, tmp_path / "kept")
    at, points, undone = 0, 1000, 0
    while at < points:
        shutil.rmtree(home)
        shutil.copytree(tmp_path / "kept", home)
        with dying(at, *WRITES) as done, suppress(Died):
            run(in_process, home, adapt=True)
            points = len(done)
        if (home / "state" / COUNTS).exists():
            with pytest.raises(StateError, match="is half changed to another query or plan, and nothing is lost"):
                xs.kept(home / "state")
            run(in_process, home, undo=True)
            assert (inner(home), record(home).rates) == (FIRST, {}), at
            undone += 1
        at += 1 if AT_NIGHT else 3
    assert undone


def test_a_checkpoint_in_an_object_store_adapts(tmp_path: Path, in_process: InProcessSession) -> None:
    url = f"memory://{tmp_path.name}/state"
    send(tmp_path / "in", *range(6))
    run(in_process, tmp_path, checkpoint=url)
    send(tmp_path / "in", 6)
    run(in_process, tmp_path, checkpoint=url, adapt=True)
    send(tmp_path / "in", 7)
    run(in_process, tmp_path, checkpoint=url)
    with readable(url) as (directory, _):
        assert QueryRecord.of(directory).rates == FAST
    assert rows(tmp_path) == alone(in_process, tmp_path / "alone", 8)


def test_of_a_store_only_the_record_is_read_without_adapt(tmp_path: Path, in_process: InProcessSession) -> None:
    url = f"memory://{tmp_path.name}/state"
    send(tmp_path / "in", *range(2))
    run(in_process, tmp_path, checkpoint=url)
    with mock.patch.object(RemoteCheckpoint, "restore", side_effect=AssertionError):
        run(in_process, tmp_path, checkpoint=url)
