"""What an older Spark does not parse is shown to it in another form, or refused by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark import analysis
from xmlstream.sql.spark.parsing import require_parsed, without_asof
from xmlstream.sql.statements import parse_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
CREATE TABLE a (k INT, t INT, x INT) USING punctuated_xml OPTIONS (path 'a.xml', rowTag 'a', schemes 'k; t prefix');
CREATE TABLE b (k INT, t INT, y INT) USING punctuated_xml OPTIONS (path 'b.xml', rowTag 'b', schemes 'k; t prefix');
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("FROM a LEFT ASOF JOIN b MATCH_CONDITION (t >= (u)) USING (k)", "FROM a LEFT JOIN b USING (k)"),
        ("SELECT 'ASOF JOIN' FROM asof", "SELECT 'ASOF JOIN' FROM asof"),
        ("FROM a -- ASOF JOIN\n ASOF JOIN b", "FROM a -- ASOF JOIN\n JOIN b"),
        ("FROM a ASOF JOIN b MATCH_CONDITION (t", "FROM a JOIN b MATCH_CONDITION (t"),
    ],
)
def test_an_asof_join_is_shown_as_an_ordinary_one_with_everything_in_its_place(text: str, shown: str) -> None:
    found = without_asof(text)
    assert len(found) == len(text)
    assert found.split() == shown.split()


def test_a_clause_that_is_too_new_is_refused_by_its_name() -> None:
    (statement,) = parse_statements(QueryText.of("SELECT k FROM a QUALIFY row_number() OVER (ORDER BY t) = 1"))
    require_parsed(statement, (4, 2))
    with pytest.raises(QueryError, match=r"QUALIFY needs Spark 4\.2, and this is 4\.1"):
        require_parsed(statement, (4, 1))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["", "LEFT "])
def test_an_older_spark_gives_an_asof_join_the_same_plan(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    join = f"{kind}ASOF JOIN b MATCH_CONDITION (a.t >= b.t) ON a.k = b.k AND b.t >= a.t - 5"
    query = f"{TABLES} SELECT a.k, x, y, y IS NULL AS none FROM a {join};"
    here = xs.from_sql(spark, query).root
    monkeypatch.setattr(analysis, "ASOF_SINCE", (99, 0))
    assert xs.from_sql(spark, query).root == here
    with pytest.raises(QueryError, match="there is no attribute") as refused:
        xs.from_sql(spark, query.replace("b.t >= a.t - 5", "b.t >= a.z - 5"))
    assert refused.value.line == 4
