from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.distinct import Distinct
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


NUMBERS = Schema.parse("n INT")


def distinct(session: Session, path: Path) -> Running:
    return Running(session, path, Distinct(), NUMBERS)


def test_the_table_of_section_4_2(session: Session, tmp_path: Path) -> None:
    """Tucker et al. 2003, §4.2: [1,5], [3], [P(0,4)], [5,6,7]; the exclusive range there is written out here."""
    distinct(session, tmp_path).shows(
        "(1) (5)     | (3) | <[0,4]> | (5) (6) (7)",
        out="(1) (5) | (3) | <[0,4]> | (6) (7)",
        kept=" 2     |  3  |  1      |  3     ",
        purged="     |     |  2      |        ",
    )  # fmt: skip


def test_null_is_a_value_that_comes_once_and_is_closed_by_its_own_punctuation(session: Session, tmp_path: Path) -> None:
    distinct(session, tmp_path).shows(
        "(null) (null) (4) | (null) <(,)> | <null>",
        out="(null) (4)    | <(,)>        | <null>",
        kept=" 2           | 1            | 0     ",
    )  # fmt: skip


def test_what_was_kept_survives_a_restart(session: Session, tmp_path: Path) -> None:
    running = distinct(session, tmp_path)
    running.shows("(1) (2) (3) <1>", out="(1) (2) (3) <1>", kept="2")
    running.restart()
    running.shows("(2) (3) (4)", out="(4)", kept="3")


def test_a_thousand_punctuations_of_single_values_purge_by_a_broadcast_table(session: Session, tmp_path: Path) -> None:
    running = distinct(session, tmp_path)
    running.slice(([(n,) for n in range(3000)], []))
    even = [Punctuation.parse(f"<{n}>", NUMBERS) for n in range(0, 2000, 2)]
    done = running.slice(([], even))
    assert (done.kept, done.purged) == (2000, 1000)


def test_state_too_large_to_rewrite_is_purged_when_read(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.operators.state.tuple_log.SMALL", 5)
    monkeypatch.setattr("xmlstream.operators.storage.segments.COLLECTED", 30)
    running = distinct(session, tmp_path)
    running.slice(([(n,) for n in range(20)], []))
    running.shows("(20) (21) <[0,4]>", out="(20) (21) <[0,4]>", kept="17")
    running.restart()
    running.shows(
        "(5) (6) (22) | <[0,17]> | <*>",
        out="(22)     | <[0,17]> | <*>",
        kept="        | 5        | 0  ",
    )  # fmt: skip
