"""What PySpark calls most of Java is looked up once, and is still what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_columns_and_frames_ask_java_for_no_name_that_they_asked_for(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.java_gateway import JavaClass, JavaPackage, JVMView  # type: ignore[import-untyped]

    asked: list[tuple[Any, str]] = []

    def made() -> list[dict[str, int]]:
        rows = spark.createDataFrame(pa.table({"x": [1]}), "x INT")
        return rows.select((F.col("x") + F.expr("x + 1")).alias("y"), F.lit(2).alias("z")).toArrow().to_pylist()

    def refused() -> None:
        with pytest.raises(AnalysisException):
            spark.createDataFrame(pa.table({"x": [1]}), "x INT").select("y")

    first = made()
    refused()
    for kind in (JVMView, JavaClass, JavaPackage):
        looks_up = kind.__getattr__

        def noted(self: Any, name: str, looks_up: Any = looks_up, kind: Any = kind) -> Any:
            asked.append((kind, name))
            return looks_up(self, name)

        monkeypatch.setattr(kind, "__getattr__", noted)
    assert made() == first == [{"y": 3, "z": 2}]
    assert asked == []
    refused()
    assert [name for kind, name in asked if kind is JavaPackage] == []


def test_constructors_and_packages_are_found_as_before(spark: SparkSession) -> None:
    java: Any = spark._jvm
    assert java.java.util.ArrayList().isEmpty()
    assert java.org.apache.spark.sql.functions.lit(1).toString() == "1"
    assert java.java.util.Collections.emptyList() == java.java.util.ArrayList()
    # What Java does not know is asked for anew: a jar may come.
    assert java.org.apache.spark.Unheard is not java.org.apache.spark.Unheard
    assert java.org.apache.spark is java.org.apache.spark
