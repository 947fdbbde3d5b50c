"""A join of many queries at once: what no pair of them could purge, a chain of their punctuations may."""

from __future__ import annotations

from typing import Literal

from operators.joins.purge_strategy import EAGER, asked
from operators.multiway_join import MultiwayJoin
from punct_ns.errors import QueryError
from xmlstream.builder.arguments import argument
from xmlstream.builder.query import Query
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import SparkAnalyst
from xmlstream.sql.joining import equalities_between, with_unique_names
from xmlstream.sql.plan_builder import finished
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Relation, resolve
from xmlstream.sql.statements import parse_statements


def multiway_join(
    on: str, purge: Literal["eager", "lazy"] | None = None, every: int | None = None, **queries: Query
) -> Query:
    """The combinations of tuples of several queries that satisfy a condition.

    Args:
        on: Equalities of attributes that connect all queries, and perhaps further conditions, joined by AND; the
            queries go by the names of their arguments: `multiway_join("a.x = b.x AND b.y = c.y", a=…, b=…, c=…)`.
        purge: Whether kept tuples are looked through in every slice, or only now and then; None for what costs less, as
            far as a former run with the checkpoint has measured it.
        every: After how many slices a lazy purge comes again; 10 unless said.
        queries: The queries, by name; their attributes must differ in name, or be renamed before.

    Raises:
        QueryError: There are fewer than two queries, the equalities do not connect them, or names are not clear.
    """
    if len(queries) < 2:
        raise QueryError("a join of fewer than two queries", hint="multiway_join(on, a=…, b=…, c=…)")
    spark = next(iter(queries.values())).spark
    analyst = SparkAnalyst(spark)
    relations: list[Relation] = []
    for name, query in queries.items():
        taken = [other for relation in relations for other in relation.node.schema.names]
        relations.append(with_unique_names(Relation.of(query.root, name), taken, analyst))
    text = QueryText.joined(["SELECT ", argument(on)])
    tree = parse_statements(text)[0].tree.expressions[0]
    whole = Relation(relations[0].node, tuple(field for relation in relations for field in relation.fields))
    nodes = tuple(relation.node for relation in relations)
    equalities, residual = equalities_between(resolve(tree, whole, text), [node.schema for node in nodes])
    strategy = EAGER if purge is None else asked(purge, every)
    join = MultiwayJoin(len(nodes), equalities, residual, strategy).bounded(*(node.schema for node in nodes))
    node = Node(join, nodes, "multiway_join")
    if residual is not None:
        analyst.require_condition(node.schema, residual)
    return Query(spark, finished(Relation(node, whole.fields), analyst, text, None))
