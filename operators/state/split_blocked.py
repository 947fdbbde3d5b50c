"""Splitting of blocked punctuations: the parts to emit now, and the parts that kept tuples block.

A part of a punctuation is a punctuation. So the values of kept tuples are cut out of the patterns: if a tuple 2 is
kept, `{1,3}` of `[1,3]` is emitted. Punctuations that restrict the same attributes are cut as one set, which changes
nothing. Those that restrict other attributes, or end at another time, wait in sets of their own, so that none is
blocked because a wider one absorbed it. A punctuation that ends while it waits is forgotten: it held for an earlier
life of its values. The punctuation of wildcards alone is cut at the attributes that the operator names, or waits whole.

Each slice tries again, with the tuples that keep has left (Tucker et al. 2003, Table 3: setNomatchPs, for each part).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from operators.state.operator_state import OperatorState
from operators.state.slice_tuples import Tuples
from punct_ns.domain import Value
from punct_ns.lifespan import Lifespan
from punct_ns.pattern import Constant, Pattern, matches, patterns, values
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.slices import in_utc, matching, quoted
from punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


MOST = 20_000
"""The number of kept points up to which patterns are cut exactly; beyond it, only parts outside all points go out."""

Point = tuple[Value | None, ...]


class Rows(Protocol):
    """Kept tuples, such as those of a log."""

    def whole(self) -> Tuples | None:
        """All kept tuples; None if there are none."""


def emittable(
    name: str,
    given: Iterable[Punctuation],
    kept: Sequence[Rows],
    state: OperatorState,
    schema: Schema,
    cut_at: Sequence[str] = (),
    *,
    at_all: bool = False,
) -> list[Punctuation]:
    """The parts of the new and the blocked punctuations that no kept tuple matches; not minimal.

    Args:
        name: The name of the blocked set in the state; one for each input.
        given: The new punctuations, over `schema`.
        kept: The kept tuples; their columns include the attributes of `schema`.
        state: The state with the blocked set.
        schema: The schema of the input, or of the part that the operator keeps.
        cut_at: The attributes at which the punctuation of wildcards alone is cut.
        at_all: If given, the attributes at which every punctuation is cut; no punctuation restricts others.
    """
    waiting = state.waiting(name)
    cut = tuple(sorted(schema.index(attribute) for attribute in cut_at))
    frames = [whole.frame for log in kept if (whole := log.whole()) is not None]
    free: list[Punctuation] = []
    blocked: list[Punctuation] = []
    for places, by_lifespan in _by_places([*waiting, *given], cut, at_all=at_all).items():
        kept_points = _kept_points(by_lifespan.values(), places, frames, schema) if frames else None
        for lifespan, alike in by_lifespan.items():
            if kept_points is None:
                free += (p.lasting(lifespan) for p in alike)
                continue
            free_here, blocked_here = _parted(alike, places, kept_points, schema)
            free += (p.lasting(lifespan) for p in free_here)
            blocked += (p.lasting(lifespan) for p in blocked_here)
    waiting.replace(blocked)
    return free


def _by_places(
    ps: Iterable[Punctuation], cut: tuple[int, ...], *, at_all: bool
) -> dict[tuple[int, ...], dict[Lifespan | None, PunctuationSet]]:
    """The punctuations by the places at which they are cut, and by lifespan."""
    found: dict[tuple[int, ...], dict[Lifespan | None, PunctuationSet]] = {}
    for p in ps:
        alike = found.setdefault((not at_all and p.restricted) or cut, {})
        alike.setdefault(p.lifespan, PunctuationSet(p.schema)).add(p.lasting(None))
    return found


def _kept_points(
    given: Iterable[PunctuationSet], places: tuple[int, ...], frames: Sequence[DataFrame], schema: Schema
) -> list[Point] | DataFrame:
    """The points of the kept tuples that any of these matches; their frame if there are too many."""
    every = [p for each in given for p in each]
    names = [schema[i].name for i in places]
    found = [matching(frame, every).select(*map(quoted, names)) for frame in frames]
    whole = found[0]
    for part in found[1:]:
        whole = whole.unionAll(part)
    if not places:
        return [()] * whole.limit(1).count()
    points = _points(whole.dropDuplicates().limit(MOST + 1), places, schema)
    return points if len(points) <= MOST else whole


def _parted(
    given: PunctuationSet, places: tuple[int, ...], points: list[Point] | DataFrame, schema: Schema
) -> tuple[list[Punctuation], list[Punctuation]]:
    """The punctuations to emit, and the blocked ones."""
    if not isinstance(points, list):
        return _outside(given, places, points, schema)
    if not places:
        return ([], list(given)) if points else (list(given), [])
    if len(places) == 1:
        return _without(given, places[0], ValueSet.of(schema[places[0]].domain, (value for (value,) in points)))
    inside = _by_punctuation(given, places, points)
    free: list[Punctuation] = []
    for p in given:
        box = {i: values(p.patterns[i], schema[i].domain) for i in places}
        free += (Punctuation.at(schema, part) for part in _cut(box, places, inside.get(p, ())))
    held = {point for within in inside.values() for point in within}
    return free, [Punctuation.at(schema, _constants(places, point)) for point in points if point in held]


def _without(given: PunctuationSet, place: int, kept: ValueSet) -> tuple[list[Punctuation], list[Punctuation]]:
    """The punctuations on one attribute without some values, and the rest of them."""
    domain = given.schema[place].domain
    matched = ValueSet.everything(domain) if given.is_all else given.values(given.schema[place].name)
    parts = matched.difference(kept), matched.intersection(kept)
    free, blocked = ([Punctuation.at(given.schema, {place: pattern}) for pattern in patterns(part)] for part in parts)
    return free, blocked


def _by_punctuation(
    given: PunctuationSet, places: Sequence[int], points: Sequence[Point]
) -> dict[Punctuation, list[Point]]:
    """The points that each punctuation matches, at the places that it restricts."""
    found: dict[Punctuation, list[Point]] = {}
    wide = [Punctuation.at(given.schema, {i: p}) for i, single in given.singles.items() for p in single.patterns()]
    if given.is_all:
        wide = [Punctuation.all(given.schema)]
    for point in points:
        at = dict(zip(places, point, strict=True))
        for entry in given.several({i: Constant(value) for i, value in at.items()}):
            if all(matches(entry.punctuation.patterns[i], value) for i, value in at.items()):
                found.setdefault(entry.punctuation, []).append(point)
        for p in wide:
            if all(matches(p.patterns[i], value) for i, value in at.items()):
                found.setdefault(p, []).append(point)
    return found


def _constants(places: Sequence[int], point: Point) -> dict[int, Pattern]:
    return {i: Constant(value) for i, value in zip(places, point, strict=True)}


def _points(frame: DataFrame, places: Sequence[int], schema: Schema) -> list[Point]:
    columns = [
        [None if v is None else schema[i].domain.normal(v) for v in column.to_pylist()]
        for i, column in zip(places, in_utc(frame.toArrow()).columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def _cut(box: Mapping[int, ValueSet], places: Sequence[int], points: Sequence[Point]) -> Iterator[dict[int, Pattern]]:
    """The box without the points, as boxes that do not overlap."""
    first, rest = places[0], places[1:]
    found: dict[Value | None, list[Point]] = {}
    for value, *others in points:
        found.setdefault(value, []).append(tuple(others))
    beside = box[first].difference(ValueSet.of(box[first].domain, found))
    for chosen in product(patterns(beside) if not beside.is_empty else (), *(patterns(box[i]) for i in rest)):
        yield dict(zip(places, chosen, strict=True))
    if rest:
        for value, others_ in found.items():
            for part in _cut(box, rest, others_):
                yield {first: Constant(value), **part}


def _outside(
    given: PunctuationSet, places: tuple[int, ...], points: DataFrame, schema: Schema
) -> tuple[list[Punctuation], list[Punctuation]]:
    """The punctuations to emit if there are too many points: the parts before and behind all, at the last place."""
    from pyspark.sql import functions as F

    i, free, blocked = places[-1], list[Punctuation](), list[Punctuation]()
    domain = schema[i].domain
    column = F.col(quoted(schema[i].name))
    least_and_most = in_utc(points.agg(F.min(column).alias("low"), F.max(column).alias("high")).toArrow())
    ends: list[Any] = [c.to_pylist()[0] for c in least_and_most.columns]
    pairs = [] if None in ends else [domain.normal(end) for end in ends]
    spans = [(domain.cut(pairs[0], after=False), domain.cut(pairs[1], after=True))] if pairs else []
    span = ValueSet.of_intervals(domain, spans, null=domain.nullable)
    for p in given:
        matched, others = values(p.patterns[i], domain), {j: p.patterns[j] for j in p.restricted}
        for found, part in ((free, matched.difference(span)), (blocked, matched.intersection(span))):
            for pattern in patterns(part) if not part.is_empty else ():
                found.append(Punctuation.at(schema, {**others, i: pattern}))
    return free, blocked
