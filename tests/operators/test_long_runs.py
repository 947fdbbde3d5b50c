"""A hundred thousand auctions, closed one by one: what is held of punctuations, and that it stays right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.nights import AT_NIGHT, SPARK_IN_THE_REST
from tests.harness.running import Running
from xmlstream.operators.join import Join
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

AUCTIONS, PER_SLICE = (100_000, 10_000) if AT_NIGHT else (20_000, 5_000)
OPEN = 37
"""Auctions that are still open when a slice ends."""


def run(session: Session, directory: Path, type_: str, name: str) -> tuple[int, list[int], list[int]]:
    """Each auction opens, is punctuated, gets two bids, and is closed by a punctuation of its bids.

    Returns how many pairs came out, and after each slice what is kept and how many punctuations are held.
    """
    auction, bid = (
        Schema.parse(f"id {type_} NOT NULL, seller INT"),
        Schema.parse(f"auction {type_} NOT NULL, price INT"),
    )
    running = Running(session, directory, Join("inner", ("id",), ("auction",)), auction, bid)

    def key(n: int) -> int | str:
        return name.format(n) if name else n

    pairs = 0
    kept: list[int] = []
    held: list[int] = []
    for first in range(0, AUCTIONS, PER_SLICE):
        opened = range(first, first + PER_SLICE)
        closed = range(max(0, first - OPEN), first + PER_SLICE - OPEN)
        unique = [Punctuation.of(auction, id=str(key(n))) for n in opened]
        over = [Punctuation.of(bid, auction=str(key(n))) for n in closed]
        done = running.slice(
            ([(key(n), n % 7) for n in opened], unique),
            ([(key(n), price) for n in opened for price in (1, 2)], over),
        )
        pairs += len(done.tuples)
        kept.append(done.kept)
        held.append(running.punctuations_held)
        if first == 2 * PER_SLICE:
            running.restart()
    return pairs, kept, held


@pytest.mark.slow
@SPARK_IN_THE_REST
def test_integer_ids_closed_one_by_one_leave_a_few_punctuations(session: Session, tmp_path: Path) -> None:
    pairs, kept, held = run(session, tmp_path, "INT", "")
    assert pairs == 2 * AUCTIONS
    assert kept == [OPEN] * (AUCTIONS // PER_SLICE)
    assert max(held) < 300


@SPARK_IN_THE_REST
def test_string_ids_which_never_coalesce_are_forgotten(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.operators.test_long_runs.AUCTIONS", 10_000)
    monkeypatch.setattr("tests.operators.test_long_runs.PER_SLICE", 5_000)
    pairs, kept, held = run(session, tmp_path, "STRING", "auction{}")
    assert pairs == 2 * 10_000
    assert kept == [OPEN] * 2
    assert held[-1] == held[0]
