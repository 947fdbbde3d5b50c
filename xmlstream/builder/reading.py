"""Readers of the builder, with which a query begins: of a punctuated source, a DataFrame, SQL text."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punct_ns.slices import quoted
from sources.xml.inference.proposal import proposal
from xmlstream.builder.query import Query
from xmlstream.plan.nodes import results, static_frame
from xmlstream.sql import script
from xmlstream.sql.tables.create_table import create_table
from xmlstream.sql.tables.declaration import ABOVE, scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read(
    spark: SparkSession,
    path: str | Path,
    schema: str | StructType | Sequence[str] | None = None,
    *,
    name: str | None = None,
    **options: Any,
) -> Query:
    """A punctuated XML source as a query.

    Args:
        spark: The session that the query will run in.
        path: A file, a directory or a glob.
        schema: The attributes as Spark DDL, such as `"sid STRING, hour INT NOT NULL"`, as PySpark's StructType, or as a
            list of names, which are all strings. Without it the beginning of the documents is looked at, and what was
            inferred is printed on standard error as the CREATE TABLE that says the same, so that it can be kept.
        name: What metrics call the source; by default its path's last part without its suffix.
        options: `rowTag`, `schemes`, `domains` and the others that CREATE TABLE takes; see `SourceOptions`.

    Raises:
        UsageError: An option is unknown, missing or cannot be read.
        InputError: Nothing can be inferred from what is there.
    """
    called = name or _called(path)
    given = {**_texts(options), "path": str(path)}
    if schema is not None or any(option.lower() == "schema" for option in given):
        return Query(spark, scan(called, given, None if schema is None else _ddl(schema)))
    above = {option: value for option, value in given.items() if option.lower() in ABOVE}
    plain = {option: value for option, value in given.items() if option not in above and option.lower() != "rowtag"}
    row_tag = next((value for option, value in given.items() if option.lower() == "rowtag"), None)
    found = proposal(str(path), row_tag, plain)
    sys.stderr.write(f"{create_table(found)}\n")
    return Query(spark, scan(called, {**found.options, **above}, found.schema))


def _ddl(schema: str | StructType | Sequence[str]) -> str:
    """A schema as Spark DDL."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, Sequence):
        return ", ".join(f"{quoted(name)} STRING" for name in schema)
    ends = {True: "", False: " NOT NULL"}
    columns = [f"{quoted(field.name)} {field.dataType.simpleString()}{ends[field.nullable]}" for field in schema.fields]
    return ", ".join(columns)


def read_xmark(spark: SparkSession, path: str | Path, stream: str, *, name: str | None = None, **options: Any) -> Query:
    """A stream of XMark documents as a query.

    Args:
        spark: The session that the query will run in.
        path: A file; a directory or a glob under `documents="merge"`.
        stream: Which of the streams, such as `"person"` or `"bidder"`; see `sources.xmark`.
        name: What metrics call the source; by default the stream's name.
        options: Those that CREATE TABLE … USING xmark takes.

    Raises:
        UsageError: There is no such stream, or an option is unknown or cannot be read.
    """
    given = {**_texts(options), "path": str(path), "stream": stream}
    return Query(spark, scan(name or stream, given, None, "xmark"))


def read_parquet(
    spark: SparkSession,
    path: str | Path,
    schema: str | StructType | Sequence[str] | None = None,
    *,
    name: str | None = None,
    **options: Any,
) -> Query:
    """What another query has written as Parquet, as a query: its tuples, and the punctuations beside them.

    Args:
        spark: The session that the query will run in.
        path: A directory that `output="out.parquet"` names or a sink `USING parquet`, perhaps one that is written to.
        schema: The attributes, as for `read`; None for those that the files tell.
        name: What metrics call the source; by default the path's last part without its suffix.
        options: Those that CREATE TABLE … USING punctuated_parquet takes, such as `schemes`.

    Raises:
        UsageError: An option is unknown or cannot be read, or nothing tells the columns.
    """
    given = {**_texts(options), "path": str(path)}
    ddl = None if schema is None else _ddl(schema)
    return Query(spark, scan(name or _called(path), given, ddl, "punctuated_parquet"))


def _called(path: str | Path) -> str:
    return re.sub(r"\W+", "_", Path(path).stem).strip("_") or "source"


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def from_dataframe(frame: DataFrame, name: str = "static") -> Query:
    """A DataFrame of Spark's as a static input: read once, by the first slice, and closed from then on.

    Raises:
        UsageError: It is a stream, as `spark.readStream` gives, or two of its columns have one name.
    """
    return Query(frame.sparkSession, static_frame(name, frame))


def from_sql(spark: SparkSession, text: str, variables: Mapping[str, str] | None = None) -> Query:
    """The query that SQL text declares and asks, as `xmlstream run` takes it.

    Raises:
        QueryError: It is no SQL, uses what is not supported, does not fit its tables, or holds several queries.
    """
    answers = (read_text := script.read(text, variables)).answers
    for warning in read_text.warnings:
        warnings.warn(warning, stacklevel=2)
    if len(answers) > 1:
        raise answers[1].query.text.error("a second query", answers[1].query.start, "take them by inserts_from_sql")
    return Query(spark, results(read_text.plan(spark))[0])
