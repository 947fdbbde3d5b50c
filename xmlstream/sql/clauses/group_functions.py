"""Functions of Python over whole groups, as nodes of a plan: each group is given to the function once, when complete.

SELECT * FROM slope(TABLE(bid) PARTITION BY auction)

The rows of a group are an aggregate that has no partial results: so the operator that groups keeps the group's tuples,
until punctuations close it. Above it the function is called, and its rows are exploded. An accumulator is an aggregate
that has partial results, its states: so one state is kept for a group, and above it `finish` is called.

The rewriting of FROM (`xmlstream.sql.flink_windows`) puts the call in the place of a SELECT's items: `inline(slope(…))`
of the keys alone. A column of the result that is called as a key is a copy of the key, and its punctuations pass; all
others are what the function gives.
"""

from __future__ import annotations

from sqlglot import exp

from xmlstream.operators.explode import Explode
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.expressions.dialect import call_name, cast_to, named, render, structure
from xmlstream.operators.expressions.operations.python_functions import PythonFunction, is_passed, known_by
from xmlstream.operators.group_by import GroupBy
from xmlstream.plan.nodes import Names, Node
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute
from xmlstream.sql.clauses.plan_builder import keyed, select_items
from xmlstream.sql.clauses.relation import Item, Relation, resolve, window_of
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import Analyst
from xmlstream.sql.spark.functions import aggregates_in


def applied(call: exp.Anonymous, relation: Relation, analyst: Analyst, text: QueryText) -> Relation:
    """The rows that a function gives for the groups of a relation by the call's arguments.

    Raises:
        QueryError: A column cannot be given to a function, or a key has another type than its column in the result.
    """
    function, relation = known_by(call_name(call)), relation.whole()
    assert function is not None
    _require_columns(function, relation, call, text)
    _require_keys(call, text)
    trees = [tree for key in call.expressions for tree in _key(key, relation, text)]
    node, keys = keyed(relation.node, trees, [], analyst)
    shown = {field.attribute: field.name for field in relation.fields if field.starred}
    by_name = {shown.get(key, key): key for key in keys.values()}
    called = Names(keys.values())
    rows, result, row = (called.take(name) for name in ("state" if function.step else "rows", "result", "row"))
    of_tuple = structure({field.name: field.attribute for field in relation.fields if field.starred})
    collected = render(exp.Anonymous(this="collect_list", expressions=[of_tuple]))
    if function.step:
        adding = function.of_step("add")
        collected, domain = f"{adding.key}({collected})", Domain(adding.type.name)
    else:
        ((_, domain),) = analyst.columns(node.schema, [collected])
    groups = Node(
        GroupBy(tuple(by_name.values()), (Aggregate(Attribute(rows, domain), collected),)), (node,), "group_by"
    )
    key_of_group = [structure(by_name)] if by_name else []
    of_group = exp.Anonymous(this=function.key, expressions=[*key_of_group, named(rows)])
    items = [*(Item(key, named(key)) for key in by_name.values()), Item(result, of_group)]
    made = select_items(groups, items, analyst).node
    assert function.type.element is not None
    element = Attribute(row, Domain(function.type.element.name, nullable=False))
    exploded = Node(Explode(result, element, replaces=True), (made,), "explode")
    folded = {name.lower(): key for name, key in by_name.items()}
    columns = []
    for field in function.type.element.fields:
        column: exp.Expr = exp.Dot(this=named(row), expression=exp.to_identifier(field.name, quoted=True))
        if (key := folded.get(field.name.lower())) is not None:
            type_ = groups.schema.attribute(key).domain.type
            if analyst.common(field.type.name, type_) != field.type.name:
                what = (
                    f"the function {function.name} has {field.name} {field.type.name}, and the key is of type {type_}"
                )
                raise text.error(what, call, f"declare {field.name} {type_}")
            column = named(key) if type_ == field.type.name else cast_to(named(key), field.type.name)
        columns.append(Item(field.name, column))
    return select_items(exploded, columns, analyst)


def _key(key: exp.Expr, relation: Relation, text: QueryText) -> list[exp.Expr]:
    """The expression of a key over the relation's attributes; of a window, its ends."""
    if (window := window_of(key, relation)) is not None:
        return [named(field.attribute) for field in window]
    return [resolve(key, relation, text).unnest()]


def _require_keys(call: exp.Anonymous, text: QueryText) -> None:
    """Refuses aggregates and time windows as keys."""
    for found in aggregates_in(*call.expressions):
        raise text.error("an aggregate as a key of groups is not supported", found, "compute it in a query below")
    for name, hint in _WINDOWS.items():
        for found in call.find_all(exp.Anonymous):
            if call_name(found) == name:
                raise text.error(f"{name}(…) is not supported as a key of a function's groups", found, hint)


_WINDOWS = {
    "window": "compute it in a query below, SELECT *, window(ts, '10 minutes') AS w, and group by w",
    "session_window": "sessions have aggregates alone: group by a key that ends, or by window(ts, '10 minutes') AS w",
}


def _require_columns(function: PythonFunction, relation: Relation, call: exp.Expr, text: QueryText) -> None:
    """Refuses columns of one name, and of types that a function does not take."""
    seen = set[str]()
    for field in (field for field in relation.fields if field.starred):
        type_ = relation.node.schema.attribute(field.attribute).domain.sql
        if field.name.lower() in seen:
            what = f"the function {function.name} would get two columns {field.name}"
            raise text.error(what, call, "give one of them another name in the query below")
        if not is_passed(type_):
            what = f"the function {function.name} cannot take the column {field.name}, of type {type_.name}"
            raise text.error(what, call, "select what it is to have in the query below, without this column")
        seen.add(field.name.lower())
