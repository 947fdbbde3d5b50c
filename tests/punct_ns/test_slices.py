"""The row layout of a slice: Arrow's types are those that PySpark has for Spark's, whatever is inside them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from xmlstream.punct_ns.slices import any_arrow_type
from xmlstream.punct_ns.type_names import sql_type
from xmlstream.sources.xml.spark.data_source import arrow_schema

SIMPLE = [
    spark.IntegerType(), spark.ByteType(), spark.StringType(), spark.DecimalType(38, 3), spark.TimestampType(),
    spark.TimestampNTZType(), spark.BinaryType(), spark.DayTimeIntervalType(), spark.DayTimeIntervalType(1, 2),
    spark.NullType(), spark.BooleanType(), spark.DateType(), spark.FloatType(), spark.VariantType(),
]  # fmt: skip
NAMES = st.lists(st.sampled_from(["a", "B", "x y", "b:c", "d-e", "null", "é"]), min_size=1, max_size=3, unique=True)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = st.builds(spark.ArrayType, inner)
    maps = st.builds(lambda value: spark.MapType(spark.StringType(), value), inner)
    fields = st.tuples(NAMES, inner).map(lambda drawn: [spark.StructField(name, drawn[1]) for name in drawn[0]])
    return arrays | maps | fields.map(spark.StructType)


@given(st.recursive(st.sampled_from(SIMPLE), _around, max_leaves=5))
def test_a_type_of_spark_has_the_type_of_arrow_that_pyspark_gives_it(drawn: Any) -> None:
    expected = arrow_schema(spark.StructType([spark.StructField("x", drawn)])).field(0).type
    assert str(any_arrow_type(sql_type(_written(drawn)))) == str(expected)


def _written(type_: Any) -> str:
    """The type's name as SQL has it, with names in quotes; PySpark's own leaves the quotes out."""
    match type_:
        case spark.ArrayType():
            return f"array<{_written(type_.elementType)}>"
        case spark.MapType():
            return f"map<{_written(type_.keyType)},{_written(type_.valueType)}>"
        case spark.StructType():
            return f"struct<{','.join(f'`{field.name}`:{_written(field.dataType)}' for field in type_)}>"
    return str(type_.simpleString())
