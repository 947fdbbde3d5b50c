"""Equi-join of two inputs: which tuples have partners, and which can get no more of them.

A tuple's key is its values of the join attributes, and those of its bounds. A tuple waits for partners of its key, with
values of the other side's attributes within its bounds. It is kept with the values of those bounds as further columns,
those that are no attributes of it anyway (`BoundedKey`).

Punctuations of one side describe its join attributes and what the other side's tuples bound of it. They are translated
into the terms of the other side's keys, and so close, purge and release its tuples as those of a plain key do (joinPs
of Tucker et al. 2003, Table 4).

A key is closed, too, once no tuple of it can find a partner any more: null and values within an attribute's domain that
leave no partner, whatever comes, need not be covered. Under `b.t < a.t`, with no `a.t` beyond 9, `<*, (,8]>` of `b`
closes all keys of `a`. Only of computed bounds any value of their type counts as possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.closing_conditions import Condition, Grouping, StateModel
from xmlstream.operators.expressions.bounds import NO_BOUNDS, Bound, Bounds
from xmlstream.operators.expressions.constant_evaluation import evaluated
from xmlstream.operators.expressions.dialect import attributes_in
from xmlstream.operators.frames.expression import Equal, Expression, Present, all_of, sql
from xmlstream.operators.frames.matching import matching, not_matching
from xmlstream.operators.required_punctuations import Held, Row, Want, same
from xmlstream.operators.state.completion import closed_so_far, closed_together, completed, completion_sets
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples, bag_union, theta_join
from xmlstream.operators.state.state_schema import LogSchema
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.punct_ns.closed_intervals import End, Relation, beyond, contained
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.image import Function, preimage
from xmlstream.punct_ns.pattern import NULL, pattern_of, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import own, quoted
from xmlstream.punct_ns.sql_type import INTEGERS
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True)
class BoundedKey:
    """The attributes and bounds that determine which partners a side's tuples wait for.

    Attributes:
        side: The side's number, 0 or 1.
        on: The side's join attributes.
        others: The other side's join attributes, which equal them one by one.
        bounds: Further bounds on the partners that its tuples wait for.
    """

    side: int
    on: tuple[str, ...]
    others: tuple[str, ...]
    bounds: tuple[Bound, ...] = ()

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns that are computed for each tuple and stored with it, with their expressions."""
        computed = dict.fromkeys(bound.value for bound in self.bounds if bound.plain is None)
        return {own(f"bound{number}"): value for number, value in enumerate(computed)}

    @cached_property
    def _places(self) -> list[str]:
        """The column of each bound's value."""
        named = {value: name for name, value in self.columns.items()}
        return [bound.plain or named[bound.value] for bound in self.bounds]

    @cached_property
    def bounded(self) -> tuple[str, ...]:
        """The other side's bounded attributes."""
        return tuple(dict.fromkeys(bound.attribute for bound in self.bounds))

    @property
    def names(self) -> tuple[str, ...]:
        """The other side's attributes that determine partners: its join attributes, and the bounded ones."""
        return (*self.others, *self.bounded)

    @cached_property
    def determined_by(self) -> tuple[str, ...]:
        """The side's own attributes that determine what a tuple waits for: its join attributes, and those in bounds."""
        ends = (bound.plain for bound in self.bounds if bound.plain is not None)
        return tuple(dict.fromkeys((*self.on, *ends)))

    @cached_property
    def beside(self) -> tuple[Attribute, ...]:
        """The extra stored columns that also determine it."""
        types = {name: bound.type for bound, name in zip(self.bounds, self._places, strict=True) if bound.plain is None}
        return tuple(Attribute(name, Domain(type_)) for name, type_ in types.items())

    def awaited(self, row: Row, inputs: Sequence[Schema], held: Held) -> Want:
        """The end of a row's partners: of the other side's tuples with its key, within its bounds."""
        theirs = inputs[1 - self.side]
        within: dict[str, ValueSet] = {}
        for bound, name in zip(self.bounds, self._places, strict=True):
            x = theirs.attribute(bound.attribute)
            if (value := row[name]) is not None and (found := _within(bound, value, x, held)) is not None:
                within[x.name] = found.intersection(within.get(x.name, found))
        equal = same(row, self.on, inputs[self.side], self.others, theirs)
        patterns_ = {theirs.index(name): p for name, found in within.items() if (p := pattern_of(found)) is not None}
        return 1 - self.side, Punctuation(theirs, tuple(patterns_.get(i, p) for i, p in enumerate(equal.patterns)))

    def schema(self, inputs: Sequence[Schema]) -> Schema:
        """The schema of the punctuations that purge a side's tuples: its join attributes, and its bounds' values."""
        mine = inputs[self.side]
        found = {mine.attribute(name).name: mine.attribute(name) for name in self.on}
        for bound, name in zip(self.bounds, self._places, strict=True):
            known = mine.attribute(name) if bound.plain is not None else Attribute(name, Domain(bound.type))
            found.setdefault(known.name, known)
        return Schema(tuple(found.values()))

    def log(self, what: str, inputs: Sequence[Schema]) -> LogSchema:
        """The declaration of a log of this side's tuples that wait for partners."""
        return LogSchema(
            self.schema(inputs),
            (StateModel(what, self.side, self.until()),),
            names=self.determined_by,
            beside=self.beside,
            awaits=lambda row, held: [(self.awaited(row, inputs, held),)],
            shown=(lambda frame: frame.drop(*self.columns)) if self.columns else None,
        )

    def _closed(self, inputs: Sequence[Schema]) -> Schema:
        """The other side's closed attributes: its join attributes under this side's names, and the bounded ones."""
        mine, theirs = inputs[self.side], inputs[1 - self.side]
        return Schema((*map(mine.attribute, self.on), *map(theirs.attribute, self.bounded)))

    def punctuation_sets(self, inputs: Sequence[Schema]) -> dict[str, Schema]:
        """The sets of the other side's punctuations, by name."""
        other = 1 - self.side
        sets = completion_sets(inputs[other], self._closed(inputs), other)
        return {**sets, f"bounded-{other}": self.schema(inputs)} if self.bounds else sets

    def newly_covered(self, punctuations: Sequence[Punctuation], state: OperatorState) -> list[Punctuation]:
        """The punctuations over this side's tuples that the other side's punctuations newly give.

        Also keys that are closed now, by one punctuation or several, and had no partners left before, so that they can
        be forgotten.
        """
        other = 1 - self.side
        new = completed(punctuations, self.names, state, other)
        if not self.bounds or not new:
            return new
        schema, width = self.schema(state.inputs), len(self.on)
        there, ends = {i: i for i in range(width)}, self._ends(state)
        of_ends = partial(contained, places=there, ends=ends, schema=schema)
        vain = self._vain(ends, state)
        found = [_relieved(p, vain) for p in closed_so_far(state, other).following(new, of_ends)]
        newly = state.punctuations(f"bounded-{other}").absorb(found)
        keys = [p for p in new if all(i < width for i in p.restricted)]
        closed = [Punctuation.at(schema, {i: p.patterns[i] for i in p.restricted}, p.lifespan) for p in keys]
        parts = [p for p in new if p.lifespan is None and any(i >= width for i in p.restricted)]
        whole = closed_together(parts, range(width), closed_so_far(state, other).lasting)
        closed += (Punctuation.at(schema, {i: p.patterns[i] for i in p.restricted}) for p in whole)
        return list(dict.fromkeys((*newly, *closed)))

    def covered(self, state: OperatorState) -> list[Punctuation]:
        """All punctuations over this side's tuples, and those on tuples that can have no partner anyway."""
        other = 1 - self.side
        if not self.bounds:
            return list(closed_so_far(state, other).set)
        return [*state.punctuations(f"bounded-{other}").set, *self._never(self._ends(state), state)]

    def _never(self, ends: Mapping[int, Sequence[End]], state: OperatorState) -> list[Punctuation]:
        """The punctuations on tuples that can have no partner, each by one of the ends."""
        schema, known = self.schema(state.inputs), self._closed(state.inputs)
        return [p for at, several in ends.items() for p in beyond(several, schema, known[at].domain)]

    def _vain(self, ends: Mapping[int, Sequence[End]], state: OperatorState) -> dict[int, ValueSet]:
        """The values that leave no partner, null among them, of each attribute that only bounds compare, by its place.

        A computed value is left out: it is also null where it fails.
        """
        schema = self.schema(state.inputs)
        places = {schema.index(bound.plain) for bound in self.bounds if bound.plain is not None}
        found = {i: values(NULL, schema[i].domain) for i in places if i >= len(self.on)}
        compared = {at: [end for end in several if end.f is None] for at, several in ends.items()}
        for p in self._never(compared, state):
            for i in found.keys() & p.restricted:
                found[i] = found[i].union(values(p.patterns[i], schema[i].domain))
        return found

    def _ends(self, state: OperatorState) -> dict[int, list[End]]:
        """The ends of what a tuple waits for, by the place of the bounded attribute among the closed attributes."""
        schema, theirs = self.schema(state.inputs), state.inputs[1 - self.side]
        found: dict[int, list[End]] = {}
        for bound, name in zip(self.bounds, self._places, strict=True):
            place = len(self.on) + self.bounded.index(bound.attribute)
            found.setdefault(place, []).append(end_of(bound, schema.index(name), schema, theirs, state))
        return found

    def with_columns(self, frame: Frame) -> Frame:
        """The tuples, with the values of their bounds."""
        return frame.with_columns(self.columns) if self.columns else frame

    def present(self) -> Expression:
        """Whether a tuple can have partners: no null key or bound, and bounds that leave a value."""
        needed = dict.fromkeys((*self.on, *(name for bound in self.bounds for name in bound.needs)))
        tests: list[Expression] = [Present(name) for name in needed]
        ends = [pair for pair in zip(self.bounds, self._places, strict=True) if pair[0].image is None]
        for low, at in ends:
            for high, beside in ends:
                if low.attribute == high.attribute and not low.upper and high.upper and at != beside:
                    strict = ("=" not in low.relation) + ("=" not in high.relation)
                    last = quoted(beside)
                    if strict == 2 and {low.type, high.type} <= set(INTEGERS):  # no integer lies between neighbours
                        last = f"try_subtract({last}, 1)"
                    tests.append(f"NOT coalesce({quoted(at)} {'>=' if strict else '>'} {last}, false)")
        return all_of(*tests)

    def without_columns(self, tuples: Tuples) -> Tuples:
        """Kept tuples without their extra stored columns."""
        return replace(tuples, frame=tuples.frame.drop(*self.columns)) if self.columns else tuples

    def still_waiting(self, tuples: Tuples, state: OperatorState) -> Tuples:
        """The tuples to which partners may still come, with their extra stored columns."""
        frame = self.with_columns(tuples.frame).where(self.present())
        return tuples.some(not_matching(frame, self.covered(state)))

    def without_partners(self, tuples: Tuples, state: OperatorState) -> Tuples:
        """The tuples to which no partner can come: punctuations cover them, or they can have none."""
        frame = self.with_columns(tuples.frame)
        gone = frame.where(sql("NOT (", self.present(), ")"))
        if closed := self.covered(state):
            gone = gone.union(matching(frame.where(self.present()), closed))
        return tuples.some(gone.drop(*self.columns))

    def until(self) -> Condition:
        """The condition under which each tuple gets no more partners; null keys never have any."""
        other = 1 - self.side
        below = {bound.attribute for bound in self.bounds if not bound.upper}
        bounded = dict.fromkeys(bound.attribute for bound in self.bounds if bound.upper)
        return Grouping(other, self.others, null=False, intervals=tuple((name, name in below) for name in bounded))

    def is_described(self, schemes: Sequence[Scheme]) -> bool:
        """Whether a scheme of the other side closes, for each tuple, all its possible partners.

        It must do so by finitely many punctuations for each tuple.
        """
        names = {name.lower() for name in self.others}
        bounded = {bound.attribute.lower(): bound for bound in self.bounds if bound.upper}

        def serves(term: Term) -> bool:
            name = term.attribute.lower()
            if term.finite or name in names:
                return True
            return name in bounded and bounded[name].is_closed_by(term)

        return any(all(map(serves, scheme.terms)) for scheme in schemes)


def _relieved(p: Punctuation, vain: Mapping[int, ValueSet]) -> Punctuation:
    """The punctuation without the patterns that match all but values in vain."""
    left = {i: p.patterns[i] for i in p.restricted}
    for i, held in vain.items():
        if i in left and held.union(values(left[i], held.domain)).is_all:
            del left[i]
    return Punctuation.at(p.schema, left, p.lifespan)


def end_of(bound: Bound, at: int, schema: Schema, theirs: Schema, state: OperatorState) -> End:
    """A bound as an end of what a tuple waits for; its value is the attribute of `schema` at that place."""
    f: Function | None = None
    if bound.widened and bound.image is not None:
        f = _widening(schema[at].domain)
    elif bound.image is not None and bound.how is not None:
        x = theirs.attribute(bound.attribute)
        how, y = bound.how, schema[at].domain
        f = evaluated(bound.image, x, y, state.engine, local=how.local, clock=how.clock, walls=how.walls)
    return End(at, bound.relation, f, bound.how is not None and bound.how.falling)


def _within(bound: Bound, value: Value, x: Attribute, held: Held) -> ValueSet | None:
    """The values of the other side's attribute within a bound of this value; None if they cannot be computed."""
    domain = x.domain
    if bound.image is None:
        return _beyond(bound.relation, value, domain).intersection(ValueSet.everything(domain))
    assert bound.how is not None
    y = Domain(bound.type)
    f = _widening(y) if bound.widened else held.function(bound.image, x, y, local=bound.how.local)
    return f and preimage(_beyond(bound.relation, value, y), domain, f, falling=bound.how.falling)


def _beyond(relation: Relation, value: Value, domain: Domain) -> ValueSet:
    cut = domain.cut(value, after=relation in ("<=", ">"))
    return ValueSet.of_intervals(domain, [(domain.bottom, cut) if relation in ("<", "<=") else (cut, domain.top)])


def _widening(wider: Domain) -> Function:
    """The function from values of a type to the same values of a wider type."""

    def function(values: Sequence[Value]) -> dict[Value, Value]:
        return {value: wider.normal(value) for value in values}

    return function


@dataclass(frozen=True)
class EquiJoin:
    """The join attributes of a left and a right input, equal pairwise, and a further condition on pairs.

    `bounds` are the bounds that follow from the condition for the tuples of each side.

    Raises:
        QueryError: There are none, or not as many on both sides, or one twice.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    residual: str | None = None
    bounds: Bounds = NO_BOUNDS

    def __post_init__(self) -> None:
        if not self.left or len(self.left) != len(self.right):
            raise QueryError("a join needs as many attributes of one side as of the other, at least one")
        if any(len({name.lower() for name in side}) < len(side) for side in self.on):
            raise QueryError("a join attribute stands twice", hint="put the second equality into a condition beside")

    @cached_property
    def on(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The join attributes of both sides."""
        return self.left, self.right

    @cached_property
    def condition(self) -> Expression:
        """The condition under which two tuples are partners; a null key has no partner."""
        return all_of(*map(Equal, *self.on), *([self.residual] if self.residual else []))

    @cached_property
    def references(self) -> tuple[str, ...]:
        """The attributes of both sides that the condition refers to."""
        bounds = [name for side in self.bounds for bound in side for name in (*bound.needs, bound.attribute)]
        return (*self.left, *self.right, *(attributes_in(self.residual) if self.residual else ()), *bounds)

    @cached_property
    def bounded_keys(self) -> tuple[BoundedKey, BoundedKey]:
        """The bounded keys of both sides, which determine the partners that their tuples wait for."""
        left, right = (BoundedKey(side, self.on[side], self.on[1 - side], self.bounds[side]) for side in range(2))
        return left, right

    def keys(self, side: int, inputs: Sequence[Schema]) -> Schema:
        """The schema of a side's join attributes."""
        return inputs[side].only(self.on[side])

    def places(self, side: int, inputs: Sequence[Schema]) -> list[tuple[int, int]]:
        """The places of the side's join attributes in its schema, each with that of its equal in the other schema."""
        return [
            (inputs[side].index(mine), inputs[1 - side].index(theirs))
            for mine, theirs in zip(self.on[side], self.on[1 - side], strict=True)
        ]

    def equivalents(self, side: int) -> dict[str, tuple[str]]:
        """The other side's equal attribute for each join attribute of a side, by names in lower case."""
        return {mine.lower(): (theirs,) for mine, theirs in zip(self.on[side], self.on[1 - side], strict=True)}

    def punctuation_sets(self, inputs: Sequence[Schema]) -> dict[str, Schema]:
        """The declared sets of each side's punctuations, and of both; those on keys are over the other's attributes."""
        first, second = (key.punctuation_sets(inputs) for key in reversed(self.bounded_keys))
        return {**first, **second, "common": self.keys(0, inputs)}

    def covered_keys(self, inputs: Sequence[Slice], state: OperatorState) -> list[list[Punctuation]]:
        """For each side, the punctuations over its tuples that the other side's punctuations newly give."""
        return [self.bounded_keys[side].newly_covered(inputs[1 - side].punctuations, state) for side in range(2)]

    def pairs(self, new: Sequence[Tuples | None], kept: Sequence[Tuples | None]) -> Tuples | None:
        """The pairs of new tuples with kept ones and with each other, each pair once."""
        pairs = (new[0], bag_union((kept[1], new[1]))), (kept[0], new[1])
        return bag_union(mine and theirs and theta_join(mine, theirs, self.condition) for mine, theirs in pairs)

    def near(self, others: Tuples | None, side: int, log: TupleLog) -> Tuples | None:
        """The kept tuples of a side that may be partners of the other side's tuples; None if there are none."""
        return None if others is None else log.near(others, self.on[side], self.on[1 - side])[1]

    def with_partner(self, tuples: Tuples, others: Sequence[Tuples | None]) -> Tuples | None:
        """The tuples that have a partner among the others; duplicates stay."""
        there = bag_union(others)
        return there and theta_join(tuples, there, self.condition, "left_semi")

    def without_partner(self, tuples: Tuples, others: Sequence[Tuples | None]) -> Tuples:
        """The tuples that have no partner among the others."""
        there = bag_union(others)
        return tuples if there is None else theta_join(tuples, there, self.condition, "left_anti")
