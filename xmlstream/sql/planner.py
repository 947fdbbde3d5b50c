"""One query of SQL, in Spark's dialect, over tables that are there: checked, then planned.

Sketching finds what is wrong with the text and its names, and needs no Spark; planning asks Spark for the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from punct_ns.domain import Domain
from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from punct_ns.window_attributes import structured
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import NamesOnly, SparkAnalyst
from xmlstream.sql.relation import Relation
from xmlstream.sql.statements import Statement
from xmlstream.sql.supported import require_supported
from xmlstream.sql.translation import Translation


def sketched(query: Statement, tables: Mapping[str, Relation]) -> Node:
    """The query's plan without types, after all that can be known of a query without Spark has been checked.

    Raises:
        QueryError: It uses what is not supported, or names what there is not.
    """
    require_supported(query.tree, query.text)
    return _translated(query, tables, Translation(query.text, NamesOnly()))


def planned(query: Statement, tables: Mapping[str, Relation], analyst: SparkAnalyst) -> Node:
    """The plan of a query that was checked; queries over the same tables are best planned by one analyst.

    Raises:
        QueryError: An expression has no type, or Spark takes the query for another.
    """
    with _placed(query):
        types = analyst.require_faithful(query, {name: relation.schema for name, relation in tables.items()})
        root = _translated(query, tables, Translation(query.text, analyst))
    found = _types(root.schema)
    if [*map(_comparable, found)] != [*map(_comparable, types)]:
        raise query.text.error(f"the result has types {found}, to Spark it has {types}", query.start)
    return root


@contextmanager
def _placed(query: Statement) -> Iterator[None]:
    """Gives what is found while a query is planned its place, that of the query where no better one is known."""
    try:
        yield
    except QueryError as error:
        if error.where is not None:
            raise
        raise query.text.error(error.what, query.start, error.hint) from None
    except ValueError as error:  # a type or a literal of Spark's that is none here
        raise query.text.error(str(error), query.start) from None


def _translated(query: Statement, tables: Mapping[str, Relation], translation: Translation) -> Node:
    return translation.plan(query.tree, {name.lower(): relation for name, relation in tables.items()})


def _comparable(type_: str) -> str:
    """A type without what Spark does not say of fields: that they are never null."""
    return type_.upper().replace(" NOT NULL", "")


def _types(schema: Schema) -> list[str]:
    """The types as Spark has them: a window is a structure."""
    types = (Domain(type_.removesuffix(" NOT NULL")).type for _, type_ in structured(schema))
    return list(types)
