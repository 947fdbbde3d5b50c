"""ASOF JOIN: each tuple with the last one of the other side that MATCH_CONDITION allows, as Spark has it since 4.3."""

from __future__ import annotations

from sqlglot import exp

from operators.asof_join import AsofJoin, AsofKind
from operators.expressions.bounds import bounds_between
from operators.expressions.conjuncts import conjoined
from operators.expressions.dialect import offset, render
from operators.expressions.references import attributes_in
from operators.join import Join
from xmlstream.plan.nodes import Node
from xmlstream.sql.analysis import Analyst
from xmlstream.sql.joining import NO_EQUALITY, Condition, keyed
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.relation import Relation

_STRICT: dict[type[exp.Expr], bool] = {exp.GTE: False, exp.GT: True}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
}
_HINT = "for example MATCH_CONDITION (bid.dateTime >= rate.since)"
_OLDEST = (
    "an age is said as AND rate.since >= bid.dateTime - INTERVAL 1 HOUR, of what MATCH_CONDITION compares; "
    "what one side alone must satisfy, select below the join"
)


def is_asof(join: exp.Join) -> bool:
    """Whether it is one."""
    return bool(join.kind.upper() == "ASOF")


def joined_asof(
    left: Relation,
    right: Relation,
    kind: AsofKind,
    condition: Condition,
    match: exp.Expr | None,
    analyst: Analyst,
    text: QueryText,
    at: int | None,
) -> Relation:
    """The as-of join of two relations whose attributes have different names; `match` is over those of both.

    Raises:
        QueryError: There is no equality between the sides; MATCH_CONDITION is missing, or does not say that something
            of the left is not before something of the right; a further condition is no bound from below of what it
            compares.
    """
    if match is None:
        raise text.error("an ASOF JOIN without MATCH_CONDITION", at, _HINT)
    if not condition.equal:
        raise text.error("an ASOF JOIN without an equality between its sides", at, NO_EQUALITY)
    sides, strict = _order(match.unnest(), left, right, text)
    nodes, keys, again = keyed((left.node, right.node), [*condition.equal, sides], analyst, text)
    if again:
        raise text.error("an ASOF JOIN that compares twice what it compares", offset(match), "leave one of them out")
    type_ = nodes[0].schema.attribute(keys[0][-1]).domain.type
    on, schemas = (keys[0][:-1], keys[1][:-1]), [node.schema for node in nodes]
    for part in condition.residual:
        found = bounds_between(render(part), on, schemas)[0]
        if not found or any(bound.upper or bound.attribute != keys[1][-1] for bound in found):
            what = "an ASOF JOIN on something else than equalities and how old a partner may be"
            raise text.error(what, offset(part), _OLDEST)
    within = conjoined(condition.residual)
    tolerance = None if within is None else render(within)
    if tolerance is not None:
        analyst.require_condition(Join("inner", *on).schema(*schemas), tolerance)
    operator = AsofJoin(kind, *on, keys[0][-1], keys[1][-1], type_, strict, tolerance).bounded(*schemas)
    return Relation(Node(operator, nodes, "asof_join"), (*left.fields, *right.fields))


def _order(match: exp.Expr, left: Relation, right: Relation, text: QueryText) -> tuple[tuple[exp.Expr, exp.Expr], bool]:
    """What of the left is compared with what of the right, and whether it must be later."""
    names = [set(side.node.schema.names) for side in (left, right)]
    if isinstance(match, exp.GTE | exp.GT | exp.LTE | exp.LT):
        kind: type[exp.Expr] = type(match)
        one, other = match.this, match.expression
        used = [set(attributes_in(side)) for side in (one, other)]
        if used[0] and used[0] <= names[1]:
            (one, other), used = (other, one), used[::-1]
            kind = _TURNED[kind]
        if used[0] and used[1] and used[0] <= names[0] and used[1] <= names[1]:
            if kind in _STRICT:
                return (one, other), _STRICT[kind]
            what = "an ASOF JOIN that looks for the next tuple, not for the last one, is not supported"
            raise text.error(what, offset(match), _HINT)
    raise text.error("MATCH_CONDITION compares the left with the right, by >= or >", offset(match), _HINT)
