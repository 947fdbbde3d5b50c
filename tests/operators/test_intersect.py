from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.running import Running
from xmlstream.operators.intersect import Intersect
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


NUMBERS = Schema.parse("n INT")


def intersect(session: Session, path: Path) -> Running:
    return Running(session, path, Intersect(NUMBERS), NUMBERS, NUMBERS)


def test_what_both_have_comes_once_null_too(session: Session, tmp_path: Path) -> None:
    running = intersect(session, tmp_path)
    running.shows("(1) (1) (2) (null)", "(2) (2) (3)", out="(2)", kept="4")
    running.restart()
    # Kept are 1 alone, and what is emitted: 2, 3 and null.
    running.shows("(2) (3)", "(null) (2)", out="(3) (null)", kept="4")


def test_what_is_emitted_is_remembered_although_the_other_input_has_closed_it(session: Session, tmp_path: Path) -> None:
    """Tucker et al. 2003, Table 4, taken alone would forget 2 and let it out again."""
    intersect(session, tmp_path).shows(
        "(2) (5)  | (2)     | (2)    ",
        "(2)      | (2) <9> | <[1,5]>",
        out="(2)  |     <9> | <[1,5]>",
        kept="    |         | 0      ",
    )  # fmt: skip


def test_what_one_input_closes_goes_out_but_for_what_may_yet_come_of_its_kept_tuples(
    session: Session, tmp_path: Path
) -> None:
    intersect(session, tmp_path).shows(
        "(2) (7) <[1,3]>  |        ",
        "                 | (2)    ",
        out="    <{1,3}>  | (2) <2>",
    )  # fmt: skip


def test_null_does_not_wait_for_an_input_that_has_none(session: Session, tmp_path: Path) -> None:
    present = Schema.parse("n INT NOT NULL")
    running = Running(session, tmp_path, Intersect(NUMBERS), NUMBERS, present)
    running.shows("(null) (1) | (null) (2)", "(3) | (1)", out="| (1)", kept="2 | 3")


def test_what_one_input_has_no_null_of_is_never_null(session: Session, tmp_path: Path) -> None:
    present = Schema.parse("n INT NOT NULL")
    running = Running(session, tmp_path, Intersect(NUMBERS), NUMBERS, present)
    assert Intersect(NUMBERS).schema(NUMBERS, present).ddl() == "`n` INT NOT NULL"
    running.shows("(1) <{2,null}> | <null>", "(1) | <(,)>", out="(1) <2> | <*>")
