"""Predicates below joins: a tuple that no pair is wanted of need not wait for a partner.

    inner join, of two or many   a part goes to each side whose attributes it looks at, where what must be equal to one
                                 of them stands for it: with x.id = y.auction, x.id > 5 asks y.auction > 5, too
    left (right) outer join      what looks at the preserved side goes there; below the null-supplying side none goes,
                                 and in a full outer join both supply nulls
    semi join, anti join         all goes to the left; what looks at join attributes alone goes also to the right, since
                                 nothing else there will be anyone's partner

The further condition of an inner join or a semi join is parted in the same way, and stays as far as it looks at both
sides. That of an anti join says who is no partner: what it asks of the right goes there, what it asks of the left
stays. Of an outer join it says who has none, and stays whole.

Equal attributes have one type, to which both sides were cast if need be, and are never null where tuples are partners;
so a part that cannot fail says of one what it says of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from operators.expressions.dialect import expression, named
from operators.expressions.references import conjuncts
from operators.expressions.throwable import cannot_fail
from operators.join import Join
from operators.multiway_join import MultiwayJoin
from operators.semi_join import SemiJoin
from punct_ns.schema import Schema
from xmlstream.optimizer.predicates import Parted, Terms, conjunction, divided
from xmlstream.plan.nodes import Node

_NONE: Terms = {}


def at_join(node: Node, join: Join | SemiJoin | MultiwayJoin, asked: Sequence[exp.Expr]) -> Parted:
    """What of that which is asked of a join's tuples, and of its own further condition, its inputs can be asked."""
    schema = Schema(tuple(attribute for below in node.inputs for attribute in below.schema))
    above_terms, own_terms = _terms(node, join)
    below, above = divided(asked, above_terms, lambda part: cannot_fail(part, schema))
    own = conjuncts(expression(join.residual)) if join.residual else []
    below_too, rest = divided(own, own_terms, lambda part: cannot_fail(part, schema))
    # The join's own first: they came before.
    parts = [[*first, *then] for first, then in zip(below_too, below, strict=True)]
    return Parted(replace(join, residual=conjunction(rest)) if len(rest) < len(own) else join, parts, above)


def _terms(node: Node, join: Join | SemiJoin | MultiwayJoin) -> tuple[list[Terms], list[Terms]]:
    """The terms that each input has for what is asked of the join, and for what the join itself asks."""
    schemas = [below.schema for below in node.inputs]
    match join:
        case MultiwayJoin():
            both = [_of_input(i, schemas, join.graph.classes) for i in range(join.inputs)]
            return both, both
        case Join(kind="inner"):
            both = _of_two(schemas, join)
            return both, both
        case Join(kind=kind):
            plain = [_plain(schema) for schema in schemas]
            return [plain[0] if kind == "left" else _NONE, plain[1] if kind == "right" else _NONE], [_NONE, _NONE]
    left, right = _of_two(schemas, join)
    return [left, right], [_NONE if join.anti else left, right]


def _of_two(schemas: Sequence[Schema], join: Join | SemiJoin) -> list[Terms]:
    pairs: list[Mapping[int, str]] = [
        {0: mine, 1: theirs} for mine, theirs in zip(join.left_on, join.right_on, strict=True)
    ]
    return [_of_input(i, schemas, pairs) for i in range(2)]


def _of_input(i: int, schemas: Sequence[Schema], equal: Iterable[Mapping[int, str]]) -> Terms:
    """An input's own attributes, and those of others that must be equal to one of them."""
    terms: dict[str, exp.Expr] = {}
    for names in equal:
        if i not in names:
            continue
        own = schemas[i].attribute(names[i])
        for j, name in names.items():
            if schemas[j].attribute(name).domain.type == own.domain.type:
                terms[name.lower()] = named(own.name)
    return {**terms, **_plain(schemas[i])}


def _plain(schema: Schema) -> Terms:
    return {name.lower(): named(name) for name in schema.names}
