"""Parquet files of the engine's own, read by Spark at just the paths that are named.

Spark takes a path with `*`, `?`, brackets, braces or a backslash in it for a glob, though it may be the name of the
directory that a user has chosen for the checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LITERAL = {"__globPaths__": "false"}
"""The options of a reader of files that say: a path is the name of a file."""


def parquet_files(spark: SparkSession, schema: StructType | str, *paths: str) -> DataFrame:
    """The rows of files or directories of Parquet, whatever characters their paths have; at least one."""
    return spark.read.schema(schema).options(**LITERAL).parquet(*paths)
