"""A session of Spark Connect is refused where it enters, in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sql.spark.analysis import SparkAnalyst

TEXT = "CREATE TABLE a (h INT) USING punctuated_xml OPTIONS (path 'a.xml', rowTag 'a', schemes 'h'); SELECT h FROM a;"

Remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})


@pytest.mark.parametrize(
    "enter",
    [
        lambda session: xs.read(session, "a.xml", "h INT", rowTag="a"),
        lambda session: xs.from_sql(session, TEXT),
        SparkAnalyst,
    ],
)
def test_a_session_of_spark_connect_is_refused(enter: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match="Spark Connect") as refused:
        enter(Remote())
    assert "xs.open_session()" in str(refused.value.hint)
