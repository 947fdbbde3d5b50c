"""There is one answer to what an expression is, whoever asks; and what is said of it is so in Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from tests.harness.asked_expressions import COLUMNS, SCHEMA, asked
from tests.harness.both_engines import OF_SPARK, failing
from tests.harness.drawn_rows import Rows
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.expressions.operations.part import of_column
from xmlstream.operators.expressions.throwable import throwable
from xmlstream.operators.expressions.type_rules import never_null, value_type
from xmlstream.operators.frames.spark_engine import quiet_spark
from xmlstream.operators.in_process.expressions import translated
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = 150
"""How many expressions Spark computes in one query."""


def test_the_optimizer_and_the_engine_in_process_have_one_answer() -> None:
    columns = {name: of_column(f'"{name}"', type_, not name.endswith("3")) for name, type_ in COLUMNS.items()}
    wrong, both = [], 0
    for text in asked():
        tree = expression(text)
        try:
            found = translated(text, columns)
        except QueryError:
            assert throwable(tree, SCHEMA), text  # what is not in the table may be an error
            continue
        if text in ("count(*)", "sum(i1)", "sum(i3)"):
            continue
        both += 1
        type_ = value_type(tree, SCHEMA)
        answers = (type_, throwable(tree, SCHEMA), found.nullable or never_null(tree, SCHEMA))
        if answers != (Domain(found.type.name).sql, found.fails, True):
            wrong.append(f"{text}: {answers}, {found}")
    assert not wrong, "\n".join(wrong[:20])
    assert both > 3_800


def test_what_is_never_null_has_no_null_in_process() -> None:
    """Of rows for which it is not an error; both engines have the same values, as `test_proven` compares."""
    rows = Rows.drawn(None, 60, SEED + 22)
    connection, source = rows.connection(), random.Random(SEED)
    sure = [text for text in asked() if never_null(expression(text), SCHEMA)]
    for text in sure if AT_NIGHT else source.sample(sure, 200):
        try:
            found = translated(text, rows.columns)
        except QueryError:
            continue
        value = f"TRY(struct_pack(v := {failing(found.sql)}))"
        nulls = f"SELECT count(*) FILTER (WHERE x IS NOT NULL AND x.v IS NULL) FROM (SELECT {value} AS x FROM r)"
        with suppress(duckdb.Error):  # what TRY does not catch
            assert connection.execute(nulls).fetchone() == (0,), text


@pytest.mark.spark
def test_what_is_said_of_an_expression_is_so_in_spark(spark: SparkSession) -> None:
    """Of drawn values, extremes and nulls among them: no error where there is none, no null where there is none."""
    silent = [text for text in asked() if not throwable(expression(text), SCHEMA)]
    if not AT_NIGHT:
        silent = random.Random(SEED).sample(silent, 600)
    frame = Rows.drawn(spark, 300 if AT_NIGHT else 60, SEED + 20).frame()
    for texts in (silent[i : i + AT_ONCE] for i in range(0, len(silent), AT_ONCE)):
        for text, column in computed(frame, texts):
            assert column is not None, f"{text} is an error"
            assert not (column.null_count and never_null(expression(text), SCHEMA)), f"{text} is null"


def computed(frame: Any, texts: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yields each expression with its values in Spark; where it is an error, it is looked for by halves."""
    try:
        with quiet_spark():
            table = frame.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(texts))).toArrow()
    except OF_SPARK:
        if len(texts) == 1:
            yield texts[0], None
            return
        half = len(texts) // 2
        yield from computed(frame, texts[:half])
        yield from computed(frame, texts[half:])
    else:
        yield from ((text, table[f"c{i}"]) for i, text in enumerate(texts))
