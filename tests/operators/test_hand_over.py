from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.running import Running
from xmlstream.operators.hand_over import HandOver
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


BIDS = Schema.parse("price INT, channel STRING")


def test_what_is_closed_is_left_out_null_stays_and_the_closed_punctuations_go_out_once(
    session: Session, tmp_path: Path
) -> None:
    running = Running(session, tmp_path, HandOver(("<(,250], *>", "<300, web>"), punctuates=True), BIDS)
    running.shows(
        "(250, a) (null, b) (300, web) (300, null)",
        out="     (null, b)           (300, null) <(,250], *> <300, web>",
    )
    running.restart()
    running.shows("(7, c) (251, c) <[200,250], *> <300, *>", out="(251, c) <300, *>")


def test_in_the_middle_of_a_plan_it_sends_nothing_of_its_own(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, HandOver(("<(,250], *>",)), BIDS).shows("(7, c) (251, c) <9, *>", out="(251, c) <9, *>")


def test_more_punctuations_than_a_condition_holds_leave_out_the_same(session: Session, tmp_path: Path) -> None:
    closed = tuple(str(Punctuation.of(BIDS, channel=f"c{i}")) for i in range(1000))
    running = Running(session, tmp_path, HandOver(closed), BIDS)
    running.shows("(1, c7) (1, c1000) (1, null) (2, c999)", out="(1, c1000) (1, null)")
