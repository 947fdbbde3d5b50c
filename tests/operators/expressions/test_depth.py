"""What is nested deeply is planned and run, and beyond a limit refused in words."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.growing_queries import CHAINS, OPERATORS, chained, nested, table
from xmlstream.operators.expressions import depth
from xmlstream.operators.expressions.depth import MOST, at_any_depth, deep_thread, deeply
from xmlstream.punct_ns.errors import QueryError
from xmlstream.session.engines import InProcessSession
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _called_within(number: int) -> int:
    return 1 + _called_within(number - 1) if number else 0


def test_what_meets_the_limit_of_recursion_is_done_in_a_deep_thread() -> None:
    before = sys.getrecursionlimit()
    assert at_any_depth(_called_within)(50_000) == 50_000
    assert sys.getrecursionlimit() == before


def test_beyond_the_limit_of_a_deep_thread_the_error_is_in_words() -> None:
    with pytest.raises(QueryError, match="the query is nested too deeply"):
        at_any_depth(_called_within)(10**9)


def test_a_deep_thread_in_a_deep_thread_is_the_same() -> None:
    idents = deeply(lambda: (threading.get_ident(), deeply(threading.get_ident)))
    assert idents[0] == idents[1] != threading.get_ident()


def test_errors_of_a_deep_thread_are_raised_where_it_was_called() -> None:
    with pytest.raises(KeyError):
        deeply(lambda: dict[str, int]()["a"])


def test_the_limit_is_as_before_once_the_last_deep_thread_has_ended() -> None:
    before, first, second = sys.getrecursionlimit(), threading.Event(), threading.Event()
    threads = [deep_thread(first.wait, "first"), deep_thread(second.wait, "second")]
    deeply(lambda: None)  # a query has met the limit
    for thread in threads:
        thread.start()
    first.set()
    threads[0].join()
    deeply(lambda: None)
    assert sys.getrecursionlimit() > before
    second.set()
    threads[1].join()
    assert sys.getrecursionlimit() == before


def test_the_limit_is_left_alone_until_a_query_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one of all threads of a process, of which a program's own may have small stacks."""
    monkeypatch.setattr(depth, "_met", threading.Event())
    before, limits = sys.getrecursionlimit(), list[int]()
    thread = deep_thread(lambda: limits.append(sys.getrecursionlimit()), "shallow")
    thread.start()
    thread.join()
    assert limits == [before]


@pytest.mark.parametrize("name", ["AND", "text", "CASE of", "/ x"])
def test_what_is_nested_300_deep_is_planned_explained_and_run(
    name: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    query = xs.from_sql(in_process, nested(tmp_path, OPERATORS[name])(300))
    assert query.explain("text")
    assert query.run(tmp_path / "out", row_tag="row").tuples_out == 1


@pytest.mark.parametrize("operator", ["+", "||", "AND"])
def test_a_chain_of_1000_is_planned_explained_and_run(
    operator: str, in_process: InProcessSession, tmp_path: Path
) -> None:
    query = xs.from_sql(in_process, chained(tmp_path, operator, CHAINS[operator])(1000))
    assert query.explain("text")
    assert query.run(tmp_path / "out", row_tag="row").tuples_out == (0 if operator == "AND" else 1)


@pytest.mark.spark
@pytest.mark.parametrize("number", [300, 1500])
def test_what_spark_cannot_read_is_refused_in_words(spark: SparkSession, number: int, tmp_path: Path) -> None:
    """Spark's parser ends with an error of its own, or with one of Java's that has no text."""
    text = f"{table(tmp_path)} SELECT {'abs(' * number}v{')' * number} AS y FROM a"
    with pytest.raises(QueryError, match="nested more deeply than Spark reads") as refused:
        read(text).plan(spark)
    assert "-Xss256m" in str(refused.value.hint)


def test_a_builder_takes_what_is_nested_deeply(in_process: InProcessSession, tmp_path: Path) -> None:
    query = xs.from_sql(in_process, table(tmp_path) + "SELECT k, v FROM a")
    deep = query.select("k", f"{'abs(' * 200}v{')' * 200} AS y").where(f"{'(' * 200}y > 1{')' * 200}")
    assert deep.to_arrow().to_pylist() == [{"k": 1, "y": 2}]


def test_what_is_nested_beyond_the_limit_is_refused_at_its_place(tmp_path: Path) -> None:
    deep = MOST + 1
    text = f"{table(tmp_path)}SELECT k,\n{'abs(' * deep}v{')' * deep} AS y FROM a"
    with pytest.raises(QueryError, match="nested too deeply: more than 4,000 operations") as raised:
        read(text)
    assert (raised.value.line, raised.value.column) == (3, 4 * deep)
