from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from tests.harness.running import Running
from xmlstream.operators.merge import Merge
from xmlstream.operators.required_punctuations import Held
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


HOURS = Schema.parse("hour INT, temp DOUBLE")


def test_inputs_that_close_different_values_propagate_exactly_the_meets(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, Merge(HOURS), HOURS, HOURS).shows(
        "(1, 5)                        <1, *>    ",
        "       (1, 5) (9, 2)          <{1,2}, *>",
        out="(1, 5) (1, 5) (9, 2)      <1, *>    ",
    )  # fmt: skip


def test_a_punctuation_waits_for_its_fellow_and_is_said_once(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Merge(HOURS), HOURS, HOURS, HOURS)
    running.shows("<[1,5], *>", "", "<*, [0,10]>", out="")
    running.restart()
    running.shows(
        "                     | <4, *>",
        "<[3,8], *>           | <4, 3>",
        "                     |       ",
        out="<[3,5], [0,10]>  |       ",
    )  # fmt: skip


def test_a_bounded_input_closes_the_wider_outputs_values(session: Session, tmp_path: Path) -> None:
    narrow, wide = Schema.parse("min INT NOT NULL", "min 0..59"), Schema.parse("min INT")
    Running(session, tmp_path, Merge(wide), narrow, wide).shows("<*>", "<{7,null}>", out="<{7,null}>")


def test_null_does_not_wait_for_an_input_that_has_none(session: Session, tmp_path: Path) -> None:
    present = Schema.parse("hour INT NOT NULL, temp DOUBLE")
    merge = Merge(HOURS)
    Running(session, tmp_path, merge, HOURS, present).shows(
        "<{1,null}, *> |              ",
        "              | <*, *>       ",
        out="<null, *> | <{1,null}, *>",
    )  # fmt: skip
    (way,) = merge.wanted(Punctuation.of(HOURS, hour="null"), cast(Held, None), HOURS, present)
    assert [(i, str(p)) for i, p in way] == [(0, "<null, *>")]


def test_all_values_piece_by_piece_are_all_beside_an_input_with_null_and_more_of_them(
    session: Session, tmp_path: Path
) -> None:
    narrow, wide = Schema.parse("min INT NOT NULL", "min 0..59"), Schema.parse("min INT")
    running = Running(session, tmp_path, Merge(wide), narrow, wide)
    running.shows("| <0> | <[1,58]> | <59>", "<*> | | |", out="<null> | <(,0]> | <[1,58]> | <[59,)>")
