"""Punctuation by a roster: a list names all senders, and a value has passed once each of them has closed it.

Source: Tucker et al. 2003, §6.2 (auxiliary information): with a list of the sensor units, punctuate finds out when all
reports for an hour have arrived, without help from the sensors.

*By punctuations*: what the punctuations of the members close for each of them is closed for all: with `S1` and `S2` on
the roster, `<*, 1>` follows from `<S1, 1>` and `<S2, 1>`. This is the universal projection of
`xmlstream.punct_ns.recast`, over the members as the domain of the sender. What follows in a slice holds from its end.

*By order*: each member sends ascending values, and has closed those below its greatest one. The punctuation is `(,v)`,
v the least of the members' greatest values. Within a slice, u passes at the first position at which every member has
exceeded u. A member's greatest value rises in steps, each from an old value o at a position p; the member exceeds u
with the last of its steps with o ≤ u, if it ever does. For one member both o and p ascend from step to step. So the
position for u is the greatest p of all members' steps with o ≤ u, where each member's last value counts as a step that
is still to come: one window, ordered by value. Where punctuations come, too, a member may close a value by either. With
slack a member has closed the values below its greatest one less the slack: in place of each greatest value stands that.

Members may be added to the roster and taken from it while the query runs: behind the tuples of a slice, and before what
follows from its punctuations. One that is added closes nothing by its past, and nothing that is closed opens again.

The roster may be a column of a static table (`Listed`): a run reads it when it begins, and the state has the members.
If it is the domain of the attribute, tuples of others, and of null, contradict it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.frames.expression import Column
from xmlstream.operators.frames.matching import flagged as matched
from xmlstream.operators.punctuators import distance
from xmlstream.operators.punctuators.distance import Distance
from xmlstream.operators.punctuators.rule import (
    ASIDE,
    CONTRADICTORY,
    UNGRAMMATICAL,
    Facts,
    Rule,
    greatest_of,
    ordered_attribute,
    prefix_of,
    some_closed_more,
    unless_late,
    up_to,
    with_ended,
)
from xmlstream.operators.required_punctuations import Way
from xmlstream.operators.state.operator_state import NewPunctuations, OperatorState
from xmlstream.operators.state.slice_tuples import Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.grammar import written
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import EMPTY, Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import narrowed_pattern, placed, project
from xmlstream.punct_ns.schema import Attribute, Schema, written_name
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import POSITION, arrow_type, in_utc, own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

_BEFORE_STEP, _LAST, _LISTED, _STEP, _CLOSED, _BOUND = map(own, ("before", "last", "listed", "step", "closed", "bound"))
"""For a row's member: its greatest value before the row, and in the slice; whether it is on the roster; its step.
Whether the members' punctuations had closed the row before the slice. And what a member has closed, as text."""

_NEVER = "9223372036854775807"

_MEMBERS, _COMING = "members", "coming"
"""The roster if it is another than the rule's, and the one that counts behind the tuples of this slice: as JSON."""


def _row(value: str, at: str, own_: str, greatest: str) -> str:
    """A row of the window: a value, and the position of the step from it, or of the tuple that has it."""
    return f"named_struct('value', {value}, 'at', {at}, 'own', {own_}, 'greatest', {greatest})"


def members_after(members: Iterable[Value], joined: Iterable[Value], removed: Collection[Value]) -> list[Value]:
    """The members of a roster, in order, once some have joined and others have been removed."""
    return [member for member in dict.fromkeys((*members, *joined)) if member not in removed]


@dataclass(frozen=True, slots=True)
class Listed:
    """The column of a static table that lists the members of a roster.

    Attributes:
        name: The name of the table.
        column: The name of its column.
        table: The leaf that reads it, which is not compared: the list is what it says. None until it is found.
    """

    name: str
    column: str
    table: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ByRoster(Rule):
    """What each member of the roster, a value of the attribute `member`, has closed is closed for all senders.

    A member closes values by punctuations and, unless `attribute` is None, by sending ascending values of it, no tuple
    more than `slack` behind its greatest one. Other senders delay no punctuation, but their tuples may be late like any
    other. Null and NaN close nothing. With `listed` a table has the members; `roster` are those that it was seen to
    have. With `is_domain` tuples of other senders contradict it.
    """

    attribute: str | None
    member: str
    roster: tuple[Value, ...]
    slack: Distance | None = None
    listed: Listed | None = None
    is_domain: bool = False
    sparse: ClassVar[Sequence[str]] = ("slack", "listed", "is_domain")

    @property
    def name(self) -> str:
        return f"roster of {self.member}{self._source()}"

    def _source(self) -> str:
        """The table with the members, as it is written, and how many they are, if that is known."""
        if self.listed is None:
            return ""
        column = "" if self._is_member(self.listed.column) else f".{written_name(self.listed.column)}"
        count = f" ({len(self.roster)} listed)" if self.roster else ""
        return f" from {written_name(self.listed.name)}{column}{count}"

    def __str__(self) -> str:
        texts = (value.isoformat() if isinstance(value, date) else str(value) for value in self.roster)
        members = ", ".join(format_pattern(Constant(text), Domain("STRING")) for text in texts)
        members = self._source() or f" ({members})"
        order = "" if self.attribute is None else f", order of {written_name(self.attribute)}"
        slack = "" if self.slack is None else f", slack {distance.written(self.slack)}"
        if self.is_domain:
            return f"{written_name(self.member)}{members} and no others"
        return f"roster of {written_name(self.member)}{members}{order}{slack}"

    def require(self, schema: Schema) -> None:
        """The roster is not empty, and its members are values of the attribute."""
        member = ordered_attribute(schema, self.member)
        if self.attribute is not None:
            ordered_attribute(schema, self.attribute)
            if schema.index(self.attribute) == schema.index(self.member):
                raise QueryError(f"{self.attribute} cannot be both the sender and the value that ascends")
            distance.require_distance(self.slack, schema.attribute(self.attribute))
        if not self.roster and self.listed is None:
            raise UsageError("the roster is empty", hint=f"list values of {self.member}")
        for value in self.roster:
            if not member.domain.contains(value):
                raise UsageError(f"{value!r} on the roster is not a valid value of {self.member} {member.domain.type}")

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """Prefixes of the attribute; and the schemes of the input that name the member, without it."""
        found = [] if self.attribute is None else [*prefix_of(self.attribute)]
        for scheme in schemes:
            others = tuple(term for term in scheme.terms if not self._is_member(term.attribute))
            named = [term for term in scheme.terms if term not in others]
            if others and named and all(term.kind == "each" for term in named):
                found.append(Scheme(others))
        return tuple(found)

    def wanted(self, p: Punctuation) -> Sequence[Way]:
        """The same punctuation of each member."""
        at = p.schema.index(self.member)
        if at in p.restricted or self.attribute is not None or not self.roster:
            return ()
        domain = p.schema[at].domain
        members = dict.fromkeys(map(domain.normal, self.roster))
        patterns = {i: p.patterns[i] for i in p.restricted}
        return [tuple((0, Punctuation.at(p.schema, {**patterns, at: Constant(member)})) for member in members)]

    def state_schema(self, schema: Schema) -> StateSchema:
        """The roster if it was changed, and the greatest value of each member."""
        notes = StateSchema(notes=[_MEMBERS, _COMING])
        if self.attribute is None:
            return notes
        member, value = (schema.attribute(name) for name in (self.member, self.attribute))
        combine = greatest_of([member.name], value.name)
        return notes | StateSchema({"latest": LogSchema(Schema((member,)), combine=combine)})

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is a tuple that members closed before the slice, or behind the position at which its value passed."""
        schema = state.inputs[0]
        tuples = with_ended(tuples, state, _CLOSED)
        if self.is_domain:
            member = schema.index(self.member)
            senders = dict.fromkeys((*self._members(state), *self._members(state, _COMING)))
            listed = matched(tuples, [Punctuation.at(schema, {member: Constant(one)}) for one in senders], _LISTED)
            aside = f"CASE WHEN {_CLOSED} THEN '{UNGRAMMATICAL}' WHEN NOT {_LISTED} THEN '{CONTRADICTORY}' END"
            return listed.with_column(ASIDE, aside).drop(_CLOSED, _LISTED)
        if self.attribute is None:
            return unless_late(tuples, _CLOSED).drop(_CLOSED)
        domain = schema.attribute(self.attribute).domain
        place = distance.comparable(quoted(self.attribute), domain)
        rows = tuples.union_by_name(self._start(state))
        mine = f"OVER (PARTITION BY {quoted(self.member)}"
        earlier = f"{mine} ORDER BY {POSITION} NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        known = rows.with_columns(
            {
                _BEFORE_STEP: f"max({place}) {earlier}",
                # Only a member has a row without a position, which sorts before all others.
                _LISTED: f"IF({place} IS NULL, NULL, bool_or({POSITION} IS NULL) {earlier})",
                _LAST: f"max({place}) {mine})",
            }
        )
        slack, no_row, nothing = self.slack, "CAST(NULL AS BIGINT)", f"CAST(NULL AS {domain.type})"
        own_value = distance.before(place, None if slack is None else 0 * slack, domain)  # in the type of the others
        tuple_ = _row(own_value, no_row, POSITION, nothing)
        step = _row(distance.before(_BEFORE_STEP, slack, domain), POSITION, no_row, nothing)
        ahead = _row(distance.before(_LAST, slack, domain), _NEVER, no_row, _LAST)
        parts = (
            f"CASE WHEN {POSITION} IS NULL THEN array({ahead})"
            f" WHEN {_LISTED} AND ({_BEFORE_STEP} IS NULL OR {place} > {_BEFORE_STEP}) THEN array({tuple_}, {step})"
            f" ELSE array({tuple_}) END"
        )
        each = known.with_column(_STEP, f"explode({parts})").drop(POSITION, _BEFORE_STEP, _LAST, _LISTED)
        each = each.with_column(POSITION, f"{_STEP}.own")
        passed = f"coalesce(max({_STEP}.at) OVER (ORDER BY {_STEP}.value NULLS FIRST), -1)"
        is_late = f"{_STEP}.value IS NOT NULL AND {_STEP}.own > {passed}"
        return unless_late(each, f"{_CLOSED} OR {is_late}").drop(_CLOSED)

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """The least of the members' greatest values; null while a member has sent none."""
        if self.attribute is None:
            return {}
        domain = schema.attribute(self.attribute).domain
        last = f"{_STEP}.at = {_NEVER}"
        least = distance.as_text(f"min(IF({last}, {_STEP}.value, NULL))", domain)
        silent, value = f"count_if({last} AND {_STEP}.value IS NULL)", f"IF({last}, {_STEP}.value, NULL)"
        passed = f"coalesce(max({value}) > min({value}) OR {silent} > 0 AND max({value}) IS NOT NULL, false)"
        return {"bound": f"IF({silent} = 0, {least}, NULL)", "passed": passed}

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The values below the least of the members' greatest values have passed."""
        if flagged is None or self.attribute is None:
            return []
        schema = state.inputs[0]
        member, value = (schema.attribute(name).name for name in (self.member, self.attribute))
        last = flagged.where(f"{_STEP}.at = {_NEVER}").select(member, Column(value, f"{_STEP}.greatest"))
        latest = state.log("latest")
        latest.add(Tuples(last, len(self._members(state))))
        latest.settle()
        state.scratch(NewPunctuations).passed = facts["passed"]
        if facts["bound"] is None:
            return []
        bound = distance.values_below(facts["bound"], schema.attribute(self.attribute).domain)
        return [Punctuation.of(schema, {self.attribute: bound})]

    def is_passed(self, state: OperatorState) -> bool | None:
        """Whether some members have closed more than others: by order as the tuples of the slice tell."""
        if self.attribute is not None:
            return state.scratch(NewPunctuations).passed
        return some_closed_more(state.punctuations("sent").set, state.inputs[0].index(self.member))

    def following(self, new: Sequence[Punctuation], state: OperatorState) -> list[Punctuation]:
        """What all members have closed, each by punctuations or by order, because of new punctuations or tuples."""
        sent, at = state.punctuations("sent"), state.inputs[0].index(self.member)
        is_changed = self._change(state)
        each = [p for p in new if at in p.restricted]
        known = sent.set
        is_by_punctuations = each or at in known.singles or any(at in entry.restricted for entry in known.several())
        if not (is_changed or is_by_punctuations):
            return []
        by_order = self._by_order(state)
        if not (is_changed or each or by_order):
            return []

        def of_all(closed: PunctuationSet, *, new: Sequence[Punctuation]) -> list[Punctuation]:
            return self._of_all(closed, [*new, *by_order], state, whole=is_changed)

        return sent.following(each, of_all)

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        """The punctuation that closed the value of the late tuple."""
        return Punctuation.all(schema) if self.attribute is None else up_to(self.attribute, values, schema), ""

    def begin(self, members: Iterable[Value], state: OperatorState) -> None:
        """Has these be the members from the beginning on, of a roster that a table lists."""
        domain = state.inputs[0].attribute(self.member).domain
        state.notes[_MEMBERS] = json.dumps([domain.write(member) for member in members])

    def has_begun(self, notes: Facts) -> bool:
        """Whether the members are known by the recorded notes."""
        return _MEMBERS in notes

    def contradiction(self, values: Facts, schema: Schema) -> str:
        """Who is no sender."""
        listed = "the roster" if self.listed is None else self.listed.name
        return f"the tuple {written(values, schema)} is of a {self.member} that {listed} does not list"

    @property
    def cure(self) -> str:
        """What helps against late tuples, or against those of others."""
        if self.is_domain and self.listed is not None:
            return f"if it is a sender, add it to {self.listed.name}: each run reads that as it begins"
        return "with more slack, or other properties, the query goes on by --change"

    def change(self, joined: Iterable[Value], removed: Collection[Value], state: OperatorState) -> bool:
        """Adds members to the roster, and takes others from it, behind the tuples of the slice that begins.

        Returns whether it did: a change that leaves no member changes nothing.
        """
        domain = state.inputs[0].attribute(self.member).domain
        if left := members_after(self._members(state, _COMING), joined, removed):
            state.notes[_COMING] = json.dumps([domain.write(member) for member in left])
        return bool(left)

    def members(self, notes: Facts, domain: Domain) -> list[Value]:
        """The members by the recorded notes, whose attribute has this domain."""
        text = notes.get(_COMING) or notes.get(_MEMBERS)
        return [*dict.fromkeys(map(domain.normal, self.roster) if text is None else map(domain.read, json.loads(text)))]

    def _members(self, state: OperatorState, *later: str) -> list[Value]:
        known = {name: text for name, text in state.notes.items() if name in (_MEMBERS, *later)}
        return self.members(known, state.inputs[0].attribute(self.member).domain)

    def _change(self, state: OperatorState) -> bool:
        """Has the roster that was to come count from now on; whether there is one."""
        if (coming := state.notes.pop(_COMING, None)) is None:
            return False
        before = self._members(state)
        state.notes[_MEMBERS] = coming
        after, latest = self._members(state), state.log("latest") if self.attribute is not None else None
        if latest is not None and latest.whole() is not None:
            if joined := [member for member in after if member not in before]:
                latest.add(Tuples(state.engine.rows(*self._nothing_of(joined, state)), len(joined)))
                latest.settle()
            key = Schema((state.inputs[0].attribute(self.member),))
            latest.purge([Punctuation.at(key, {0: Constant(member)}) for member in before if member not in after])
        return True

    def _by_order(self, state: OperatorState) -> list[Punctuation]:
        """What each member has closed by its greatest value, less the slack."""
        if self.attribute is None or (latest := state.log("latest").whole()) is None:
            return []
        schema = state.inputs[0]
        (who, member), (name, domain) = (
            (each.name, each.domain) for each in (schema.attribute(self.member), schema.attribute(self.attribute))
        )
        bound = Column(_BOUND, distance.as_text(distance.before(quoted(name), self.slack, domain), domain))
        rows = in_utc(latest.frame.select(who, bound).to_arrow())
        pairs = zip(*(rows.column(i).to_pylist() for i in range(2)), strict=True)
        below = ((one, distance.values_below(text, domain)) for one, text in pairs if text is not None)
        passed = [(one, pattern) for one, pattern in below if pattern != EMPTY]
        return [
            Punctuation.of(schema, {self.member: Constant(member.normal(one)), self.attribute: pattern})
            for one, pattern in passed
        ]

    def _of_all(
        self, held: PunctuationSet, new: Sequence[Punctuation], state: OperatorState, *, whole: bool
    ) -> list[Punctuation]:
        """The punctuations that hold for all members: those that new ones bring about, or with `whole` all."""
        schema = held.schema
        at, names = schema.index(self.member), [a.name for a in schema if not self._is_member(a.name)]
        domain = Domain(schema[at].domain.type, nullable=False, listed=tuple(self._members(state)))
        narrow = Schema(tuple(Attribute(a.name, domain) if i == at else a for i, a in enumerate(schema)))
        near = [{i: p.patterns[i] for i in p.restricted if i != at} for p in new]
        entries = held.several() if whole else [entry for given in near for entry in held.several(given)]
        alone = held.singles[at].patterns() if at in held.singles else ()
        known = [entry.punctuation for entry in entries] + [Punctuation.at(schema, {at: each}) for each in alone]

        def of_members(some: Iterable[Punctuation]) -> list[Punctuation]:
            found = []
            for p in dict.fromkeys(some):
                pattern = narrowed_pattern(p.patterns[at], schema[at].domain, domain)
                if pattern != EMPTY:
                    found.append(Punctuation(narrow, (*p.patterns[:at], pattern, *p.patterns[at + 1 :])))
            return found

        closed = PunctuationSet(narrow, of_members([*known, *new]))
        found = project(closed, names, schema.only(names), None if whole else of_members(new))
        return placed(found, names, schema)

    def _is_member(self, name: str) -> bool:
        return name.lower() == self.member.lower()

    def _start(self, state: OperatorState) -> Frame:
        """Each member's greatest value before the slice; null if it has none."""
        if (whole := state.log("latest").whole()) is not None:
            return whole.frame
        return state.engine.rows(*self._nothing_of(self._members(state), state))

    def _nothing_of(self, members: Sequence[Value], state: OperatorState) -> tuple[pa.Table, str]:
        """A row for each of these members, with null as its greatest value, and the columns as DDL."""
        assert self.attribute is not None
        member, attribute = (state.inputs[0].attribute(name) for name in (self.member, self.attribute))
        listed = pa.array(members, arrow_type(member.domain))
        nothing = pa.array([None] * len(members), arrow_type(attribute.domain))
        ddl = f"{quoted(member.name)} {member.domain.type}, {quoted(attribute.name)} {attribute.domain.type}"
        return pa.table([listed, nothing], [member.name, attribute.name]), ddl
