from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from operators.evaluation import evaluated
from operators.segments import SegmentStore
from operators.state import OperatorState
from punct_ns.domain import Domain
from punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_errors_of_spark_stay_what_they_are_after_values_were_computed(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever asks first for PySpark's logger decides of which kind it is, in the whole process."""
    logging.Logger.manager.loggerDict.pop("SQLQueryContextLogger", None)
    x = Attribute("x", Domain("INT"))
    state = OperatorState(SegmentStore(spark, tmp_path), (Schema((x,)),))
    assert evaluated("x + 1", x, Domain("INT"), state)([1, 2147483647]) == {1: 2}
    with pytest.raises(AnalysisException, match="nobody"):
        spark.sql("SELECT nobody FROM (SELECT 1 AS x)")
