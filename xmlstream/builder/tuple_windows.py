"""Windows over tuples of a query, to be aggregated: what `Query.tuple_window` gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from punct_ns.errors import QueryError
from xmlstream.builder.arguments import listed
from xmlstream.sql.analysis import SparkAnalyst
from xmlstream.sql.plan_builder import Item, finished
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Relation, resolve
from xmlstream.sql.statements import parse_statements
from xmlstream.sql.supported import require_supported
from xmlstream.sql.tuple_windows import TupleWindow, over_tuples

if TYPE_CHECKING:
    from xmlstream.builder.query import Query


@dataclass(frozen=True, slots=True)
class TupleWindows:
    """A query's tuples in windows of so many."""

    query: Query
    window: TupleWindow

    def agg(self, *aggregates: str) -> Query:
        """One tuple of each window, as soon as its last tuple comes: what it is counted per, then these.

        An item is an aggregate or an expression over aggregates: `agg("avg(v) AS mean", "max(v) - min(v) AS spread")`.

        Raises:
            QueryError: There is none; or the query's tuples have no order, as above a merge or a join.
        """
        if not aggregates:
            raise QueryError("nothing to aggregate", hint='for example agg("avg(v) AS mean")')
        text = QueryText.joined(["SELECT ", *listed(aggregates), " FROM `input`"])
        statement = parse_statements(text)[0]
        require_supported(statement.tree, text)
        relation = Relation.of(self.query.root)
        items = [
            Item(tree.alias or None, resolve(tree.unalias().unnest(), relation, text))
            for tree in statement.tree.expressions
        ]
        analyst = SparkAnalyst(self.query.spark)
        made = over_tuples(self.query.root, self.window, items, analyst, text)
        return type(self.query)(self.query.spark, finished(made, analyst, text, None))
