"""Spark's answers to fixed questions, kept in a file for each minor of PySpark, so that by day nobody asks Spark.

A line of `tests/data/answers/pyspark-4.3.jsonl` has the name of the questions, a text, and what Spark answers. To an
expression that is type, whether it may be null, a digest of its values, and, for one row that raises an error, the
condition; to a query, its rows. In `make test`
DuckDB is compared with the file; Spark computes only what has no answer there, or another one, and says where they
differ. In `make test-all` Spark is compared with DuckDB, and the file with both.

    python -m tests.tools.answers       writes the file of the installed minor anew
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.both_engines import REFUSED, Findings, compared, here, typed, typed_here
from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.pages import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.harness.drawn_rows import Rows

DIRECTORY = ROOT / "tests" / "data" / "answers"
WRITES = "XMLSTREAM_WRITE_ANSWERS"
"""The variable of the environment with which Spark's answers are kept rather than compared."""
COMMAND = "python -m tests.tools.answers"

Line = list[Any]
"""What Spark answers to a question, as JSON has it."""


def path() -> Path:
    """The file of the minor of PySpark that is installed."""
    return DIRECTORY / f"pyspark-{'.'.join(version('pyspark').split('.')[:2])}.jsonl"


@cache
def kept() -> Mapping[str, Mapping[str, Line]]:
    """The answers that are kept for the installed minor, by questions and text; none where it has no file."""
    if not path().exists():
        return {}
    first, *lines = map(json.loads, path().read_text(encoding="utf-8").splitlines())
    assert set(first) == {"pyspark", "written by"}
    return {name: {text: line for _, text, *line in of} for name, of in groupby(lines, key=lambda line: line[0])}


def write(answers: Mapping[str, Mapping[str, Line]]) -> None:
    """Writes the file of the installed minor; its first line says by which PySpark."""
    lines = [[name, text, *line] for name, of in answers.items() for text, line in of.items()]
    said = [{"pyspark": version("pyspark"), "written by": COMMAND}, *lines]
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path().write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in said), encoding="utf-8")


@dataclass
class Answers:
    """Whom a test asks: the file, and Spark where it does not know, or Spark.

    Attributes:
        asks_spark: Whether Spark is asked everything.
        spark: The session, begun when it is asked for.
        found: What Spark has answered, by questions and text.
    """

    asks_spark: bool
    spark: Callable[[], SparkSession]
    found: dict[str, Mapping[str, Line]] = field(default_factory=dict)

    def compared(
        self, name: str, rows: Rows, texts: Iterable[str], *, by: str = "", has_errors: bool = True
    ) -> Findings:
        """Compares what DuckDB computes with the answers that go by this name; see `both_engines.compared`."""
        findings = Findings()
        if self.asks_spark:
            with self._of_spark(rows) as asked_:
                compared(asked_, texts, findings, by=by, has_errors=has_errors)
            self._require(name, findings.answers, findings)
            return findings
        raising = {text: line[3] for text, line in kept().get(name, {}).items() if len(line) > 3}
        here(rows, texts, findings, raising, by=by, has_errors=has_errors)
        if doubtful := self.doubtful(name, findings.answers):
            known = [text for text in findings.answers if text not in doubtful]
            findings = Findings(refused=findings.refused, answers={text: findings.answers[text] for text in known})
            with self._of_spark(rows) as asked_:
                compared(asked_, doubtful, findings, by=by, has_errors=has_errors)
        return findings

    def typed(self, name: str, rows: Rows, texts: Iterable[str], *, by: str = "") -> Findings:
        """Compares types and nullability alone."""
        findings = typed_here(rows, texts, Findings(), by=by)
        wanted = findings.answers if self.asks_spark else self.doubtful(name, findings.answers)
        if wanted:
            with self._of_spark(rows) as asked_:
                typed(asked_, wanted, findings, by=by)
        if self.asks_spark:
            self._require(name, findings.answers, findings)
        return findings

    def agree(self, name: str, mine: Mapping[str, Line], of_spark: Callable[[list[str]], Mapping[str, Line]]) -> None:
        """Requires that Spark answers these texts, which may be some of the questions, as they are answered here."""
        texts = [*mine] if self.asks_spark else self.doubtful(name, mine)
        theirs = of_spark(texts) if texts else {}
        wrong = [f"{text}: Spark's {line}, here {mine[text]}" for text, line in theirs.items() if line != mine[text]]
        assert not wrong, "\n".join(wrong[:20])
        if self.asks_spark:
            findings = Findings()
            self._require(name, mine, findings, among=set(mine))
            assert not findings.differences, findings

    def doubtful(self, name: str, mine: Mapping[str, Line]) -> list[str]:
        """The texts to which no answer is kept, or another one."""
        known = kept().get(name, {})
        return [text for text, line in mine.items() if known.get(text) not in (line, REFUSED)]

    @contextmanager
    def _of_spark(self, rows: Rows) -> Iterator[Rows]:
        """The rows in Spark's session, whose time zone is theirs meanwhile."""
        spark = self.spark()
        try:
            yield replace(rows, spark=spark)
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")

    def _require(
        self, name: str, answers: Mapping[str, Line], findings: Findings, among: Collection[str] | None = None
    ) -> None:
        """Keeps Spark's answers, or requires the file to have them, if there is one, and no others of this name."""
        self.found[name] = {**self.found.get(name, {}), **answers}
        if WRITES in os.environ or not kept() or findings.differences or SEED:  # which is kept of the first seed
            return
        known = kept().get(name, {})
        for text in sorted({*answers, *known} if among is None else among):
            if answers.get(text) != known.get(text):
                what = f"Spark answers {answers.get(text)}, and {path().name} has {known.get(text)}: {COMMAND}"
                findings.add(text, what)


BY_SPARK = pytest.param("by Spark", marks=[pytest.mark.spark, pytest.mark.rest])


def both_ways() -> list[Any]:
    """The parameters of a fixture that is `asked`: the file by day, if there is one, and Spark."""
    return [BY_SPARK] if AT_NIGHT else [pytest.param("as kept", marks=() if kept() else pytest.mark.spark), BY_SPARK]


def asked(request: pytest.FixtureRequest) -> Iterator[Answers]:
    """Whom the tests of a file ask; writes what Spark has answered, if it is to be kept."""
    answers = Answers(request.param == "by Spark", lambda: request.getfixturevalue("spark"))
    yield answers
    if WRITES in os.environ and answers.found:
        kept.cache_clear()
        write({**kept(), **answers.found})
