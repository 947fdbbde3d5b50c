"""What Spark was to count: told, or not told and not waited for without end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from operators.state.observed import metrics_of
from punct_ns.errors import XmlStreamError

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
    with pytest.raises(XmlStreamError, match="did not tell"):
        metrics_of(untold, 0.2)
    assert time.monotonic() - begun < 30
