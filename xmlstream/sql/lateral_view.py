"""LATERAL VIEW as a plan: a tuple of each element of an array, which is an attribute or computed below.

SELECT t.id, v.tag FROM post AS t LATERAL VIEW OUTER explode(t.tags) v AS tag
"""

from __future__ import annotations

from sqlglot import exp

from operators.explode import Explode
from operators.expressions.dialect import offset, render
from punct_ns.domain import Domain
from punct_ns.schema import Attribute
from punct_ns.slices import quoted
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import Analyst
from xmlstream.sql.plan_builder import keyed, unique
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Field, Relation, resolve

_CALLED = "col"
"""What Spark calls an element for which the query has no name."""


def exploded(relation: Relation, view: exp.Lateral, analyst: Analyst, text: QueryText) -> Relation:
    """The relation with the elements of an array, as one more field.

    Raises:
        QueryError: It is not an array, or a name means nothing.
    """
    call, alias = view.this, view.args["alias"]
    tree = resolve(call.expressions[0], relation, text).unnest()
    node, names = keyed(relation.node, [tree], [], analyst)
    array = names[render(tree)]
    (element, *others) = analyst.columns(node.schema, [f"explode({quoted(array)})"])
    columns = [column.name for column in alias.args.get("columns") or ()] or [_CALLED]
    if others or len(columns) > 1:
        hint = "map_keys(…) and map_values(…) are arrays, and map_entries(…) is one of both"
        raise text.error("explode of a map is not supported", offset(call), hint)
    attribute = Attribute(unique(columns[0], node.schema.names), Domain(element[1].type))
    outer = bool(view.args.get("outer")) or str(call.this).lower() == "explode_outer"
    fields = (*relation.fields, Field(columns[0], attribute.name, alias.name or None))
    return Relation(Node(Explode(array, attribute, outer), (node,), "explode"), fields)
