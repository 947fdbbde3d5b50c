"""What the benchmark's report says of numbers; the numbers themselves are `make bench`'s."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks import reporting
from tests.benchmarks.measuring import Measure, take_turns
from tests.benchmarks.reporting import comparison, number, table, write

RATE = Measure("rate", "tuples/s", "more", [90.0, 100.0, 400.0], "other", [20.0, 30.0], 100, 4)
TIME = Measure("time", "s", "less", [0.5, 0.7, 0.6], target=0.6)


def test_a_measure_is_its_median_and_meets_its_targets_when_all_of_them_hold() -> None:
    assert (RATE.value, RATE.contender_value, RATE.ratio, RATE.met) == (100, 25, 4, True)
    assert replace(RATE, target=101).met is False
    assert replace(RATE, ratio_target=4.1).met is False
    assert (TIME.value, TIME.ratio, TIME.met) == (0.6, None, True)
    assert replace(TIME, target=0.59).met is False
    assert replace(TIME, target=None).met is None


def test_a_rate_must_reach_its_ratio_and_a_time_must_not_exceed_it() -> None:
    slow = Measure("time", "s", "less", [3.0], "other", [1.0], ratio_target=2)
    assert slow.met is False
    assert replace(slow, better="more").met is True


def test_contenders_take_turns_and_every_other_round_goes_backwards() -> None:
    turns: list[str] = []

    def turn(name: str) -> float:
        turns.append(name)
        return float(len(turns))

    found = take_turns({"a": lambda: turn("a"), "b": lambda: turn("b")}, rounds=3)
    assert "".join(turns) == "abbaab"
    assert found == {"a": [1, 4, 5], "b": [2, 3, 6]}


def test_a_contender_of_few_rounds_is_in_the_first_ones_and_no_round_begins_when_time_is_up() -> None:
    contenders = {"a": lambda: 1.0, "b": lambda: 2.0}
    assert take_turns(contenders, rounds=3, few={"b": 1}) == {"a": [1, 1, 1], "b": [2]}
    assert take_turns(contenders, rounds=3, within=0) == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("now", "worse"),
    [
        # Half as fast on a machine on which the other is half as fast, too.
        (replace(RATE, ours=[50.0], theirs=[12.5]), False),
        (replace(RATE, theirs=[28.5]), False),
        (replace(RATE, theirs=[29.5]), True),
        (replace(RATE, ours=[1000.0]), False),
        (replace(TIME, ours=[0.68]), False),
        (replace(TIME, ours=[0.70]), True),
        (replace(TIME, ours=[0.1]), False),
    ],
)
def test_what_is_more_than_15_percent_worse_by_its_ratio_or_by_itself_is_named(
    now: Measure, worse: bool, tmp_path: Path
) -> None:
    last = tmp_path / "last.json"
    write([RATE, TIME], 60, tmp_path / "before", last)
    last.write_bytes((tmp_path / "before" / "bench.json").read_bytes())
    text = write([now], 60, tmp_path / "now", last)
    assert ("worse by" in text) == worse
    assert "1 measures" in text
    assert "1 committed ones were not measured" in text
    assert (tmp_path / "now" / "bench.md").read_text(encoding="utf-8") == text


def test_a_difference_is_not_compared_since_its_terms_are(tmp_path: Path) -> None:
    difference = replace(TIME, ours=[-0.2], is_compared=False)
    write([difference], 60, tmp_path, tmp_path / "none.json")
    text = write([replace(difference, ours=[0.5])], 60, tmp_path / "now", tmp_path / "bench.json")
    assert "0 measures" in text
    assert "not measured" not in text


def test_numbers_of_another_scale_are_not_compared(tmp_path: Path) -> None:
    write([RATE], 60, tmp_path, tmp_path / "none.json")
    found = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert "Not compared" in comparison({**found, "scale": 0.125}, {**found, "scale": 1.0})[0]


def test_the_table_has_a_line_for_each_measure_with_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "ROUNDS", 4)
    rate, time = table([RATE.json(), TIME.json()])[2:4]
    assert rate == "| rate (3 rounds) | 100 tuples/s | other (2 rounds) | 25 | 4.00 | ≥ 100, ratio ≥ 4 | yes |"
    assert time == "| time (3 rounds) | 0.6 s |  |  |  | ≤ 0.6 | yes |"


def test_a_number_has_three_places_that_count() -> None:
    assert [number(each) for each in (1234567.0, 1999.9, 12.345, 0.012345)] == ["1,230,000", "2,000", "12.3", "0.0123"]
