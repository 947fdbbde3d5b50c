"""Hints that say how a join of three streams or more purges, in the place where Spark has hints.

    SELECT /*+ LAZY_PURGE(10) */ … FROM a JOIN b ON … JOIN c ON …

`LAZY_PURGE(n)` looks for what can be purged in every n-th slice, `LAZY_PURGE` in every tenth, `EAGER_PURGE` in each.
What is hinted at is run as one join of all, which alone purges so. Spark passes over hints that it does not know.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from operators.expressions.dialect import offset
from operators.expressions.literals import whole_number
from operators.join import Join
from operators.joins.purge_strategy import PurgeStrategy, asked
from xmlstream.plan.nodes import Node
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Relation


def is_purge_hint(hint: exp.Expr) -> bool:
    """Whether a hint says how to purge, and nothing else."""
    return _strategy(hint) is not None


def _strategy(hint: exp.Expr) -> PurgeStrategy | None:
    if len(hint.expressions) != 1:
        return None
    match hint.expressions[0]:
        case exp.Var(this=str(name)):
            every = None
        case exp.Anonymous(this=str(name), expressions=[number]) if every := whole_number(number):
            pass
        case _:
            return None
    match name.upper():
        case "LAZY_PURGE":
            return asked("lazy", every)
        case "EAGER_PURGE" if every is None:
            return asked("eager")
    return None


def hinted(relation: Relation, tree: exp.Select, sources: Collection[Relation], text: QueryText) -> Relation:
    """What FROM gives, whose inner joins are to purge as a hint of the SELECT says, if it has one.

    Raises:
        QueryError: It does not join three streams or more by inner joins.
    """
    hint = tree.args.get("hint")
    strategy = None if hint is None else _strategy(hint)
    if hint is None or strategy is None:
        return relation
    ends = {id(source.node) for source in sources}
    found = 0

    def purging(node: Node) -> Node:
        nonlocal found
        if id(node) in ends:
            return node
        inputs, operator = tuple(map(purging, node.inputs)), node.operator
        if isinstance(operator, Join) and operator.kind == "inner":
            found += 1
            operator = replace(operator, purge=strategy)
        return Node(operator, inputs, node.label)

    node = purging(relation.node)
    if found < 2:
        what = f"{hint.expressions[0].name.upper()} of a query that does not join three streams or more by inner joins"
        raise text.error(what, offset(tree.expressions[0]), "leave it out: a join of two looks at what is new alone")
    return Relation(node, relation.fields)
