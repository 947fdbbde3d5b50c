"""CREATE TABLE … USING … OPTIONS (…): declarations of sources and sinks, and the sinks that INSERTs write to."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.extensions import extension
from xmlstream.operators.expressions.dialect import offset, type_text
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.expressions.type_rules import lossless_cast
from xmlstream.operators.storage.object_urls import OPTIONS, is_object_url, with_options
from xmlstream.plan.nodes import STATIC_FORMATS, Node, Scan, StreamScan, projected, source, static_table
from xmlstream.punct_ns.errors import InputError, QueryError, UsageError, did_you_mean
from xmlstream.punct_ns.schema import Attribute, Schema, flattened
from xmlstream.punct_ns.slices import quoted
from xmlstream.sink.target import PARTITIONED, SINKS, Target
from xmlstream.sink.xml_documents import Vocabulary
from xmlstream.sources.parquet_table import parquet_options
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions, zoned
from xmlstream.sources.xml.options.text_column import TextColumn
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.did_you_mean import DECLARED
from xmlstream.sql.refused.refusals import place_in_query, refusal
from xmlstream.sql.refused.supported import require_types
from xmlstream.sql.tables.stream_options import (
    PUNCTUATE,
    parted_domains,
    punctuated,
    require_no_table,
    with_domains,
    written_rules,
)
from xmlstream.sql.tables.streams import spark_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMAT, STREAM = "punctuated_xml", "stream"

STREAM_FORMATS: Mapping[str, Callable[[Mapping[str, str], str | None], Mapping[str, str]] | None] = {
    FORMAT: None,
    "punctuated_parquet": parquet_options,
    "xmark": lambda options, columns: _without_columns(extension("stream xmark")(options), columns),
    STREAM: None,
}
"""Formats of streams; each maps options and columns to options of a punctuated source, None if they are such."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """Parts of a CREATE TABLE, not interpreted yet; `columns` is Spark DDL, None without columns.

    `values` are the options' texts, by names in lower case, with the places of their characters.
    """

    name: str
    columns: str | None
    using: str
    options: Mapping[str, str]
    text: QueryText
    at: int | None
    partition_by: tuple[str, ...] = ()
    values: Mapping[str, QueryText] = field(default_factory=dict)

    @staticmethod
    def of(tree: exp.Create, text: QueryText) -> Declaration:
        """The parts of the statement.

        Raises:
            QueryError: The statement has other parts than a table with columns, a format, partitions and options.
        """
        if str(tree.args.get("kind")).upper() != "TABLE":
            what = f"CREATE {tree.args.get('kind')} is not supported"
            raise text.error(what, tree, "a query declares tables and views")
        _require_only(tree, {"this", "kind", "properties"}, text)
        is_list = isinstance(tree.this, exp.Schema)
        table, columns = (tree.this.this, tree.this.expressions) if is_list else (tree.this, [])
        _require_only(table, {"this"}, text)
        name, at = table.name, offset(table)
        ddl = _ddl(columns, text) or None
        properties = tree.args.get("properties")
        using, options, by = _properties(properties, text, name, at)
        if ddl is not None and (twice := [key for key in options if key.lower() == "schema"]):
            hint = f"leave out the option {twice[0]}"
            raise text.error(f"table {name} has its columns twice", columns[0], hint)
        plain = {
            option: value.name if isinstance(value, exp.Literal) else str(value.this).lower()
            for option, value in options.items()
        }
        texts = {key.lower(): text.within_quotes(value) for key, value in options.items() if value.is_string}
        return Declaration(name, ddl, using, plain, text, at, tuple(by), texts)

    def conditions(self) -> list[QueryText]:
        """The conditions of the rules in `punctuate`, which `declared_source` does not check."""
        if (rules := self.values.get(PUNCTUATE)) is None:
            return []
        found = ((rule.at, rule.condition) for rule in written_rules(rules.text) if rule.condition is not None)
        return [rules.part(at, at + len(condition)) for at, condition in found]

    def require_rosters(self, tables: Container[str]) -> None:
        """Refuses a roster in `punctuate` that is the name of a table or a view, in lower case."""
        if (rules := self.values.get(PUNCTUATE)) is not None:
            with self.placed():
                require_no_table(rules.text, tables)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Gives errors without a place that of the option that they name, or of the table's name."""
        try:
            yield
        except (QueryError, UsageError, InputError) as error:
            if isinstance(error, QueryError) and error.where is not None:
                raise
            raise self.error(error.what, error.hint) from None

    def error(self, what: str, hint: str | None = None) -> QueryError:
        """Error that points at the value of the option that it names or quotes, or else at the table's name."""

        def places(words: str, text: str) -> re.Match[str] | None:
            return re.search(rf"(?<![\w.]){re.escape(words)}(?![\w.])", text, re.IGNORECASE)

        about = [value for option, value in self.values.items() if places(option, what)]
        quotes = ("".join(each) for each in re.findall(r"\battribute (\w+)|'([^']+)'", what))
        pairs = ((value, places(each, value.text)) for each in quotes for value in (*about, *self.values.values()))
        whole = (about[-1], 0) if about else (self.text, self.at)
        text, at = next(((value, found.start()) for value, found in pairs if found), whole)
        return text.error(f"table {self.name}: {what}", at, hint)


def declared_source(declaration: Declaration, frames: Callable[[str], DataFrame] | None = None) -> Node:
    """The source that a table declares; `frames` gives the frame of a session's view.

    Raises:
        QueryError: The format is unknown, or the options do not fit it.
    """
    using, name = declaration.using, declaration.name
    if declaration.partition_by:
        raise declaration.error("a source cannot be PARTITIONED BY", "Spark finds the partitions of a static table")
    with declaration.placed():
        if using.lower() in STREAM_FORMATS:
            view = next((value for key, value in declaration.options.items() if key.lower() == "view"), None)
            frame = frames(view) if using.lower() == STREAM and view is not None and frames is not None else None
            return scan(name, declaration.options, declaration.columns, using.lower(), frame)
        if using.lower() in STATIC_FORMATS:
            return static_table(name, using.lower(), declaration.options, declaration.columns)
    hint = f"a stream is read USING {' or '.join(STREAM_FORMATS)}, a static table USING {', '.join(STATIC_FORMATS)}"
    if using.lower() in ("jdbc", "mysql", "oracle", "sqlserver", "sqlite"):
        hint = (
            "Spark reads another database than PostgreSQL: declare nothing, and name a view of its session, as by "
            "spark.read.format('jdbc').options(…).load().createOrReplaceTempView('t')"
        )
    raise declaration.text.error(f"USING {using} is not supported", declaration.at, hint)


def scan(
    name: str,
    options: Mapping[str, str],
    schema: str | None,
    using: str = FORMAT,
    frame: DataFrame | None = None,
) -> Node:
    """A source as a leaf of a plan; `schema` is Spark DDL, None if the options hold it; `frame` is that of a stream.

    Raises:
        UsageError, QueryError: An option is unknown, missing, unreadable, or does not fit the source.
    """
    if schema is not None:
        # Normalize the text, so that equal schemas have equal texts.
        schema = Schema.parse(schema).ddl()
    above = {key.lower(): value for key, value in options.items() if key.lower() in ABOVE}
    plain: Mapping[str, str] = {key: value for key, value in options.items() if key.lower() not in ABOVE}
    plain, listed = _without_lists(plain)
    if using == STREAM:
        node = spark_stream(name, plain, schema, frame)
    else:
        if (written := STREAM_FORMATS[using]) is not None:
            plain, schema = written(plain, schema), None
        read = SourceOptions.parse(plain, schema, giver="user")
        Document.at(read.path)  # refuses a path on another file system
        node = source(name, read)
    if listed:
        node = with_domains(node, listed)
    for option, put in ABOVE.items():
        node = put(node, above[option]) if option in above else node
    return node


def _without_lists(options: Mapping[str, str]) -> tuple[Mapping[str, str], str]:
    """The options without the domains that tables list, and these."""
    key = next((key for key in options if key.lower() == "domains"), "")
    if "from" not in options.get(key, "").lower().split():
        return options, ""
    written, listed = parted_domains(options[key])
    rest = {name: text for name, text in options.items() if name != key}
    return rest | ({key: written} if written else {}), listed


def in_zone(node: Node, zone: str) -> Node:
    """A table in a session: where its source says no `timeZone`, times without a zone are in the session's zone."""
    if not node.inputs:
        read = _in_zone(node.operator, zone)
        return node if read is node.operator else Node(read, (), node.label)
    below = tuple(in_zone(each, zone) for each in node.inputs)
    return node if below == node.inputs else Node(node.operator, below, node.label)


def _in_zone(operator: Any, zone: str) -> Any:
    match operator:
        case StreamScan(texts=TextColumn() as texts):
            options = zoned(texts.options, zone)
            return operator if options is texts.options else replace(operator, texts=replace(texts, options=options))
        case Scan(options=SourceOptions(format="xml") as given):
            options = zoned(given, zone)
            return operator if options is given else replace(operator, options=options)
    return operator


def _without_columns(options: Mapping[str, str], columns: str | None) -> Mapping[str, str]:
    if columns is not None:
        raise UsageError("its columns are fixed", hint="leave them out, as in CREATE TABLE t USING …")
    return options


def _reported(node: Node, text: str) -> Node:
    """The windows that another engine reports over a source."""
    reported: Node = extension("reported windows")(node, text)
    return reported


ABOVE: Mapping[str, Callable[[Node, str], Node]] = {PUNCTUATE: punctuated, "semantics": _reported}
"""Options that put an operator above a source, in this order."""


def _ddl(columns: Sequence[exp.Expr], text: QueryText) -> str:
    """The columns as Spark DDL."""
    for column in columns:
        if not isinstance(column, exp.ColumnDef) or not isinstance(column.args.get("kind"), exp.DataType):
            named = "a column is declared by its name and its type", "as in hour INT NOT NULL"
            what, hint = refusal(column) if isinstance(column, exp.PrimaryKey) else named
            raise text.error(what, column, hint)
        _require_only(column, {"this", "kind", "constraints"}, text)
    require_types(columns, text)
    return ", ".join(f"{quoted(each.name)} {type_text(each.args['kind'])}{_null(each, text)}" for each in columns)


_CONSTRAINTS = {
    "computed": ("a computed column is not supported", "compute it in the query: SELECT *, a + 1 AS b FROM t"),
    "default": ("DEFAULT is not supported", "leave it out, and write coalesce(a, 0) in the query"),
}
"""Constraints of a column that a query can replace: message and hint."""


def _null(column: exp.Expr, text: QueryText) -> str:
    """The column's NOT NULL as DDL, or nothing."""
    ends = ""
    for constraint in column.args.get("constraints") or ():
        match constraint.args.get("kind"):
            case exp.NotNullColumnConstraint() as not_null if not not_null.args.get("allow_null"):
                ends = " NOT NULL"
            case exp.CommentColumnConstraint():
                pass
            case other:
                key = other.key.replace("columnconstraint", "") if other is not None else "constraint"
                what, hint = _CONSTRAINTS.get(key) or refusal(
                    other if isinstance(other, exp.PrimaryKeyColumnConstraint) else key
                )
                hint = hint or "a column may be NOT NULL; the option domains limits its values"
                raise text.error(what, column, hint)
    return ends


def _properties(
    properties: exp.Properties | None, text: QueryText, table: str, at: int | None
) -> tuple[str, dict[str, exp.Expr], list[str]]:
    """The format, the options and the attributes in PARTITIONED BY."""
    using, options, by = None, dict[str, exp.Expr](), list[str]()
    for part in properties.expressions if properties else ():
        match part:
            case exp.FileFormatProperty():
                using = part.name
            case exp.OptionsProperty():
                options = dict(_pairs(part, text, table))
            case exp.PartitionedByProperty():
                for column in part.this.expressions:
                    if not isinstance(column, exp.Identifier):
                        hint = "compute the attribute in the query: SELECT …, date_trunc('MINUTE', ts) AS minute"
                        raise text.error("PARTITIONED BY takes names of attributes", column, hint)
                    by.append(column.name)
            case exp.Property() if type(part) is exp.Property:
                raise text.error(f"WITH (…) of table {table} is not supported", at, DECLARED)
            case _:
                what = f"{part.key.removesuffix('property').upper()} of table {table} is not supported"
                hint = "leave it out: a table has columns, USING and OPTIONS"
                if isinstance(part, exp.LocationProperty):
                    hint = "write OPTIONS (path '…')"
                raise text.error(what, offset(part) or at, hint)
    if using is None:
        raise text.error(f"table {table} has no USING", at, f"write USING {FORMAT} OPTIONS (…)")
    return using, options, by


def _pairs(options: exp.OptionsProperty, text: QueryText, table: str) -> Iterator[tuple[str, exp.Expr]]:
    seen: set[str] = set()
    for option in options.expressions:
        key, value = option.this, option.args.get("value")
        whole = key.flatten() if isinstance(key, exp.Dot) else [key]
        # Of more than three names, the first ones are a column with its table.
        parts = (part for each in whole for part in (each.parts if isinstance(each, exp.Column) else [each]))
        name = ".".join(part.name for part in parts)
        if not isinstance(value, exp.Literal | exp.Boolean):
            raise text.error(f"option {name} of table {table} needs a plain value", option, "write it in quotes")
        if name.lower() == "path" and _has_escape(value, text):
            hint = r"write / between directories, or \\ for each backslash"
            raise text.error(f"a backslash in the path of table {table} begins an escape", value, hint)
        if name.lower() in seen:
            raise text.error(f"table {table} has the option {name} twice", option)
        seen.add(name.lower())
        yield name, value


def _has_escape(value: exp.Expr, text: QueryText) -> bool:
    """Whether a string has an escape other than of a backslash or a quote, as Windows paths have by mistake."""
    start, end = value.meta.get("start"), value.meta.get("end")
    if start is None or end is None:
        return False
    return re.search(r"\\[^\\'\"]", text.text[start : end + 1].replace(r"\\", "")) is not None


def _require_only(tree: exp.Expr, allowed: set[str], text: QueryText) -> None:
    for part, value in tree.args.items():
        if value and part not in allowed:
            what, hint = _CREATES.get(part) or refusal(part)
            raise text.error(what, place_in_query(part, tree, text), hint)


_CREATES = {
    "expression": ("CREATE TABLE AS SELECT is not supported", "write only the SELECT, and name its output with -o"),
    "replace": ("OR REPLACE is not supported", "a query declares each table once"),
    "exists": ("IF NOT EXISTS is not supported", "a query declares each table once"),
}


_BY = "select the attribute with this name"


@dataclass(frozen=True, slots=True)
class SinkTable:
    """Table to write; a result must fit its `columns`, if declared, by position."""

    name: str
    target: Target
    columns: Schema | None

    @staticmethod
    def of(declaration: Declaration) -> SinkTable:
        """The sink that a declaration means for a table named by an INSERT.

        Raises:
            QueryError: The format is not a sink's, or an option is unknown or missing.
        """
        columns = flattened(Schema.parse(declaration.columns)) if declaration.columns else None
        if ":" in declaration.using:
            with declaration.placed():
                if declaration.partition_by:
                    raise UsageError("a sink of your own is not PARTITIONED", hint=f"a sink USING {PARTITIONED} is")
                target = Target.of_class(declaration.using, declaration.options)
        else:
            target = _written_target(declaration)
        return SinkTable(declaration.name, target, columns)

    def fitted(self, node: Node, text: QueryText, at: int, *, typed: bool) -> Node:
        """The result with the sink's columns; `typed` says whether the node's types are known.

        Raises:
            QueryError: The numbers of columns differ, a type is not wider, or a NOT NULL column may get null.
        """
        for name in self.target.partition_by:
            known = node.schema if self.columns is None else self.columns
            if name.lower() not in {attribute.lower() for attribute in known.names}:
                raise text.error(f"{self.name} is partitioned by {name}, which it does not have", at, _BY)
        if self.columns is None:
            return node
        if len(self.columns) != len(node.schema):
            what = f"{self.name} has {len(self.columns)} columns, but the inserted result has {len(node.schema)}"
            raise text.error(what, at, "columns correspond by position")
        made: list[Column] = []
        for wanted, attribute in zip(self.columns, node.schema, strict=True):
            domain = lossless_cast(attribute.domain, wanted.domain.type) if typed else attribute.domain
            if domain is None:
                what = (
                    f"{wanted.name} of {self.name} is {wanted.domain.type}, {attribute.name} is {attribute.domain.type}"
                )
                raise text.error(what, at, f"write CAST({attribute.name} AS {wanted.domain.type})")
            if typed and domain.nullable and not wanted.domain.nullable:
                what = f"{wanted.name} of {self.name} is NOT NULL, {attribute.name} may be null"
                raise text.error(what, at, f"write coalesce({attribute.name}, …), or declare it without NOT NULL")
            is_same = domain.type == attribute.domain.type
            expression = quoted(attribute.name) if is_same else f"CAST({quoted(attribute.name)} AS {domain.type})"
            made.append(Column(Attribute(wanted.name, domain), expression, attribute.name))
        return projected(node, made)


def _written_target(declaration: Declaration) -> Target:
    """The target that a sink's format and options name; raises as `SinkTable.of`."""
    kind = SINKS.get(declaration.using.lower())
    if kind is None:
        what = f"a sink USING {declaration.using} is not supported"
        raise declaration.error(what, f"the formats of sinks are {', '.join(SINKS)}; your own is 'module:Class'")
    if declaration.partition_by and kind.form is None:
        raise declaration.error(f"a sink USING {kind.name} is not PARTITIONED", f"a sink USING {PARTITIONED} is")
    known = {option.lower() for option in kind.options}
    given: dict[str, str] = {}
    xml, paths = list[str](), list[tuple[str, str]]()
    for option, value in declaration.options.items():
        if kind.has_elements and option.lower().startswith("path."):
            column = option.partition(".")[2]
            if value.replace(" ", "") == f"xml({column})":
                xml.append(column)
            else:
                paths.append((column, value))
        elif option.lower() in known:
            given[option.lower()] = value
        else:
            hint = did_you_mean(option, kind.options, f"it has {', '.join(kind.options)}")
            raise declaration.error(f"a sink has no option {option}", hint)
    if not (output := given.get(kind.options[0])):
        raise declaration.error(f"the option {kind.options[0]} is missing", kind.needed)
    if kind.output is not None:
        output = kind.output(given, declaration.name)
    elif is_object_url(output):
        output = with_options(output, given)
    elif others := [option for option in OPTIONS if option in given]:
        raise declaration.error(f"{others[0]} is an option of an object store", "the path is one: s3://bucket/out")
    tags, spaces = (given.get("rowtag", "row"), given.get("roottag", "rows")), given.get("namespaces", "")
    try:
        names = Vocabulary(*tags, spaces, tuple(paths), tuple(xml), given.get("punctuations", "inline"))
        return Target(output, names, kind.name, declaration.partition_by)
    except UsageError as error:
        raise declaration.error(error.what, error.hint) from None
