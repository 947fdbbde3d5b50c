"""The engine of each slice: in process while it is small and proven, the other one otherwise.

What stands for Spark here is a second DuckDB, so that the choice is tested without Java. Both count what they compute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from xmlstream.operators.frames.auto_engine import AutoEngine
from xmlstream.operators.frames.expression import COUNT, Equal
from xmlstream.operators.frames.frame import Frame
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.errors import QueryError, UsageError, left_to_spark

ROWS = pa.table({"a": [1, 2, 3, 4], "t": ["x", "É", "y", None]})
DDL = "a BIGINT, t STRING"
ABOVE_TWO, EQUAL = "a + 0 > 2", Equal("a", "b")


class Counting(InProcessEngine):
    """Counts what it computes."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.asked = name, 0

    def table(self, frame: Frame) -> pa.Table:
        self.asked += 1
        return super().table(frame)

    def write(self, frame: Frame, path: str) -> None:
        self.asked += 1
        super().write(frame, path)


class Refusing(Counting):
    """Refuses every text by its value, as `lower` of letters beyond ASCII."""

    def table(self, frame: Frame) -> pa.Table:
        super().table(frame)
        raise QueryError(f"[NOT_PROVEN] lower of letters beyond ASCII is not proven: {left_to_spark()}")

    def write(self, frame: Frame, path: str) -> None:
        super().write(frame, path)
        raise QueryError(f"[NOT_PROVEN] lower of letters beyond ASCII is not proven: {left_to_spark()}")


class Both:
    """An engine for each slice, and the two that it chooses from; the other one counts as started once it was."""

    def __init__(self, here: Counting, start: Callable[[], Any] | None = None, most_rows: int = 10) -> None:
        self.here, self.other, self.starts = here, Counting("spark"), 0
        self.engine = AutoEngine(here, start or self._started, most_rows)
        self.engine.ends.callback(self.other.close)

    def _started(self) -> Any:
        self.starts += 1
        return self.other

    @property
    def asked(self) -> tuple[int, int]:
        return self.here.asked, self.other.asked


@pytest.fixture
def both() -> Iterator[Both]:
    made = Both(Counting("duckdb"))
    yield made
    made.engine.close()


def values(frame: Frame) -> list[int]:
    found: list[Any] = frame.to_arrow()["a"].to_pylist()
    return sorted(found)


def test_a_small_slice_is_computed_in_process_and_nothing_is_started(both: Both) -> None:
    both.engine.begin(10)
    assert values(both.engine.rows(ROWS, DDL).where(ABOVE_TWO)) == [3, 4]
    assert (both.asked, both.starts, both.engine.name) == ((1, 0), 0, "duckdb")


def test_a_large_slice_is_computed_by_spark_which_is_started_once(both: Both, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        both.engine.begin(11)
        assert values(both.engine.rows(ROWS, DDL).where(ABOVE_TWO)) == [3, 4]
    assert (both.asked, both.starts, both.engine.name) == ((0, 2), 1, "spark")
    assert caplog.messages == ["starting Spark: a slice has 11 rows, with those that are kept"]


def test_what_is_kept_crosses_the_boundary_both_ways(both: Both, tmp_path: Path) -> None:
    both.engine.begin(1)
    kept = both.engine.rows(ROWS, DDL)
    kept.write(tmp_path / "1.parquet")
    both.engine.begin(11)
    large = both.engine.parquet(DDL, str(tmp_path / "1.parquet"))
    assert values(large.union(kept).group_by(["a"], {"n": COUNT})) == [1, 2, 3, 4]
    both.engine.begin(1)
    assert values(large.join(kept.renamed({"b": "a"}), EQUAL)) == [1, 2, 3, 4]
    assert both.asked == (2, 1)


def test_tuples_are_counted_by_the_engine_that_computes_them(both: Both) -> None:
    for rows in (1, 11, 1):
        both.engine.begin(rows)
        frame, found = both.engine.rows(ROWS, DDL).where(ABOVE_TWO).observed({"n": COUNT})
        assert found() == {}
        frame.group_by([], {"a": COUNT}).to_arrow()
        assert found() == {"n": 2}


def test_a_slice_with_a_value_that_is_not_proven_goes_to_spark_and_the_next_begins_in_process(tmp_path: Path) -> None:
    both = Both(Refusing("duckdb"))
    for number in (1, 2):
        both.engine.begin(1)
        frame = both.engine.rows(ROWS, DDL).where(ABOVE_TWO)
        assert values(frame) == [3, 4]
        assert both.engine.name == "spark"
        frame.write(tmp_path / f"{number}.parquet")
        assert both.asked == (number, 2 * number)
    both.engine.begin(1)
    frame.write(tmp_path / "3.parquet")  # over what DuckDB has left there
    assert values(both.engine.parquet(DDL, str(tmp_path / "3.parquet"))) == [3, 4]
    assert both.starts == 1
    both.engine.close()


def test_an_error_of_the_data_is_no_reason_for_spark(both: Both) -> None:
    both.engine.begin(1)
    with pytest.raises(QueryError, match="DIVIDE_BY_ZERO"):
        both.engine.rows(ROWS, DDL).with_column("z", "1 / (a - 1)").to_arrow()
    assert both.starts == 0


def test_without_a_spark_large_slices_are_computed_in_process_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse() -> Any:
        raise UsageError("there is no Java", hint="install it; without Java, use --engine duckdb")

    both = Both(Counting("duckdb"), refuse)
    for _ in range(3):
        both.engine.begin(11)
        assert values(both.engine.rows(ROWS, DDL).where(ABOVE_TWO)) == [3, 4]
    assert both.engine.name == "duckdb"
    assert [each.levelno for each in caplog.records] == [logging.WARNING] * 2
    assert caplog.messages[1] == (
        "there is no Java, and Spark is needed: a slice has 11 rows, with those that are kept; it is computed in "
        "process, as are all that follow"
    )
    both.engine.close()


def test_without_a_spark_a_value_that_is_not_proven_is_refused_in_words() -> None:
    def refuse() -> Any:
        raise UsageError("there is no Java", hint="install it; without Java, use --engine duckdb")

    both = Both(Refusing("duckdb"), refuse)
    both.engine.begin(1)
    with pytest.raises(UsageError) as refused:
        both.engine.rows(ROWS, DDL).where(ABOVE_TWO).to_arrow()
    because = "lower of letters beyond ASCII is not proven"
    assert refused.value.what == f"there is no Java, and Spark is needed: {because}"
    assert refused.value.hint == "install it"
    both.engine.close()
