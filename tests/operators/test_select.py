from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.running import Running
from xmlstream.operators.select import Select
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


BIDS = Schema.parse("price INT, channel STRING")


def test_tuples_for_which_the_predicate_is_null_are_not_selected_and_punctuations_pass(
    session: Session, tmp_path: Path
) -> None:
    Running(session, tmp_path, Select("price > 250"), BIDS).shows(
        "(100, a) (300, null) (null, c) <7, *> <*, web>",
        out="    (300, null)           <7, *> <*, web>",
    )  # fmt: skip


def test_on_request_what_the_predicate_excludes_is_punctuated_once(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Select("price > 250", punctuates=True), BIDS)
    running.shows("(300, null) (null, c) (250, c)", out="(300, null) <(,250], *> <null, *>")
    running.restart()
    running.shows(
        "<7, *> <*, web> <[200,260], *> | <7, *> <[200,260], *>",
        out="   <*, web> <[200,260], *> |                      ",
    )  # fmt: skip
