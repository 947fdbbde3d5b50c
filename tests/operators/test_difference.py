from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Row, Running
from xmlstream.operators.difference import Difference
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


NUMBERS = Schema.parse("n INT")


def difference(session: Session, path: Path) -> Running:
    return Running(session, path, Difference(NUMBERS), NUMBERS, NUMBERS)


def rows(*values: int) -> list[Row]:
    return [(value,) for value in values]


def test_a_tuple_comes_out_when_the_negative_input_has_passed_it(session: Session, tmp_path: Path) -> None:
    """As sdiff of Tucker et al. 2003, §4.2."""
    running = difference(session, tmp_path)
    # Undecided are 1 and null; kept is 3 of the negative input, too.
    running.shows("(1) (3) (3) (null) <[1,2]>", "(3)", out="<2>", kept="3")
    running.restart()
    running.shows(
        "          | (5)  <*>   ",
        "<{1,3}>   | (null)  <5>",
        out="(1) <1> | (5)  <*>",
        kept="  2     | 0",
    )  # fmt: skip


def test_what_is_out_does_not_come_again(session: Session, tmp_path: Path) -> None:
    difference(session, tmp_path).shows(
        "(1) (1)   | (1) (2)",
        "<1>       |        ",
        out="(1)   |        ",
        kept=" 1   | 2",
    )  # fmt: skip


def test_state_too_large_to_rewrite_loses_what_the_negative_input_has(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.operators.state.tuple_log.SMALL", 5)
    monkeypatch.setattr("xmlstream.operators.storage.segments.COLLECTED", 30)
    running = difference(session, tmp_path)
    running.slice((rows(*range(20)), []), ([], []))
    running.shows("(20)", "(4) (5) (20)", out="", kept=f"{18 + 3}")
    running.restart()
    running.shows("(4) (21)", "<[0,9]>", out="(0) (1) (2) (3) (6) (7) (8) (9)")


def test_null_does_not_wait_for_an_input_that_has_none(session: Session, tmp_path: Path) -> None:
    present = Schema.parse("n INT NOT NULL")
    running = Running(session, tmp_path, Difference(NUMBERS), NUMBERS, present)
    running.shows("(null) (1) | (null) (2)", "(3) | <1>", out="(null) | (1)")


def test_null_is_not_kept_for_a_first_input_that_has_none(session: Session, tmp_path: Path) -> None:
    present = Schema.parse("n INT NOT NULL")
    running = Running(session, tmp_path, Difference(NUMBERS), present, NUMBERS)
    running.shows("(1) | (2)", "(null) (3) | (null) <1>", out="| (1)", kept="2 | 3")


def test_what_the_first_input_has_no_null_of_is_never_null(session: Session, tmp_path: Path) -> None:
    present = Schema.parse("n INT NOT NULL")
    running = Running(session, tmp_path, Difference(NUMBERS), present, NUMBERS)
    assert Difference(NUMBERS).schema(NUMBERS, present).ddl() == "`n` INT"
    assert Difference(NUMBERS).schema(present, NUMBERS).ddl() == "`n` INT NOT NULL"
    running.shows("(1) <*> | ", "(null) | <(,)>", out="<(,0]> <[2,)> | (1) <1>")
