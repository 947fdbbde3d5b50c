"""What Spark has answered is kept; Spark is asked what is not, and what is answered otherwise here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from tests.harness import kept_answers
from tests.harness.both_engines import Findings, here
from tests.harness.drawn_rows import Rows
from tests.harness.kept_answers import COMMAND, Answers, Line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = ["i1 + i2", "CAST(s1 AS INT)", "i3 / 2"]
ROWS = Rows.drawn(None, 60, 0)


class Asked(Exception):
    """Spark would have begun."""


def nobody() -> SparkSession:
    raise Asked


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Line]:
    """What is kept for `sums`, which a test may change: the answers of DuckDB."""
    lines: dict[str, Line] = here(ROWS, TEXTS, Findings()).answers
    kept: Mapping[str, Mapping[str, Line]] = {"sums": lines}
    monkeypatch.setattr(kept_answers, "kept", lambda: kept)
    return lines


def test_what_is_as_kept_asks_nobody(lines: dict[str, Line]) -> None:
    found = Answers(asks_spark=False, spark=nobody).compared("sums", ROWS, TEXTS)
    assert (found.differences, found.answers) == ([], lines)


@pytest.mark.parametrize("place", range(3), ids=["type", "nullability", "values"])
def test_what_is_answered_otherwise_is_asked_of_spark(lines: dict[str, Line], place: int) -> None:
    answers = Answers(asks_spark=False, spark=nobody)
    lines[TEXTS[1]][place] = "another"
    assert answers.doubtful("sums", here(ROWS, TEXTS, Findings()).answers) == [TEXTS[1]]
    with pytest.raises(Asked):
        answers.compared("sums", ROWS, TEXTS)


def test_a_question_that_is_new_is_asked_of_spark(lines: dict[str, Line]) -> None:
    del lines[TEXTS[0]]
    with pytest.raises(Asked):
        Answers(asks_spark=False, spark=nobody).compared("sums", ROWS, TEXTS)


@pytest.mark.rest
def test_a_file_that_is_out_of_date_is_named_with_what_writes_it(lines: dict[str, Line], spark: SparkSession) -> None:
    answers = Answers(asks_spark=True, spark=lambda: spark)
    lines |= answers.compared("others", ROWS, TEXTS).answers  # which have an error's condition, too
    assert not answers.compared("sums", ROWS, TEXTS).differences
    lines[TEXTS[2]][2] = "another"
    assert not Answers(asks_spark=False, spark=lambda: spark).compared("sums", ROWS, TEXTS).differences
    (difference,) = answers.compared("sums", ROWS, TEXTS).differences
    assert difference.text == TEXTS[2]
    assert COMMAND in difference.what
