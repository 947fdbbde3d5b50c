"""Readers of the builder: functions that start a query from a punctuated source, a DataFrame or SQL text.

A stream of Spark's is a source, too; rules of `punctuate` take the place of a watermark, and are checked:

    bids = spark.readStream.schema("auction BIGINT, price DOUBLE, at TIMESTAMP").json("in/bids")
    xs.from_stream(bids, punctuate="order of at, slack 5m").group_by(…)
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from xmlstream.builder.given_tables import found_in, given_table, with_given_lists
from xmlstream.builder.query import Query
from xmlstream.builder.run_options import (
    Keyword,
    called,
    in_sentences,
    keywords_in,
    require_session,
    require_sql,
    takes,
)
from xmlstream.extensions import extension
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.storage.object_urls import shown
from xmlstream.plan.nodes import Node, results
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import written_name
from xmlstream.punct_ns.slices import quoted
from xmlstream.session.engines import engine_of
from xmlstream.sql import script
from xmlstream.sql.created_functions import note_registered
from xmlstream.sql.tables.declaration import ABOVE, STREAM, in_zone, scan

if TYPE_CHECKING:
    from typing import Unpack

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from xmlstream.builder.source_options import BatchOptions, ColumnOptions, ReadOptions
    from xmlstream.session.engines import Session


READ_OPTIONS = keywords_in(
    """
    rowTag = None: Local name of the tuples' elements, or several, `a|b`; `{uri}name` in one namespace; inferred if
        missing.
    schemes = '': What the source promises to punctuate, such as `hour; sid, ts prefix`.
    domains = '': Bounds or lists, such as `min 0..59, sid {S1,S2}`; a value outside is malformed. `sid from senders`
        takes a list from a table.
    uniqueIds = '': Attributes whose values occur once, `a, b`: each tuple closes its value.
    sectionEnds = '': What end tags close, such as `open_auction id; regions/* region; people *`.
    punctuate = None: Rules that add punctuations, such as `order of ts`.
    semantics = None: Windows of another engine, such as `streambase, size 5, slide 1, of time`.
    namespaces = None: Prefixes for paths and `rowTag`, each with its namespace: `dc
        http://purl.org/dc/elements/1.1/`.
    attributePrefix = '_': Attributes of this prefix are XML attributes: `_id` is `@id`.
    valueTag = '_VALUE': Name of the attribute for the row element's own text.
    unitTag = '': Elements that are never split between tasks, so that rows in one can be numbered.
    punctuationNamespace = None: The namespace that makes an element a punctuation.
    nullValue = None: A text that means null, beside a missing leaf and `xsi:nil`.
    format = 'xml': `xml`, or `parquet` for the output of a query.
    encoding = None: Encoding of the documents, in place of the declared one.
    doctype = 'skip': What happens to a document type declaration: `skip` or `refuse`.
    dateFormat = None: Pattern of dates, as in Spark; ISO 8601 by default.
    timestampFormat = None: Pattern of timestamps, as in Spark; ISO 8601 by default.
    locale = None: The language of names in dates and of DECIMAL numbers, such as `de-DE`; plain XML by default.
    timeZone = None: The zone of times without a zone, such as `Europe/Berlin`; the session's by default.
    ignoreSurroundingSpaces = True: Whether blanks around texts are removed.
    documents = 'sequence': How several documents are read: `sequence`, `files`, `directories` or `one`.
    partitionedBy = None: Attributes, `a, b`, by which the inputs are partitioned.
    cleanSource = 'off': What happens to a document that was completely read: `off`, `delete` or `archive`.
    sourceArchiveDir = '': Where `archive` moves documents.
    validate = '': An XML Schema, `bills.xsd`; an item that it finds invalid is malformed.
    mode = 'FAILFAST': What a malformed item does: `FAILFAST`, `PERMISSIVE` for the dead letters, `DROPMALFORMED`.
    ungrammatical = 'fail': What a tuple does that an earlier punctuation matches: `fail`, `divert` or `drop`.
    unfinished = 'wait': What happens to a document without an end that does not grow: `wait`, `fail` or `skip`.
    unfinishedAge = '10m': After which time that happens, such as `10m`.
    badDocuments = 'fail': What happens to a document that is not well-formed: `fail` or `skip`.
    onReplaced = 'fail': What happens if another file replaces a document: `fail` or `new`.
    maxBytesPerSlice = None: How much of the source is in one slice, such as `16m`; None for slices that grow.
    maxBytesPerPartition = '16m': How much of the source one task parses.
    maxFilesPerSlice (int | None) = None: How many documents end in one slice; None for any number.
    maxItemBytes = '64m': The greatest length of an item; a longer one is malformed.
    rate = 1.0: Tuples per time unit, relative to other sources, to choose a join plan.
    """
)
"""The options of a source that `read` takes; further ones are for one attribute, such as `path.price`."""


def _named(names: str) -> list[Keyword]:
    return [keyword for keyword in READ_OPTIONS if keyword.name in names.split()]


@takes(READ_OPTIONS, more=True)
def read(
    spark: Session,
    path: str | Path | Sequence[str | Path],
    schema: str | StructType | Sequence[str] | Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    **options: Unpack[ReadOptions],
) -> Query:
    """Reads a punctuated XML source.

    Args:
        spark: The session to run the query in.
        path: A file, a directory or a glob; or several in a list: all tuples of each are taken.
        schema: The attributes as Spark DDL, such as `"sid STRING, hour INT NOT NULL"`, as PySpark's StructType, or as a
            list of names, all of type STRING. Without it the schema is inferred from the beginning of the documents,
            and printed on standard error as a CREATE TABLE statement, for you to keep.
        name: Name of the source in metrics; by default the last part of the path without its suffix.
        options: The keywords below; an option of one attribute as `**{"path.price": "@price"}`.

    Raises:
        UsageError: An option is unknown, missing or invalid.
        InputError: No schema can be inferred from the documents.
    """
    if isinstance(path, list | tuple) and path:
        return reduce(Query.union_all, (read(spark, each, schema, name=name, **options) for each in path))
    given = {**_texts(options), "path": _path(spark, path)}
    source = name or _name_of(cast("str", path))
    if schema is not None or any(option.lower() == "schema" for option in given):
        return _read(spark, scan(source, given, None if schema is None else _ddl(schema)))
    above = {option: value for option, value in given.items() if option.lower() in ABOVE}
    plain = {option: value for option, value in given.items() if option not in above and option.lower() != "rowtag"}
    row_tag = next((value for option, value in given.items() if option.lower() == "rowtag"), None)
    inferred = extension("inferred declaration")(str(path), row_tag, plain)
    sys.stderr.write(f"{inferred.create_table()}\n")
    return _read(spark, scan(source, {**inferred.options, **above}, inferred.schema))


def _read(spark: Session, node: Node) -> Query:
    """The query of a source in a session; the conditions of its rules are checked."""
    node = with_given_lists(spark, in_zone(node, engine_of(spark).zone))
    below, rules = node, []
    while below.inputs:
        rules += [below.operator.rule] if isinstance(below.operator, Punctuate) else []
        below = below.inputs[0]
    for rule in rules:
        if rule.condition is not None:
            Query(spark, below).punctuate(rule)
    return Query(spark, node)


_SCHEMA = 'write "sid STRING, hour INT", {"sid": "STRING", "hour": "INT"}, or a list of names'


def _ddl(schema: str | StructType | Sequence[str] | Mapping[str, str]) -> str:
    """A schema as Spark DDL."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, Mapping) and all(isinstance(type_, str) for type_ in schema.values()):
        return ", ".join(f"{quoted(name)} {type_}" for name, type_ in schema.items())
    if isinstance(schema, Mapping):
        raise UsageError(f"{called(next(iter(schema.values())))} is not a type", hint=_SCHEMA)
    if isinstance(schema, Sequence) and not all(isinstance(name, str) for name in schema):
        raise UsageError(f"{list(schema)} is not a schema", hint=_SCHEMA)
    if isinstance(schema, Sequence) and all(" " in name.strip() for name in schema):
        return ", ".join(schema)  # each has its type
    if isinstance(schema, Sequence):
        return ", ".join(f"{quoted(name)} STRING" for name in schema)
    ends = {True: "", False: " NOT NULL"}
    columns = [f"{quoted(field.name)} {field.dataType.simpleString()}{ends[field.nullable]}" for field in schema.fields]
    return ", ".join(columns)


@in_sentences()
def read_xmark(spark: Session, path: str | Path, stream: str, *, name: str | None = None, **options: Any) -> Query:
    """Reads a stream of XMark documents.

    Args:
        spark: The session to run the query in.
        path: A file; with `documents="files"` a directory or a glob.
        stream: Name of the stream, such as `"person"` or `"bidder"`; see `xmlstream.sources.xmark`.
        name: Name of the source in metrics; by default the name of the stream.
        options: Options of a source, as for `read`, as far as XMark does not set them.

    Raises:
        UsageError: There is no such stream, or an option is unknown or invalid.
    """
    options = {**_texts(options), "path": _path(spark, path), "stream": stream}
    return _read(spark, scan(name or stream, options, None, "xmark"))


@in_sentences()
def read_parquet(
    spark: Session,
    path: str | Path,
    schema: str | StructType | Sequence[str] | Mapping[str, str] | None = None,
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
        options: Options of a source, as for `read`, such as `schemes`.

    Raises:
        UsageError: An option is unknown or invalid, or there is neither a schema nor a file.
    """
    options = {**_texts(options), "path": _path(spark, path)}
    ddl = None if schema is None else _ddl(schema)
    return _read(spark, scan(name or _name_of(path), options, ddl, "punctuated_parquet"))


def _path(spark: Session, path: object) -> str:
    """The path of a source as a text.

    Raises:
        UsageError: It is not one path, or there is no session before it.
    """
    require_session(spark)
    if not isinstance(path, str | Path):
        raise UsageError(f"{called(path)} is not a path", hint='for example xs.read(session, "in/*.xml", …)')
    return str(path)


def _frames_session(frame: Any, hint: str = "spark.createDataFrame(frame) makes one") -> SparkSession:
    """The session of a DataFrame of Spark's.

    Raises:
        UsageError: It is something else.
    """
    if not hasattr(frame, "sparkSession"):
        raise UsageError(f"{called(frame)} is not a DataFrame of Spark's", hint=hint)
    return cast("SparkSession", frame.sparkSession)


def _name_of(path: str | Path) -> str:
    return re.sub(r"\W+", "_", Path(shown(str(path))).stem).strip("_") or "source"


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as texts, without those that are None."""
    given = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        if isinstance(value, Mapping | list | tuple | set):
            hint = f'write {key}="…" as in SQL: ' + next((k.meaning for k in READ_OPTIONS if k.name == key), "a text")
            raise UsageError(f"the option {key} is a {type(value).__name__}, not a text", hint=hint)
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}


@in_sentences()
def from_dataframe(frame: Any, name: str = "static", *, session: Session | None = None) -> Query:
    """Reads a DataFrame, or a table of Arrow's, as a static table: the first slice reads it, and then it is closed.

    Args:
        frame: A DataFrame of Spark's; or, with a session, one of pandas' or polars', a table of Arrow's, or whatever
            offers Arrow's interface (`__arrow_c_stream__`).
        name: Name of the table in metrics.
        session: The session to run the query in; by default that of the DataFrame.

    Raises:
        UsageError: It is no table, or a stream (`spark.readStream`); two of its columns have one name; or a column has
            a type that Spark lacks.
    """
    session = session or _frames_session(frame, "with session=session it may be one of pandas', polars' or Arrow's")
    require_session(session)
    return Query(session, given_table(session, name, frame))


_REPLAY = keywords_in(
    """
    replay = 'exact': `none` if Spark's source may give other rows when it gives a batch again.
    """
)
STREAM_OPTIONS = [*_named("schemes domains punctuate mode ungrammatical maxBytesPerSlice rate"), *_REPLAY]
"""The options of a source that `from_stream` takes."""


@takes(STREAM_OPTIONS)
def from_stream(
    frame: DataFrame, *, name: str = "stream", punctuation: str | None = None, **options: Unpack[BatchOptions]
) -> Query:
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
    given = _texts({**options, "punctuation": punctuation})
    return _read(_frames_session(frame), scan(name, given, None, STREAM, frame))


COLUMN_OPTIONS = [
    *_named(
        "rowTag schemes domains uniqueIds punctuate namespaces attributePrefix valueTag unitTag punctuationNamespace"
        " nullValue encoding doctype dateFormat timestampFormat timeZone locale ignoreSurroundingSpaces mode"
        " ungrammatical maxBytesPerSlice maxItemBytes rate"
    ),
    *_REPLAY,
]
"""The options of a source that `read_column` takes."""


@takes(COLUMN_OPTIONS, more=True)
@in_sentences()
def read_column(
    frame: DataFrame,
    column: str,
    schema: str | StructType | Sequence[str] | Mapping[str, str],
    *,
    keep: Sequence[str] = (),
    name: str = "stream",
    **options: Unpack[ColumnOptions],
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
    given = _texts({**options, "column": column, "keep": kept or None})
    return _read(_frames_session(frame), scan(name, given, _ddl(schema), STREAM, frame))


@in_sentences()
def from_sql(
    spark: Session, text: str, variables: Mapping[str, str] | None = None, tables: Mapping[str, Any] | None = None
) -> Query:
    """The query of a SQL text with its CREATE statements, as `xmlstream run` takes it.

    Args:
        spark: The session to run the query in.
        text: The SQL text.
        variables: Values of its `${NAME}`.
        tables: Static tables that it reads without declaring them, by name, each as for `from_dataframe`; beside them,
            a session of Spark's has its temporary views.

    Raises:
        QueryError: The text is not SQL, uses unsupported SQL, does not fit its tables, or has several queries or a
            target.
    """
    require_sql(spark, text)
    note_registered(spark, text)
    read_text = script.read(text, variables, session=spark, given=found_in(spark, tables or {}))
    answers = read_text.answers
    for warning in read_text.warnings:
        warnings.warn(warning, stacklevel=2)
    if len(answers) > 1 or answers[0].sink is not None:
        what = "INSERT INTO" if len(answers) == 1 else "a second query"
        hint = (
            "use xs.run(xs.inserts_from_sql(session, text), checkpoint=…), which takes all of them with their targets"
        )
        raise answers[-1].query.text.error(f"{what} is not supported here", answers[-1].query.start, hint)
    return Query(spark, results(read_text.plan(spark))[0])
