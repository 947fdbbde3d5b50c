"""A night keeps what fails, and begins with it the next time."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from tests.campaigns import nights
from tests.campaigns.nights import Search, night, rounds, searches

PROPERTY = """
from hypothesis import given, settings, strategies as st

@settings(database=None)
@given(st.integers())
def test_all_are_below(n):
    assert n < {bound}
"""


def test_a_failure_is_kept_until_its_search_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = tmp_path / "test_bound.py"
    test.write_text(PROPERTY.format(bound=10))
    record = tmp_path / "out" / "open.json"

    def one_search() -> list[Search]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nights, "rounds", lambda *given: islice(rounds(*given), 1))
            return night([str(test)], 1, 7, 100, tmp_path / "out")

    (failed,) = one_search()
    assert json.loads(record.read_text()) == [{"name": str(test), "seed": failed.seed, "examples": 100}]
    written = next((tmp_path / "out").glob("test_bound-*.txt"))
    assert "Failing test case" in written.read_text()
    assert f"seed {failed.seed}: FAILED" in capsys.readouterr().out

    test.write_text(PROPERTY.format(bound="float('inf')"))
    assert one_search() == []
    assert json.loads(record.read_text()) == []
    assert f"seed {failed.seed}: passed" in capsys.readouterr().out


@pytest.mark.rest
def test_a_search_that_the_time_ends_has_not_failed(tmp_path: Path) -> None:
    test = tmp_path / "test_long.py"
    test.write_text("import time\n\ndef test_that_it_takes_long():\n    time.sleep(900)\n")
    outcome = nights.run(Search(str(test), 1, 1), 12)
    assert outcome.passed is None
    assert outcome.seconds < 300


def test_each_round_has_every_search_with_a_seed_of_its_own() -> None:
    first = list(islice(rounds(["a", "b", "c"], 5, 10, []), 6))
    assert [sorted(each.name for each in part) for part in (first[:3], first[3:])] == [["a", "b", "c"]] * 2
    assert len({each.seed for each in first}) == 2
    assert first == list(islice(rounds(["a", "b", "c"], 5, 10, []), 6))


def test_the_searches_are_those_that_draw() -> None:
    found = searches()
    assert "tests/properties/test_stalls.py" in found
    assert "tests/operators/test_distinct.py" not in found
    assert "receivers" in found
