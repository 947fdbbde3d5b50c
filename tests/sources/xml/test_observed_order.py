"""The order of values that is guessed from a sample: outliers are counted, and do not decide its slack."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.sources.xml.inference.observed_order import ObservedOrder
from xmlstream.sources.xml.inference.proposal import proposal

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (range(30), ObservedOrder(None, (), (), 1)),
        ([*range(30), 28, 30], ObservedOrder(1, (), (), 1)),
        ([*range(2000, 2030), 5, 2030], ObservedOrder(None, (2024,), (), 1)),
        ([*range(20), 9000, *range(20, 40)], ObservedOrder(None, (), (8981,), 1)),
        ([*range(20), 9000, 9001, *range(20, 40)], None),
        ([*range(30), *range(30)], None),
        ([9000, *range(300)], ObservedOrder(None, (), (9000,), 1)),
        ([1, 2, 3, 2, 9, 1, 10], None),
    ],
)
def test_outliers_are_told_from_an_order(values: list[int], found: ObservedOrder | None) -> None:
    assert ObservedOrder.of(list(values)) == found


@pytest.mark.parametrize("draw", range(SEED, SEED + (300 if AT_NIGHT else 15)))
def test_the_guess_reads_its_sample(in_process: InProcessSession, tmp_path: Path, draw: int) -> None:
    random = Random(draw)
    step, late = random.choice((1, 7, 60)), random.choice((0, 0, 5, 30))
    times, at = list[datetime](), BEGIN
    for _ in range(random.choice((30, 150, 700))):
        at += timedelta(seconds=random.randrange(1, 2 * step + 1))
        times.append(at - timedelta(seconds=random.randrange(late + 1) if random.random() < 0.2 else 0))
    outliers = random.randrange(1 + max(1, len(times) // 150))
    for place in random.sample(range(6, len(times)), outliers):
        times.insert(place, times[place - 1] - timedelta(hours=random.choice((9, 40, 900))))
    rows = "".join(f"<r><at>{time:%Y-%m-%dT%H:%M:%SZ}</at></r>" for time in times)
    (tmp_path / "a.xml").write_text(f"<rs>{rows}</rs>", encoding="utf-8")
    found = proposal(str(tmp_path / "a.xml")).create_table()
    rule = re.search(r"-- punctuate '(.*?)'", found)
    if rule is None:  # no order falls by a quarter of its range, or in a quarter of its values
        falls = sum(time < greatest for time, greatest in zip(times, accumulate(times, max), strict=True))
        assert 4 * late > (at - BEGIN).total_seconds() or 4 * falls >= len(times), found
        return
    slack = re.search("slack ([0-9]+)s", rule[1])
    assert (int(slack[1]) if slack else 0) <= late
    taken = re.sub("-- (punctuate|ungrammatical) ", r"\1 ", found)
    assert xs.from_sql(in_process, f"{taken} SELECT at FROM r").to_arrow().num_rows == len(times) - outliers


def test_what_is_ahead_is_set_aside_and_what_is_late_is_counted(tmp_path: Path) -> None:
    minutes = [*range(40), 99_000, *range(40, 60), -9_000, *range(60, 300)]
    rows = "".join(f"<r><at>{BEGIN + timedelta(minutes=each):%Y-%m-%dT%H:%M:%SZ}</at></r>" for each in minutes)
    (tmp_path / "a.xml").write_text(f"<rs>{rows}</rs>", encoding="utf-8")
    text = proposal(str(tmp_path / "a.xml")).create_table()
    assert "-- punctuate 'order of at, max_ahead 1h'" in text
    why = "its values never fall; 1 by 68 days ahead, which max_ahead sets aside (with Spark), but for 1 by 6 days late"
    assert why in text
    assert "-- ungrammatical 'divert'" in text
