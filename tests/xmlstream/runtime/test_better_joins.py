"""What a run measures of its joins, when another plan is better at that, and what the finding says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests.harness.chained_streams import BETTER_ONE, CHAIN, FAST, RUNS, last, run, send, tables
from xmlstream.diagnosis.inspection import inspect
from xmlstream.diagnosis.report import in_words
from xmlstream.optimizer.choose_joins import with_rates
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node
from xmlstream.runtime import better_joins
from xmlstream.runtime.better_joins import BETTER, CLEARLY, better_plans, measured_rates
from xmlstream.runtime.checkpoint.slice_report import Measured
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession


def plan(query: str, **rates: str) -> Node:
    return optimized(read(tables("in", **rates) + query).sketch())


@pytest.fixture
def soon() -> Any:
    """Rates are known after four slices."""
    with mock.patch.object(better_joins, "ENOUGH", 4):
        yield


def test_a_plan_that_keeps_clearly_less_is_named_with_what_both_keep() -> None:
    (one,) = better_plans(plan(CHAIN), FAST)
    assert (one.runs.text, one.runs.kept, one.better.text, one.better.kept) == (RUNS, 44, BETTER_ONE, 26)
    told = one.finding(1234)
    assert (told.source, told.kind) == ("join-2", BETTER)
    assert told.what == (
        f"at the measured rates (s1 20, s2 2, s3 2 tuples a slice) {RUNS} keeps 44 tuples for each slice that a value"
        f" stays open, and {BETTER_ONE} would keep 26; a start with adapt=True goes over to it, which reads the 1,234"
        " rows that its joins keep, and joins them anew"
    )


@pytest.mark.parametrize("fast", [1.0, 3.0, 4.9, 5.1, 30.0])
def test_a_plan_that_keeps_a_little_less_is_not(fast: float) -> None:
    """Three streams of which one is fast: 2r + 2 are kept, or r + 3."""
    assert bool(better_plans(plan(CHAIN), {"s1": fast, "s2": 1.0, "s3": 1.0})) == (2 * fast + 2 >= CLEARLY * (fast + 3))


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.7, 1.0, 1.9, 6.0, 40.0, 900.0])
@pytest.mark.parametrize("which", ["s1", "s2", "s3"])
def test_the_plan_that_is_chosen_at_these_rates_has_no_better_one(which: str, rate: float) -> None:
    """So a second start with the same rates changes nothing."""
    written = read(tables("in") + CHAIN).sketch()
    rates = {**dict.fromkeys(FAST, 1.0), which: rate}
    assert better_plans(optimized(with_rates(written, rates)), rates) == []


def test_a_purge_that_the_query_sets_stays() -> None:
    lazy = CHAIN.replace("SELECT", "SELECT /*+ LAZY_PURGE(4) */")
    assert better_plans(plan(lazy), FAST) == []


def test_a_declared_rate_that_is_not_what_was_measured_is_said_in_its_own_words() -> None:
    (one,) = better_plans(plan(CHAIN, s1="1", s2="1", s3="1"), FAST)
    told = one.finding(1).what
    assert (
        f"and {BETTER_ONE} would keep 26; it follows the option rate: declare s1 '20', s2 '2', s3 '2', as measured"
        in told
    )
    assert "start with change=True, which reads the 1 row that its joins keep" in told
    # What it names is followed.
    assert better_plans(plan(CHAIN, s1="20", s2="2", s3="2"), FAST) == []


def test_two_joins_have_no_other_plan() -> None:
    assert better_plans(plan("SELECT a, c FROM s1 JOIN s2 ON s1.b = s2.b"), FAST) == []


def test_rates_are_means_over_slices_with_tuples_of_which_the_last_count_most() -> None:
    measured = Measured()
    assert measured.rates == {}
    for _ in range(Measured.MOST):
        measured = measured.after({"a": 4, "b": 0}).after({"a": 0, "b": 0}).halved
    assert (measured.slices, measured.rates) == (Measured.MOST // 2, {"a": 4.0, "b": 2 / Measured.MOST})
    for _ in range(Measured.MOST):
        measured = measured.after({"a": 0, "b": 1}).halved
    # Both times half of what came before is forgotten.
    assert (measured.slices, measured.rates) == (Measured.MOST // 2, {"a": 1.0, "b": 0.75})


def test_a_run_says_it_once_it_has_measured_enough(tmp_path: Path, in_process: InProcessSession, soon: None) -> None:
    send(tmp_path / "in", *range(3))
    assert [one.kind for one in run(in_process, tmp_path).findings] == []
    send(tmp_path / "in", *range(3, 9))
    seen: list[list[str]] = []
    with mock.patch.object(better_joins, "better_plans", wraps=better_plans) as compared:
        summary = run(
            in_process, tmp_path, on_slice=lambda report: seen.append([one["kind"] for one in report["findings"]])
        )
    # With slice 4, and again with slice 8, of 9.
    assert compared.call_count == 2
    assert seen == [[BETTER]] * 6
    (told,) = summary.findings
    (shown,) = inspect(tmp_path / "state").better
    assert shown == str(told)
    assert f"noticed in {told}" in in_words(inspect(tmp_path / "state"))
    kept = sum(one.kept for one in last(tmp_path).report.operators if one.name.startswith("join"))
    assert f"reads the {kept} rows" in told.what


def test_a_restart_says_it_again_with_its_first_slice(tmp_path: Path, in_process: InProcessSession, soon: None) -> None:
    send(tmp_path / "in", *range(5))
    run(in_process, tmp_path)
    send(tmp_path / "in", 5)
    with mock.patch.object(better_joins, "better_plans", wraps=better_plans) as compared:
        assert [one.kind for one in run(in_process, tmp_path).findings] == [BETTER]
    assert compared.call_count == 1
    assert last(tmp_path).measured == Measured(6, {"s1": 120, "s2": 12, "s3": 12})


@pytest.mark.parametrize("options", [{"as_written": True}, {"keep_open": False}, {"checkpoint": None}])
def test_it_is_not_said_where_no_start_could_follow_it(
    tmp_path: Path, in_process: InProcessSession, soon: None, options: dict[str, Any]
) -> None:
    send(tmp_path / "in", *range(5))
    with mock.patch.object(better_joins, "better_plans", wraps=better_plans) as compared:
        assert run(in_process, tmp_path, **options).findings == ()
    assert compared.call_count == 0


def test_rates_are_measured_behind_the_selects_below_a_join(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", *range(4))
    run(in_process, tmp_path, f"{CHAIN} WHERE a < 3")
    assert last(tmp_path).measured == Measured(4, {"s1": 12, "s2": 8, "s3": 8})
    rates = measured_rates(str(tmp_path / "state"))
    assert (rates["s1"], rates["s2"], rates["s3"]) == (3, 2, 2)
    assert (
        measured_rates(str(tmp_path / "state"), per_second=True)["s1"]
        > measured_rates(str(tmp_path / "state"), per_second=True)["s2"] * 9
    )


def test_a_query_whose_joins_are_not_chosen_records_nothing(tmp_path: Path, in_process: InProcessSession) -> None:
    send(tmp_path / "in", 0)
    run(in_process, tmp_path, "SELECT a, c FROM s1 JOIN s2 ON s1.b = s2.b")
    assert last(tmp_path).measured is None
    (record,) = (tmp_path / "state" / "commits").iterdir()
    assert "measured" not in record.read_text()
