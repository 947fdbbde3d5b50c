"""Streams of Spark's as sources: DataFrames of `spark.readStream`, whose columns are the tuple.

    bids = spark.readStream.schema("auction BIGINT, price DOUBLE, at TIMESTAMP").json("in/bids")
    xs.from_stream(bids, punctuate="order of at, slack 5m").window(…)

A row is a tuple, or a punctuation if the column `punctuation` has one in the notation. Rules of `punctuate` take the
place of a watermark: `order of at, slack 5m` is what `withWatermark("at", "5 minutes")` assumes, but checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xmlstream.builder.query import Query
from xmlstream.builder.reading import READ_OPTIONS, ddl_of, texts_of, whole_query
from xmlstream.builder.run_options import Keyword, takes
from xmlstream.punct_ns.schema import written_name
from xmlstream.sql.tables.declaration import STREAM, scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

STREAM_OPTIONS = [
    Keyword("schemes", "str", "", "What the source promises to punctuate, such as `hour; sid, ts prefix`."),
    Keyword("domains", "str", "", "Bounds of attributes, such as `hour 0.., min 0..59`; a value outside is malformed."),
    Keyword("punctuate", "str | None", None, "Rules that add punctuations, such as `order of ts, slack 5m`."),
    Keyword(
        "mode",
        "str",
        "FAILFAST",
        "What a malformed row does: `FAILFAST`, `PERMISSIVE` for the dead letters, `DROPMALFORMED`.",
    ),
    Keyword(
        "ungrammatical",
        "str",
        "fail",
        "What a tuple does that an earlier punctuation matches: `fail`, `divert` or `drop`.",
    ),
    Keyword("replay", "str", "exact", "`none` if Spark's source may give other rows when it gives a batch again."),
    Keyword("maxBytesPerSlice", "str | None", None, "How much of the source is in one slice, such as `16m`."),
    Keyword("rate", "float", 1.0, "Tuples per time unit, relative to other sources, to choose a join plan."),
]
"""The options of a source that `from_stream` takes."""


_OF_TEXTS = {
    "rowTag",
    "schemes",
    "domains",
    "uniqueIds",
    "punctuate",
    "namespaces",
    "attributePrefix",
    "valueTag",
    "unitTag",
    "punctuationNamespace",
    "nullValue",
    "encoding",
    "doctype",
    "dateFormat",
    "timestampFormat",
    "ignoreSurroundingSpaces",
    "mode",
    "ungrammatical",
    "maxBytesPerSlice",
    "maxItemBytes",
    "rate",
}


@takes(STREAM_OPTIONS)
def from_stream(frame: DataFrame, *, name: str = "stream", punctuation: str | None = None, **options: Any) -> Query:
    """Reads a DataFrame of Spark's as a punctuated stream; a static one is a stream that ends.

    A batch of Spark's has no order, except within a partition: its punctuations hold after its tuples, and the slack of
    an order counts from batch to batch.

    Args:
        frame: The DataFrame. Its columns are the attributes, but for that of punctuations.
        name: Name of the source in metrics and in the checkpoint.
        punctuation: The STRING column with punctuations in the notation, such as `<*, [, 2021-02-01], *>`; a row in
            which it is not null is a punctuation.
        options: The keywords below.

    Raises:
        UsageError: An option is unknown or invalid, or a column has a type that no source has.
    """
    given = texts_of({**options, "punctuation": punctuation})
    return whole_query(frame.sparkSession, scan(name, given, None, STREAM, frame))


COLUMN_OPTIONS = [
    *(keyword for keyword in READ_OPTIONS if keyword.name in _OF_TEXTS),
    *(keyword for keyword in STREAM_OPTIONS if keyword.name not in {option.name for option in READ_OPTIONS}),
]
"""The options of a source that `read_column` takes."""


@takes(COLUMN_OPTIONS)
def read_column(
    frame: DataFrame,
    column: str,
    schema: str | StructType | Sequence[str],
    *,
    keep: Sequence[str] = (),
    name: str = "stream",
    **options: Any,
) -> Query:
    """Reads XML in a column of a DataFrame of Spark's, such as the values of a topic: `read_column(frame, "value", …)`.

    Each text is a document, or a fragment: tuples and punctuations side by side without a root. A text that is not
    well-formed is one malformed item. A static frame is a stream that ends.

    Args:
        frame: The DataFrame.
        column: The STRING or BINARY column with the texts; null is nothing.
        schema: The attributes in the texts, as for `read`.
        keep: Columns of the frame that become attributes of each tuple; errors and dead letters name a text by them.
        name: Name of the source in metrics and in the checkpoint.
        options: The keywords below; an option of one attribute as `**{"path.price": "@price"}`.

    Raises:
        UsageError: An option is unknown or invalid, or one of documents; or there is no such column.
    """
    kept = ", ".join(map(written_name, keep))
    given = texts_of({**options, "column": column, "keep": kept or None})
    return whole_query(frame.sparkSession, scan(name, given, ddl_of(schema), STREAM, frame))
