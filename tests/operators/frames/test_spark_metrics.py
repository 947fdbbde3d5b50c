"""What Spark was to count: told, or not told and not waited for without end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from xmlstream.operators.frames.spark_engine import metrics_of
from xmlstream.punct_ns.errors import XmlStreamError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_what_was_computed_is_told_and_what_never_was_is_not_waited_for(spark: SparkSession) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    told, untold = Observation(), Observation()
    spark.range(3).observe(told, F.count(F.lit(1)).alias("tuples")).collect()
    assert metrics_of(told) == {"tuples": 3}
    spark.range(3).observe(untold, F.count(F.lit(1)).alias("tuples"))
    begun = time.monotonic()
    with pytest.raises(XmlStreamError, match="did not report"):
        metrics_of(untold, 0.2)
    assert time.monotonic() - begun < 300


@pytest.mark.spark
def test_of_a_plan_that_spark_folds_to_no_row_nothing_was_observed(spark: SparkSession) -> None:
    """What is below such a filter is counted, or not even computed; no filter stops the query."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    left, right = spark.range(3).selectExpr("id", "CAST(id AS INT) AS b"), spark.range(3).select(F.col("id").alias("c"))
    for predicate in ("1 = 0", "false", "CAST(NULL AS BOOLEAN)", "b + 1 = 2.5BD", "b IS NULL AND b IS NOT NULL"):
        for kind in ("left", "left_anti"):
            observation = Observation()
            joined = left.join(right, F.expr("id = c"), kind)
            observed = joined.observe(observation, F.count(F.lit(1)).alias("tuples"))
            assert observed.where(predicate).collect() == []
            assert metrics_of(observation).get("tuples", 0) in (0, 3 if kind == "left" else 0), (predicate, kind)
