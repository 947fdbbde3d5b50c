from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

REPORTS = Schema.parse("sid STRING, hour INT NOT NULL, min INT, currtmp DOUBLE", domains="hour 0.., min 0..59")
BY_HOUR = Sort((SortKey("hour"),))


def test_the_example_of_section_5_2(session: Session, tmp_path: Path) -> None:
    """Tucker et al. 2003, §5.2: [2,4] releases nothing; then [0,3] releases what came through the fourth hour."""
    running = Running(session, tmp_path, BY_HOUR, REPORTS)
    running.shows(
        "(S02, 4, 7, 71) (S01, 5, 0, 70) (S01, 0, 30, 72) (S01, 4, 8, 73) (S01, 2, 0, 74) <*, [2,4], *, *>",
        out="",
        kept="5",
    )
    running.restart()
    running.shows(
        "(S02, 1, 0, 75) <*, [0,3], *, *>",
        out="(S01, 0, 30, 72) (S02, 1, 0, 75) (S01, 2, 0, 74) (S01, 4, 8, 73) (S02, 4, 7, 71) <*, (,4], *, *>",
        kept="1",
        purged="5",
        in_order=True,
    )
    running.shows("<*, *, *, *>", out="(S01, 5, 0, 70) <*, *, *, *>", kept="0")


def test_nulls_and_nan_stand_where_spark_puts_them(session: Session, tmp_path: Path) -> None:
    schema = Schema.parse("v DOUBLE, n INT")
    rows = "(1, 1) (null, 2) (NaN, 3) (Infinity, 4) (-0.0, 5) (0, 4) (1, null)"
    ascending = Running(session, tmp_path / "up", Sort((SortKey("v"),)), schema)
    ascending.shows(f"{rows} <(,0.5), *>", out="")
    ascending.shows(
        "<null, *>                                             | <*, *>",
        out="(null, 2) (0, 4) (0, 5)     <(,0.5), *> <null, *> | (1, null) (1, 1) (Infinity, 4) (NaN, 3) <*, *>",
        in_order=True,
    )  # fmt: skip
    falling = Sort((SortKey("v", True), SortKey("n", False, False)))
    descending = Running(session, tmp_path / "down", falling, schema)
    descending.shows(f"{rows} <[0.5,Infinity], *> <null, *>", out="")
    descending.shows(
        "<NaN, *>                                              | <*, *>",
        out="(NaN, 3) (Infinity, 4) (1, 1) (1, null) <[0.5,NaN], *> | (0, 4) (0, 5) (null, 2) <*, *>",
        in_order=True,
    )  # fmt: skip


def test_the_prefix_ends_within_an_hour(session: Session, tmp_path: Path) -> None:
    by_minute = Sort((SortKey("hour"), SortKey("min"), SortKey("HOUR", True)))
    Running(session, tmp_path, by_minute, REPORTS).shows(
        "(b, 1, 31, 1) (a, 1, 30, 1) (c, 0, 59, 1) (d, 1, null, 1) (e, 0, null, 1)"
        "<*, 0, *, *> <*, 1, null, *> <*, [1,2], [0,30], *>",
        out="(e, 0, null, 1) (c, 0, 59, 1) (d, 1, null, 1) (a, 1, 30, 1)<*, 0, *, *> <*, 1, null, *> <*, 1, [0,30], *>",
        in_order=True,
    )


def test_many_tuples_are_sorted_by_many_tasks_and_small_slices_follow_them(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.operators.sort.ALONE", 10)
    schema = Schema.parse("n INT NOT NULL")
    running = Running(session, tmp_path, Sort((SortKey("n", True),)), schema)
    many = [(n * 7 % 1000,) for n in range(1000)]
    done = running.slice((many, [Punctuation.parse("<[500,)>", schema)]))
    assert done.tuples == [(n,) for n in range(999, 499, -1)]
    before = running.positions
    running.shows("<[497,)>", out="(499) (498) (497) <[497,)>", in_order=True)
    assert running.positions[0] > before[-1]


def test_a_prefix_or_tiles_of_the_first_key_are_promised_on() -> None:
    schemes = parse_schemes("hour prefix; sid; min 0..59 by 10; hour prefix, min 0..59 by 10; hour; hour, sid", REPORTS)
    some, end = BY_HOUR.schemes(schemes)
    assert str(some) == "hour prefix"
    assert end == Scheme(()), "all tiles of the minute are all tuples"
    assert format_schemes(Sort((SortKey("min", True), SortKey("hour"))).schemes(schemes)) == "min 0..59 by 10"
    assert BY_HOUR.schema(REPORTS) == REPORTS


def test_what_cannot_be_sorted_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="without a key"):
        Sort(())
    with pytest.raises(QueryError, match="tags has type ARRAY<INT>, by which"):
        Sort((SortKey("tags"),)).schema(Schema.parse("tags ARRAY<INT>"))
    with pytest.raises(UsageError, match="no attribute hours"):
        Sort((SortKey("hours"),)).schema(REPORTS)
