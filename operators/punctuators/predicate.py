"""Punctuation by a condition on tuples: limits of a domain that always hold, or the end of a group.

*By domain*: no value lies outside the limits; punctuations close the values outside, once, at the beginning. Source:
Tucker et al. 2003, §6.2 (stream semantics): for sensors that measure from 20F to 95F punctuate closes the values above
95F and below 20F. The limits leave null open; NaN is above them.

*By predicate*: a tuple shows that its group has ended, for example an auction's by `status = 'closed'`. After such a
tuple, one punctuation restricts all named attributes to its values, by constants, null among them. The tuple itself is
still emitted; a later one with the same values is late.

*By time*: a group has also ended once no tuple of it has come for long enough, as when a logout is never sent. The time
is an attribute of the stream's own tuples, so that a stream has the same answers whenever it is read: a group ends with
the first tuple, of any group, whose time is more than `idle` after the greatest time of the group. Null and NaN are no
time: they end nothing, and a group without another time ends by its predicate alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.expressions.duration import with_iso_durations
from xmlstream.operators.frames.expression import Column, Copy
from xmlstream.operators.frames.matching import condition
from xmlstream.operators.punctuators import distance
from xmlstream.operators.punctuators.distance import Distance
from xmlstream.operators.punctuators.rule import (
    ASIDE,
    Facts,
    Rule,
    constants,
    greatest_of,
    in_each,
    one_row,
    ordered_attribute,
    unless_late,
    with_ended,
)
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.pattern import patterns
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema, written_name
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import POSITION, STREAM, in_utc, own, quoted
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class ByDomain(Rule):
    """No value lies outside the `limits`, which are written like domains: `min 0..59, currtmp 20..95`."""

    limits: str

    @property
    def name(self) -> str:
        return f"domain {self.limits}"

    def __str__(self) -> str:
        return self.name

    def require(self, schema: Schema) -> None:
        """At least one value lies outside the limits; else QueryError."""
        if not self._outside(schema):
            raise QueryError(f"the limits '{self.limits}' exclude no value that the schema allows")

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """None: no further punctuation will come."""
        return ()

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is every tuple with a value outside the limits, from the first tuple on."""
        return unless_late(tuples, condition(self._outside(state.inputs[0])))

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The values outside the limits: the same in each slice, so they go out once."""
        return self._outside(state.inputs[0])

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        normal = [None if values.get(a.name) is None else a.domain.normal(values[a.name]) for a in schema]
        return next(p for p in self._outside(schema) if p.matches(normal)), ""

    def _outside(self, schema: Schema) -> list[Punctuation]:
        found = []
        for wide, narrow in zip(schema, schema.bounded(self.limits), strict=True):
            inside = ValueSet.of_intervals(wide.domain, [(narrow.domain.bottom, narrow.domain.top)])
            if narrow.domain.listed is not None:
                inside = ValueSet.of(wide.domain, narrow.domain.listed)
            outside = ValueSet(wide.domain, inside.complement().cuts)
            found += [Punctuation.of(schema, {wide.name: pattern}) for pattern in patterns(outside)]
        return found


_ENDED, _ENDS, _IDLE, _CAME = map(own, ("ended", "ends", "idle", "came"))
"""BOOLEAN: whether an earlier slice ended the tuple's group; whether the tuple ends it; whether the group was idle for
too long before it; for a group, whether a tuple of it came."""

_IS_TIME, _NOW, _LAST, _GREATEST = map(own, ("is_time", "now", "last", "greatest"))
"""True for the row that is not a tuple, but the greatest time before the slice, else null; the greatest time before the
row, of all rows and of its group; the greatest time of all rows."""

_BEFORE = f"ORDER BY {POSITION} NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"


@dataclass(frozen=True, slots=True)
class ByPredicate(Rule):
    """The end of the group of a tuple, by the values of its `attributes`.

    A tuple for which `when`, Spark SQL over the input's attributes, is true is the last one of its group. With `idle`,
    a group also ends once the attribute `time` of any tuple is more than that after the greatest one of the group; then
    `when` may be None, and one time is kept for each group that has not ended.
    """

    when: str | None
    attributes: tuple[str, ...]
    idle: Distance | None = None
    time: str | None = None

    @property
    def name(self) -> str:
        when = [f"predicate {self.when}"] if self.when else []
        return " or ".join([*when, *([f"{self.idle} of {self.time} without a tuple"] if self.time else [])])

    def __str__(self) -> str:
        when = [f"when {self.when}"] if self.when else []
        after = []
        if self.idle is not None and self.time is not None:
            after = [f"or after {distance.written(self.idle)} of {written_name(self.time)}"]
        return ", ".join(
            [
                *(f"end of {written_name(name)}" for name in self.attributes if name != STREAM),
                *when,
                *after,
                *in_each(self.attributes),
            ]
        )

    @property
    def condition(self) -> str | None:
        return self.when

    def of_each(self, key: str) -> ByPredicate:
        """The end of each one's group."""
        if self.time is not None:
            raise UsageError(
                f"'{self}' compares the times of all document streams, and there is no order among them",
                hint="leave out its 'or after': the order of a time closes what is older in each stream",
            )
        return replace(self, attributes=(*self.attributes, key))

    def require(self, schema: Schema) -> None:
        """The input has the attributes, and their types have constants; else QueryError or UsageError."""
        if not self.attributes:
            raise UsageError("a predicate that ends nothing", hint="name the attributes whose values have passed")
        for name in self.attributes:
            ordered_attribute(schema, name)
        if self.when is None and self.idle is None:
            raise UsageError("nothing ends a group", hint="give a condition for its last tuple, or an idle time")
        if (self.idle is None) != (self.time is None):
            raise UsageError("an idle time needs both its length and the attribute with the time")
        if self.time is not None:
            time = ordered_attribute(schema, self.time)
            distance.require_distance(self.idle, time)
            if time in map(schema.attribute, self.attributes):
                raise QueryError(f"{time.name} cannot be both the time and an attribute of the group that ends")

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """Constants for all of the attributes together."""
        return (Scheme(tuple(Term(name) for name in self.attributes)),)

    def state_schema(self, schema: Schema) -> StateSchema:
        """With `idle`, the greatest time, and that of each group that has not ended."""
        if self.time is None:
            return StateSchema()
        group = self._group(schema)
        combine = greatest_of(group.names, schema.attribute(self.time).name)
        return StateSchema({"open": LogSchema(group, combine=combine)}, notes=["greatest"])

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is a tuple whose group an earlier tuple ended, in this slice or before."""
        known = with_ended(tuples, state, _ENDED)
        ends = f"coalesce(({with_iso_durations(self.when)}\n), false)" if self.when else "false"
        if self.time is None:
            known = known.with_column(_ENDS, ends)
            return unless_late(known, f"{_ENDED} OR coalesce({self._before_it(_ENDS)}, false)").drop(_ENDED)
        time = state.inputs[0].attribute(self.time)
        place = distance.comparable(quoted(time.name), time.domain)
        rows = self._with_times(known, time, state).with_columns(
            {
                _ENDS: f"{POSITION} IS NOT NULL AND {ends}",
                _NOW: f"max({place}) OVER ({_BEFORE})",
                _LAST: self._before_it(f"IF({_IS_TIME}, NULL, {place})"),
                _GREATEST: f"max({place}) OVER ()",
            }
        )
        too_long = f"{_NOW} > {distance.after(_LAST, self.idle, time.domain)}"
        rows = rows.with_column(_IDLE, f"{POSITION} IS NOT NULL AND coalesce({too_long}, false)")
        ended_before_it = f"coalesce({self._before_it(f'{_ENDS} OR {_IDLE}')}, false)"
        return unless_late(rows, f"{_ENDED} OR {_IDLE} OR {ended_before_it}").drop(_ENDED, _NOW, _LAST)

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """The number of tuples that end a group; with `idle`, the greatest time."""
        found = {"ending": f"count_if({_ENDS} AND {ASIDE} IS NULL)"}
        if self.time is not None:
            found["greatest"] = distance.as_text(f"max({_GREATEST})", schema.attribute(self.time).domain)
        return found

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """One punctuation for each group that a tuple of the slice ended."""
        if flagged is None:
            return []
        schema = state.inputs[0]
        if self.time is not None:
            state.notes["greatest"] = facts["greatest"]
            groups, order = self._groups(flagged, schema).where(_ENDED), self._group(schema).names
        elif facts["ending"]:
            groups, order = flagged.where(f"{_ENDS} AND {ASIDE} IS NULL"), (POSITION,)
        else:
            return []
        columns = dict.fromkeys([*order, *self._group(schema).names])  # ordered, as each run must write the same
        table = groups.select(*columns).to_arrow().sort_by([(name, "ascending") for name in order])
        found = in_utc(table.select(list(self._group(schema).names))).columns
        ended = list(zip(*(c.to_pylist() for c in found), strict=True))
        if self.time is not None:
            self._keep(flagged, facts["on"], ended, state)
        return [constants(schema, self.attributes, values) for values in ended]

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        words = f"a tuple came before it whose {self.time} is more than {self.idle} after the last one of its group"
        broken = constants(schema, self.attributes, [values[name] for name in self._group(schema).names])
        return broken, words if values.get(_IDLE) else ""

    def _before_it(self, expression: str) -> str:
        """The greatest value of the rows before a tuple that are of its group."""
        return f"max({expression}) OVER (PARTITION BY {', '.join(map(quoted, self.attributes))} {_BEFORE})"

    def _with_times(self, known: Frame, time: Attribute, state: OperatorState) -> Frame:
        """The tuples, the times of the groups that have not ended, and the greatest time, as rows in one task."""
        value = None if (text := state.notes.get("greatest")) is None else distance.text_value(text, time.domain)
        rows = known.union_by_name(one_row(known.engine, time, value).with_column(_IS_TIME, "true"))
        kept = state.log("open").whole()
        return (rows if kept is None else rows.union_by_name(kept.frame)).in_one_task()

    def _groups(self, flagged: Frame, schema: Schema) -> Frame:
        """The groups that had not ended before the slice: the greatest time, whether a tuple came, and `_ENDED`."""
        assert self.time is not None
        time = schema.attribute(self.time)
        place = distance.comparable(quoted(time.name), time.domain)
        idle = f"max({_GREATEST}) > {distance.after(f'max({place})', self.idle, time.domain)}"
        aggregates = {
            _LAST: f"max({place})",
            _CAME: f"max({POSITION}) IS NOT NULL",
            _ENDED: f"coalesce(max({_ENDS}), false) OR coalesce({idle}, false)",
        }
        return flagged.where(f"{ASIDE} IS NULL AND {_IS_TIME} IS NULL").group_by(self._group(schema).names, aggregates)

    def _keep(self, flagged: Frame, at_most: int, ended: Sequence[Sequence[object]], state: OperatorState) -> None:
        """Keeps the times of groups that have tuples and have not ended, and forgets those of the others."""
        assert self.time is not None
        schema, kept = state.inputs[0], state.log("open")
        time, group = schema.attribute(self.time).name, self._group(schema)
        alive = self._groups(flagged, schema).where(f"{_CAME} AND NOT {_ENDED} AND {_LAST} IS NOT NULL")
        alive = alive.select(*group.names, Column(time, Copy(_LAST)))
        kept.add(Tuples(alive, at_most, exact=False))
        kept.settle()
        kept.purge([constants(group, self.attributes, values) for values in ended])

    def _group(self, schema: Schema) -> Schema:
        return Schema(tuple(map(schema.attribute, self.attributes)))
