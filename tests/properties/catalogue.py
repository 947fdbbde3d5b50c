"""Every operator with what the papers' invariants say of it, for any small schema."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from operators.aggregates import Aggregate
from operators.distinct import Distinct
from operators.group_by import GroupBy
from operators.merge import Merge
from operators.project import Column, Project
from operators.select import Select
from punct_ns.domain import Domain
from punct_ns.schema import Attribute
from punct_ns.slices import literal
from tests import invariants, oracle
from tests.invariants import Invariants
from tests.oracle import Tuple
from tests.properties.case import STREAM, Case, numbered, one
from tests.properties.pair_cases import PAIRS
from tests.properties.punctuation_cases import PUNCTUATIONS
from tests.strategies import SmallSchema


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


def deduplicating(space: SmallSchema) -> Case:
    return Case(Distinct(), one(space), invariants.deduplicating(), space.universe)


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


CATALOGUE: dict[str, Callable[[SmallSchema], Case]] = {
    "select": selecting,
    "project": projecting,
    "distinct": deduplicating,
    "merge": merging,
    "group_by": grouping,
    "group_by, tuples kept": grouping_tuples,
    **PUNCTUATIONS,
    **PAIRS,
}
