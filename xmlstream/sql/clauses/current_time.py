"""Current time in a plan: `current_timestamp()` and similar functions give the recorded time of the slice.

    SELECT bidder, count(*) AS bids, window.end
    FROM (SELECT *, current_timestamp() AS came FROM bid) GROUP BY bidder, window(came, '10 seconds')

In a SELECT and its WHERE, the time is that of the slice in which a tuple arrives there. Beside aggregates and in
HAVING, it is that of the slice that emits the group. In keys and within aggregates, it is that of the tuples.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from xmlstream.operators.expressions.dialect import cast_to, conjoined, conjuncts, offset, render
from xmlstream.operators.expressions.type_rules import whole_number
from xmlstream.sql.clauses.plan_builder import with_time
from xmlstream.sql.clauses.relation import (
    AFTER_WHERE,
    AS_IT_GOES_OUT,
    Field,
    Relation,
    clock_calls,
    reads_the_clock,
    trees_of,
)
from xmlstream.sql.spark.functions import aggregates_in


def stamped(select: exp.Select, relation: Relation) -> tuple[exp.Select, Relation]:
    """The SELECT with its calls of the current time replaced by a field, and the relation with that field."""
    replaced = select.copy()
    for item in replaced.expressions:
        if reads_the_clock(item.unnest(), relation):
            item.replace(exp.alias_(item.copy(), f"{_name(item.unnest())}()", quoted=True))
    clocked = with_clock(relation)
    has_groups = any(replaced.args.get(clause) for clause in ("group", "having")) or aggregates_in(
        *replaced.expressions
    )
    field = clocked.fields[-1].name
    is_below = False
    for clause in AFTER_WHERE:
        for tree in trees_of(replaced, [clause]):
            of_tuples = _of_tuples(tree, replaced) if has_groups and clause != "group" else _parts([tree])
            for call in clock_calls([tree], relation):
                is_below |= id(call) in of_tuples
                call.replace(_in_its_form(call, field if id(call) in of_tuples else AS_IT_GOES_OUT))
    return replaced, clocked if is_below else relation


def with_clock(relation: Relation) -> Relation:
    """The relation with the recorded time as last field; `*` does not include it."""
    node = with_time(relation.node)
    name = node.schema.names[-1]
    return Relation(node, (*relation.fields, Field(name, name, starred=False)))


def split(condition: exp.Expr, sources: list[Relation]) -> tuple[exp.Expr | None, exp.Expr | None]:
    """The conditions of WHERE on the current time, and its other conditions."""
    whole = sources[0].beside(*sources[1:])
    parts = [(part, bool(clock_calls([part], whole))) for part in conjuncts(condition)]
    of_time, rest = (conjoined(part for part, is_of_it in parts if is_of_it is wanted) for wanted in (True, False))
    return of_time, rest


def by_field(condition: exp.Expr, relation: Relation) -> exp.Expr:
    """The condition with calls of the current time replaced by the relation's last field."""
    whole = exp.paren(condition.copy())
    for call in clock_calls([whole], relation):
        call.replace(_in_its_form(call, relation.fields[-1].name))
    return whole


def _name(call: exp.Expr) -> str:
    return (call.name if isinstance(call, exp.Column) else str(call.this)).lower()


def _in_its_form(call: exp.Expr, field: str) -> exp.Expr:
    """The time in the type of the call: a moment, a date or a number."""
    column = exp.Column(this=exp.to_identifier(field, quoted=True))
    if (at := offset(call)) is not None:
        column.this.meta["start"] = at
    match _name(call):
        case "current_date" | "curdate":
            return cast_to(column, "DATE")
        case "localtimestamp":
            return cast_to(column, "TIMESTAMP_NTZ")
        case "unix_timestamp":
            return exp.Anonymous(this="unix_seconds", expressions=[column])
    return column


def _of_tuples(item: exp.Expr, select: exp.Select) -> set[int]:
    """The parts of an item that belong to tuples, not to the group: keys and arguments of aggregates."""
    group = select.args.get("group")
    keys = [] if group is None else group.expressions
    if any(_means(key, item, select) for key in keys):
        return _parts([item])
    texts = {render(key.unnest()) for key in keys}
    return _parts([*aggregates_in(item), *(node for node in item.walk() if render(node) in texts)])


def _parts(trees: Iterable[exp.Expr]) -> set[int]:
    return {id(node) for tree in trees for node in tree.walk()}


def _means(key: exp.Expr, item: exp.Expr, select: exp.Select) -> bool:
    """Whether a key refers to the item, by its number or its name."""
    if (number := whole_number(key)) is not None:
        return number <= len(select.expressions) and select.expressions[number - 1] is item
    is_name = isinstance(key, exp.Column) and len(key.parts) == 1
    return is_name and bool(item.alias) and key.name.lower() == item.alias.lower()
