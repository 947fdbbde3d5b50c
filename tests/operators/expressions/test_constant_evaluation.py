from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from xmlstream.operators.expressions.constant_evaluation import evaluated
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute
from xmlstream.session.engines import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_errors_of_spark_stay_what_they_are_after_values_were_computed(spark: SparkSession) -> None:
    """Whoever asks first for PySpark's logger decides of which kind it is, in the whole process."""
    logging.Logger.manager.loggerDict.pop("SQLQueryContextLogger", None)
    x = Attribute("x", Domain("INT"))
    assert evaluated("x + 1", x, Domain("INT"), engine_of(spark))([1, 2147483647]) == {1: 2}
    with pytest.raises(AnalysisException, match="nobody"):
        spark.sql("SELECT nobody FROM (SELECT 1 AS x)")
