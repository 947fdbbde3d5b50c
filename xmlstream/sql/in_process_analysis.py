"""Analysis without Spark: names and types of a query's expressions from the tables of what is proven.

Here sqlglot's tree is the only reading of a text. Forms that Spark would read otherwise are refused, as is every
expression whose value, type or name in Spark is not known: the engine in process computes it as Spark does, or not at
all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.expressions.operations.casts import common_type
from xmlstream.operators.expressions.operations.part import Part, of_column
from xmlstream.operators.expressions.operations.python_functions import as_written
from xmlstream.operators.expressions.operations.spark_type import NotProven, name_in_duckdb, read_type
from xmlstream.operators.expressions.output_columns import coalesced_domain
from xmlstream.operators.expressions.readings import in_brackets, misread, misreading
from xmlstream.operators.expressions.type_rules import never_null
from xmlstream.operators.in_process.expressions import Columns, generator, translated
from xmlstream.operators.in_process.names import default_name
from xmlstream.operators.in_process.plain_csv import require_readable
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.distance import before
from xmlstream.operators.punctuators.order import ByOrder
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.storage.object_urls import require_known_scheme
from xmlstream.plan.nodes import POSTGRESQL, Node, Static
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema, structured
from xmlstream.punct_ns.slices import quoted
from xmlstream.sources.xml.parser.plain_tables import not_plain
from xmlstream.sql.spark.analysis import WholeAnalyst

if TYPE_CHECKING:
    from xmlstream.sql.statements import Statement


class ProvenAnalyst(WholeAnalyst):
    """Analyst that knows the expressions that are proven to be equal in DuckDB, in a session's time zone."""

    def __init__(self, zone: str = "UTC") -> None:
        self._zone = zone

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        """Spark's names and types; an expression is not nullable if Spark or `never_null` knows that."""
        return [self._column(schema, text) for text in expressions]

    def _column(self, schema: Schema, text: str) -> tuple[str, Domain]:
        if (rows := generator(text, columns_of(schema), self._zone)) is not None:
            ((name, element),) = rows.columns
            return name, Domain(element.type.name, element.nullable)
        found = self._translated(schema, text)
        nullable = found.nullable and not never_null(expression(text), schema)
        domain, coalesced = Domain(found.type.name), coalesced_domain(text, schema)
        if coalesced is not None and coalesced.type == domain.type:
            domain = coalesced
        try:
            name = default_name(text, {})
        except NotProven:
            name = as_written(text)  # which stands only where there is no AS
        return name, replace(domain, nullable=nullable)

    def require_condition(self, schema: Schema, expression: str) -> None:
        """Checks that the expression is a BOOLEAN."""
        found = self._translated(schema, expression)
        if found.type.name not in ("BOOLEAN", "VOID"):
            what = f"the condition {expression} is of type {found.type.name}, not BOOLEAN"
            raise QueryError(what, hint="compare it, as in v > 0")

    def require_table(self, node: Node) -> None:
        """Checks that a static table has a format that is read alike, and that what rules compute is proven."""
        match node.operator:
            case Static(format=str() as format_, options=options, schema=schema) if format_ != POSTGRESQL:
                given = dict(options)
                require_known_scheme(given.pop("path"))
                if format_.lower() != "xml":
                    require_readable(format_, schema.ddl(), given, self._zone)
                elif reason := not_plain(schema, dict(options)):
                    raise NotProven(reason)
            case Punctuate(rule=ByOrder(max_ahead=ahead) as rule) if ahead is not None:
                raise NotProven(f"max_ahead of the rule '{rule.name}'")
            case Punctuate(rule=ByOrder() | ByRoster() as rule) if rule.attribute is not None and rule.slack:
                schema, name = node.inputs[0].schema, rule.attribute
                self._translated(schema, before(quoted(name), rule.slack, schema.attribute(name).domain))
        for below in node.inputs:
            self.require_table(below)

    def widened(self, schemas: Sequence[Schema]) -> list[str]:
        """The types of Spark's union."""
        if len({len(schema) for schema in schemas}) > 1:
            numbers = " and ".join(str(len(schema)) for schema in schemas)
            raise QueryError(f"a UNION has {numbers} columns", hint="each part needs as many as the first")
        found = []
        for domains in zip(*([a.domain for a in schema] for schema in schemas), strict=True):
            types = list(dict.fromkeys(domain.type for domain in domains))
            wider = read_type(types[0]) if len(types) == 1 else common_type([read_type(type_) for type_ in types])
            if wider is None:
                raise NotProven(f"a UNION of {' and '.join(types)}")
            found.append(Domain(wider.name).type)
        return found

    def require_faithful(self, statement: Statement, tables: Mapping[str, Schema]) -> None:
        """Checks that Spark reads the written query as this package does.

        There are no types of the result to compare with: those of the plan come from the same tables.

        Raises:
            QueryError: A part of the text would be read otherwise by Spark.
        """
        if (found := misread(statement.tree)) is not None:
            raise statement.text.error(misreading(found), found, in_brackets())

    def _translated(self, schema: Schema, text: str) -> Part:
        columns = columns_of(schema)
        try:
            return translated(text, columns, self._zone)
        except NotProven:
            raise
        except QueryError as error:
            if not error.what.startswith("there is no attribute "):
                raise
            wanted = error.what.removeprefix("there is no attribute ")
            raise QueryError(error.what, hint=f"there are {', '.join(alike(wanted, schema.names))}") from None


@lru_cache(maxsize=64)
def columns_of(schema: Schema) -> Columns:
    """The attributes as DuckDB reads them, by their names in lower case; a window is also one structure."""
    own = {a.name.lower(): of_column(name_in_duckdb(a.name), a.domain.type, a.domain.nullable) for a in schema}
    for name, type_ in structured(schema):
        if name.lower() not in own and type_.lower().startswith("struct<"):
            sql = f'struct_pack(start := {name_in_duckdb(name + ".start")}, "end" := {name_in_duckdb(name + ".end")})'
            own[name.lower()] = of_column(sql, type_, False)
    return own


MOST = 5
"""The most names that a hint proposes."""


def alike(name: str, names: Iterable[str]) -> list[str]:
    """The names most like one, first the most alike.

    >>> alike("pirce", ["auction", "price", "bidder"])
    ['price', 'bidder', 'auction']
    """
    return sorted(names, key=lambda other: _distance(name.lower(), other.lower()))[:MOST]


def _distance(one: str, other: str) -> int:
    """The number of letters to change, to add or to take away."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, its in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != its))
    return row[-1]
