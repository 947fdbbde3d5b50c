"""Every operator with what the papers' invariants say of it, for any small schema."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from tests.oracles import invariants, oracle
from tests.oracles.invariants import Invariants
from tests.oracles.oracle import Tuple
from tests.properties.case import STREAM, Case, numbered, one
from tests.properties.explode_cases import EXPLODE
from tests.properties.pair_cases import PAIRS
from tests.properties.punctuation_cases import PUNCTUATIONS
from tests.properties.row_window_cases import ROWS
from tests.samples.strategies import SmallSchema
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.distinct_on import DistinctOn
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.expressions.dialect import literal
from xmlstream.operators.expressions.output_columns import Column, coalesced_domain
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.merge import Merge
from xmlstream.operators.project import Project
from xmlstream.operators.select import Select
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.top_n import TopN
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema


def selecting(space: SmallSchema) -> Case:
    """The tuples whose first value comes before the middle one of its domain."""
    first = space.smalls[0]
    middle = first.universe[len(first.universe) // 3]
    assert middle is not None

    def predicate(t: Tuple) -> bool | None:
        return None if t[0] is None else not oracle.before(middle, t[0])

    operator = Select(f"`a` <= {literal(middle, first.domain)}")
    return Case(operator, one(space), invariants.selecting(predicate), space.universe)


def projecting(space: SmallSchema) -> Case:
    """All attributes but the first, and whether that is null."""
    kept = space.schema.attributes[1:]
    first = space.schema[0].name
    columns = [Column(attribute, f"`{attribute.name}`", attribute.name) for attribute in (STREAM, *kept)]
    columns.append(Column(Attribute("absent", Domain("BOOLEAN", nullable=False)), f"`{first}` IS NULL"))

    def project(t: Tuple) -> Tuple:
        return (*t[1:], t[0] is None)

    def closed(u: Tuple, ts: Any, ps: Any) -> bool:
        # The operator does not look into the expression: it speaks of copied attributes only.
        return all(oracle.set_match(t, ps[0]) for t in space.universe if oracle.same_tuple(t[1:], u[:-1]))

    whole = invariants.projecting(project, space.universe)
    specified = Invariants(whole.cpass, closed, whole.ckeep, whole.relation)
    outputs = [(*t, absent) for t in product(*(s.universe for s in space.smalls[1:])) for absent in (False, True)]
    return Case(Project(tuple(columns)), one(space), specified, outputs)


def coalescing(space: SmallSchema) -> Case:
    """The first value that is not null of those attributes that are of the first one's type, and the others."""
    one_, *rest = space.schema.attributes
    alike = [a for a in rest if a.domain.type == one_.domain.type]
    others = [a for a in rest if a not in alike]
    places = [0, *(space.schema.index(a.name) for a in alike)]
    text = f"coalesce({', '.join(f'`{space.schema[at].name}`' for at in places)})"
    given = Schema((STREAM, *space.schema.attributes))
    columns = [Column(attribute, f"`{attribute.name}`", attribute.name) for attribute in (STREAM, *others)]
    domain = coalesced_domain(text, given)
    assert domain is not None
    columns.append(Column.computed(Attribute("either", domain), text, given))

    def project(t: Tuple) -> Tuple:
        first = next((t[at] for at in places if t[at] is not None), None)
        return (*(t[space.schema.index(a.name)] for a in others), first)

    outputs = oracle.distinct([project(t) for t in space.universe])
    return Case(Project(tuple(columns)), one(space), invariants.projecting(project, space.universe), outputs)


def deduplicating(space: SmallSchema) -> Case:
    return Case(Distinct(), one(space), invariants.deduplicating(), space.universe)


def deduplicating_keys(space: SmallSchema) -> Case:
    """The first tuple of each stream's values of all attributes but the first."""
    operator = DistinctOn(("stream", *space.schema.names[1:]))
    specified = invariants.first_of_each(lambda t: t[1:], space.universe)
    return Case(operator, one(space), specified, space.universe, positions=True)


def merging(space: SmallSchema) -> Case:
    return Case(Merge(numbered(space.schema)), one(space) * 2, invariants.merging(), space.universe)


def _least(ts: list[Tuple]) -> Any:
    present = [t[0] for t in ts if t[0] is not None]
    least = present[0] if present else None
    for value in present:
        if oracle.before(value, least):
            least = value
    return least


def _grouping(space: SmallSchema, aggregates: tuple[Aggregate, ...], answer: Callable[[list[Tuple]], Tuple]) -> Case:
    """Groups by all attributes but the first."""

    def key(t: Tuple) -> Tuple:
        return t[1:]

    by = space.schema.names[1:]
    keys = list(product(*(small.universe for small in space.smalls[1:])))
    specified = invariants.grouping(key, answer, space.universe)
    outputs = [(*k, *(None for _ in aggregates)) for k in keys]
    return Case(GroupBy(("stream", *by), aggregates), one(space), specified, outputs)


def grouping(space: SmallSchema) -> Case:
    """Aggregates that decompose: kept are groups."""
    domain = space.schema[0].domain
    aggregates = (
        Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)"),
        Aggregate(Attribute("least", Domain(domain.type)), f"min(`{space.schema[0].name}`)"),
    )
    case = _grouping(space, aggregates, lambda ts: (len(ts), _least(ts)))
    return Case(
        case.operator,
        case.inputs,
        case.invariants,
        case.outputs,
        lambda ckeep: len(oracle.distinct([t[1:] for t in ckeep])),
    )


def grouping_tuples(space: SmallSchema) -> Case:
    """One that does not: kept are tuples."""
    first = space.schema[0].name
    aggregates = (
        Aggregate(Attribute("kinds", Domain("BIGINT", nullable=False)), f"count(DISTINCT `{first}`)"),
        Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)"),
    )

    def answer(ts: list[Tuple]) -> Tuple:
        return len(oracle.distinct([(t[0],) for t in ts if t[0] is not None])), len(ts)

    return _grouping(space, aggregates, answer)


def _topping(space: SmallSchema, topped: TopN, key: oracle.Key, groups: slice) -> Case:
    """The first tuples of the groups by these attributes of a stream's own, in order of one of them."""
    shown = topped.number is not None
    specified = invariants.leading(
        lambda t: t[groups],
        [key],
        lambda ts: oracle.ranked(topped.rank, [key], ts),
        topped.n,
        space.surroundings,
        shown=shown,
    )
    return Case(topped, one(space), specified, [(*t, 1) if shown else t for t in space.universe], at_most=True)


def topping(space: SmallSchema) -> Case:
    """The two greatest first values of the groups by all other attributes, numbered."""
    first, *others = space.schema.names
    number = Attribute("number", Domain("INT", nullable=False))
    topped = TopN(2, (SortKey(first, descending=True),), ("stream", *others), number=number)
    return _topping(space, topped, oracle.Key(0, descending=True, nulls_first=False), slice(1, None))


def topping_all(space: SmallSchema) -> Case:
    """Of each stream the three tuples that are least by the last attribute, null last, and then by the others."""
    topped = TopN(3, (SortKey(space.schema.names[-1], nulls_first=False),), ("stream",))
    return _topping(space, topped, oracle.Key(len(space.schema) - 1, nulls_first=False), slice(0))


def topping_with_ties(space: SmallSchema) -> Case:
    """All tuples of a first value that have less than two before them by the last attribute, with their ranks."""
    number = Attribute("rank", Domain("INT", nullable=False))
    topped = TopN(2, (SortKey(space.schema.names[-1]),), ("stream", space.schema.names[0]), "rank", number)
    return _topping(space, topped, oracle.Key(len(space.schema) - 1), slice(1))


def topping_different(space: SmallSchema) -> Case:
    """All tuples of a stream's two least values of the last attribute, null first, with the number of the value."""
    number = Attribute("rank", Domain("INT", nullable=False))
    topped = TopN(2, (SortKey(space.schema.names[-1]),), ("stream",), "dense_rank", number)
    return _topping(space, topped, oracle.Key(len(space.schema) - 1), slice(0))


CATALOGUE: dict[str, Callable[[SmallSchema], Case]] = {
    "select": selecting,
    "project": projecting,
    "project, coalesced": coalescing,
    "distinct": deduplicating,
    "distinct_on": deduplicating_keys,
    "merge": merging,
    "group_by": grouping,
    "group_by, tuples kept": grouping_tuples,
    "top_n": topping,
    "top_n, of all": topping_all,
    "top_n, with ties": topping_with_ties,
    "top_n, different": topping_different,
    **EXPLODE,
    **ROWS,
    **PUNCTUATIONS,
    **PAIRS,
}
