"""What differs between versions of PySpark, from 4.1 on, in what sources and sinks use of it."""

from __future__ import annotations

from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def limits_reads() -> bool:
    """Whether PySpark's streaming readers are given a start and a limit: since 4.2."""
    return find_spec("pyspark.sql.streaming.datasource") is not None


def arrow_schema(schema: StructType) -> pa.Schema:
    """Arrow's schema of Spark's, with timestamps in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    convert: Any = to_arrow_schema
    # Before 4.2 there was no choice of the zone.
    zone = {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}
    found: pa.Schema = convert(schema, **zone)
    return found
