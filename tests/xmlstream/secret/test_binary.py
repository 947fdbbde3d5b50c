"""Binary operators: which contents of two windows an engine makes visible together."""

from __future__ import annotations

import pytest

from tests.oracles.secret_joins import join_reports, predict_join, two_streams
from xmlstream.punct_ns.errors import UsageError
from xmlstream.secret.model import CORAL8, STREAMBASE, Windows

ROWS = two_streams([
    ("left", 1, 10), ("right", 5, 11), ("left", 2, 11), ("right", 6, 12), ("left", 3, 14), ("right", 7, 14),
])  # fmt: skip


def test_either_report_shows_what_the_other_window_holds() -> None:
    reports = list(join_reports(*ROWS, (Windows(2, 1), Windows(2, 1)), STREAMBASE, "either"))
    assert [(r.instant, r.side) for r in reports] == [
        (10, "left"),
        (11, "right"),
        (11, "left"),
        (12, "left"),
        (12, "right"),
        (13, "right"),
    ]
    assert predict_join(reports) == [
        [],
        [(1, 5), (2, 5)],
        [(1, 5), (2, 5)],
        [(2, 5), (2, 6)],
        [(2, 5), (2, 6)],
        [],
    ]
    assert predict_join(reports, lambda a, b: (a, b) == (2, 6))[-2] == [(2, 6)]


def test_both_must_report() -> None:
    either, both = (
        list(join_reports(*ROWS, (Windows(2, 1), Windows(2, 1)), STREAMBASE, when)) for when in ("either", "both")
    )
    assert [report for report in either if report in both] == both
    assert [(r.instant, r.side) for r in both] == [(11, "left"), (12, "right")]


def test_windows_may_differ_and_an_engine_reports_each_by_its_own_rules() -> None:
    reports = list(join_reports(*ROWS, (Windows(4, 2), Windows(1, 1)), CORAL8, "either"))
    assert all(len(report.right) <= 1 for report in reports)
    assert {len(report.left) for report in reports} == {1, 2}
    with pytest.raises(UsageError):
        list(join_reports(ROWS[0], (), (Windows(2, 1), Windows(2, 1)), CORAL8, "either"))
