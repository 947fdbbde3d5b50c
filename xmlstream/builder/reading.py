"""Readers of the builder: functions that start a query from a punctuated source, a DataFrame or SQL text."""

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
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from xmlstream.session.engines import Session


def read(
    spark: Session,
    path: str | Path,
    schema: str | StructType | Sequence[str] | None = None,
    *,
    name: str | None = None,
    **options: Any,
) -> Query:
    """Reads a punctuated XML source.

    Args:
        spark: The session to run the query in.
        path: A file, a directory or a glob.
        schema: The attributes as Spark DDL, such as `"sid STRING, hour INT NOT NULL"`, as PySpark's StructType, or as a
            list of names, all of type STRING. Without it the schema is inferred from the beginning of the documents,
            and printed on standard error as a CREATE TABLE statement, for you to keep.
        name: Name of the source in metrics; by default the last part of the path without its suffix.
        options: `rowTag`, `schemes`, `domains` and the other options of CREATE TABLE; see `SourceOptions`.

    Raises:
        UsageError: An option is unknown, missing or invalid.
        InputError: No schema can be inferred from the documents.
    """
    source = name or _name_of(path)
    options = {**_texts(options), "path": str(path)}
    if schema is not None or any(option.lower() == "schema" for option in options):
        return Query(spark, scan(source, options, None if schema is None else _ddl(schema)))
    above = {option: value for option, value in options.items() if option.lower() in ABOVE}
    plain = {option: value for option, value in options.items() if option not in above and option.lower() != "rowtag"}
    row_tag = next((value for option, value in options.items() if option.lower() == "rowtag"), None)
    inferred = proposal(str(path), row_tag, plain)
    sys.stderr.write(f"{create_table(inferred)}\n")
    return Query(spark, scan(source, {**inferred.options, **above}, inferred.schema))


def _ddl(schema: str | StructType | Sequence[str]) -> str:
    """A schema as Spark DDL."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, Sequence):
        return ", ".join(f"{quoted(name)} STRING" for name in schema)
    ends = {True: "", False: " NOT NULL"}
    columns = [f"{quoted(field.name)} {field.dataType.simpleString()}{ends[field.nullable]}" for field in schema.fields]
    return ", ".join(columns)


def read_xmark(spark: Session, path: str | Path, stream: str, *, name: str | None = None, **options: Any) -> Query:
    """Reads a stream of XMark documents.

    Args:
        spark: The session to run the query in.
        path: A file; with `documents="merge"` a directory or a glob.
        stream: Name of the stream, such as `"person"` or `"bidder"`; see `sources.xmark`.
        name: Name of the source in metrics; by default the name of the stream.
        options: Options of CREATE TABLE … USING xmark.

    Raises:
        UsageError: There is no such stream, or an option is unknown or invalid.
    """
    options = {**_texts(options), "path": str(path), "stream": stream}
    return Query(spark, scan(name or stream, options, None, "xmark"))


def read_parquet(
    spark: Session,
    path: str | Path,
    schema: str | StructType | Sequence[str] | None = None,
    *,
    name: str | None = None,
    **options: Any,
) -> Query:
    """Reads the Parquet output of another query: its tuples, and the punctuations beside them.

    Args:
        spark: The session to run the query in.
        path: The directory of `output="out.parquet"` or of a sink `USING parquet`; the other query may still run.
        schema: The attributes, as for `read`; by default those of the files.
        name: Name of the source in metrics; by default the last part of the path without its suffix.
        options: Options of CREATE TABLE … USING punctuated_parquet, such as `schemes`.

    Raises:
        UsageError: An option is unknown or invalid, or there is neither a schema nor a file.
    """
    options = {**_texts(options), "path": str(path)}
    ddl = None if schema is None else _ddl(schema)
    return Query(spark, scan(name or _name_of(path), options, ddl, "punctuated_parquet"))


def _name_of(path: str | Path) -> str:
    return re.sub(r"\W+", "_", Path(path).stem).strip("_") or "source"


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def from_dataframe(frame: DataFrame, name: str = "static") -> Query:
    """Reads a Spark DataFrame as a static table: the first slice reads it, and then it is closed.

    Raises:
        UsageError: It is a streaming DataFrame (`spark.readStream`), or two of its columns have one name.
    """
    return Query(frame.sparkSession, static_frame(name, frame))


def from_sql(spark: Session, text: str, variables: Mapping[str, str] | None = None) -> Query:
    """The query of a SQL text with its CREATE statements, as `xmlstream run` takes it.

    Raises:
        QueryError: The text is not SQL, uses unsupported SQL, does not fit its tables, or has several queries.
    """
    answers = (read_text := script.read(text, variables)).answers
    for warning in read_text.warnings:
        warnings.warn(warning, stacklevel=2)
    if len(answers) > 1:
        raise answers[1].query.text.error(
            "a second query is not supported here", answers[1].query.start, "use inserts_from_sql for several queries"
        )
    return Query(spark, results(read_text.plan(spark))[0])
