"""session: one tuple for each session of each group, as soon as the session can grow no more.

Meaning:    σ_{A; f}(R) = {(a, s, e, f(S)) | S a session of {| t ∈ R | t.A = a |}}. Two tuples of a group that follow
            each other belong to one session if their moments are at most the gap apart; s is the first moment, and e
            is the gap after the last one. Null is a group. A tuple whose moment is null is in no session.
Example:    Session("ts", 300_000_000, ("sid",), (Aggregate(n, "count(*)"),), name="s")
              over (sid INT, ts TIMESTAMP) gives (sid INT, s.start TIMESTAMP, s.end TIMESTAMP, n BIGINT)
              in   (1, 09:01) (1, 09:04) <*, (,09:09)> | <*, (,09:10)>
              out  <*, *, (,09:09), *>                 | (1, 09:01, 09:09, 2) <*, *, (,09:10), *>
Step:       –
Pass:       {(a, s, e, f(S)) | P covers every possible tuple of a with a moment in [s − gap, e]}: none can join S.
Keep:       the other sessions: their partial aggregates if all aggregates have some, else their tuples.
Propagate:  exactly what that closes: for each run [x, y] of closed moments of groups, the sessions that begin in
            [x + gap, …) and end in (…, y].
Safe when:  the schemes cover every group, or ever longer prefixes of its moments.
Source:     after Tucker et al. 2007, §8.2. Differs: its windows have fixed ends; here the tuples and the gap determine
            where a session ends, and punctuations when it is complete.

Moments are counted in microseconds. The days of a gap are calendar days in Spark's session time zone, as in Spark: 23
to 25 hours long where clocks change, and longer where a zone skipped a date. To decide what is closed before a session,
the operator looks as far back as the longest such gap in that zone, and so closes no session too early.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, ClassVar

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.aggregation import Aggregation
from xmlstream.operators.behaviour import Operator, Terms, among
from xmlstream.operators.closing_conditions import Condition, Grouping, Promises, StateModel
from xmlstream.operators.expressions.aggregates import Aggregate, attributes_of
from xmlstream.operators.expressions.duration import ANYWHERE, DAY, lengthening
from xmlstream.operators.frames.expression import Column, Copy, Equal, Present, all_of, as_columns
from xmlstream.operators.required_punctuations import Held, Row, Way, on
from xmlstream.operators.sort_order import partition
from xmlstream.operators.state.completion import closed_so_far, completed, completion_sets, forget_completed
from xmlstream.operators.state.operator_state import NewPunctuations, OperatorState
from xmlstream.operators.state.slice_tuples import HASHED, Slice, Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.operators.taking_over import TakesOver
from xmlstream.punct_ns.closed_intervals import Run, closed_runs
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import WILDCARD, Constant, Pattern, between, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.recast import placed
from xmlstream.punct_ns.schema import END, START, Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, is_compact, is_covered
from xmlstream.punct_ns.slices import own, quoted
from xmlstream.punct_ns.temporal_type import TimestampType

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine, Frame


@dataclass(frozen=True, slots=True)
class Grown:
    """The condition that each session of the groups of an input by these attributes can grow no more in the end."""

    input: int
    keys: tuple[str, ...]
    moment: str

    def holds(self, promises: Promises) -> bool:
        """Whether a scheme closes groups, or ever longer stretches of their moments."""
        schema, schemes = promises[self.input]
        moment, names = schema.attribute(self.moment), with_moment(self.keys, self.moment)
        return any(
            is_compact(names, scheme, schema)
            and all(
                term.fills(counted=moment.domain.counted) or is_covered(term, moment.domain)
                for term in scheme.terms
                if names != self.keys and term.attribute.lower() == self.moment.lower()
            )
            for scheme in schemes
        )

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        """The grouping by the groups' attributes and the moment."""
        yield Grouping(self.input, with_moment(self.keys, self.moment))


@dataclass(frozen=True, slots=True)
class Session(Operator):
    """The sessions, named `name`, of the groups of the input by `keys`, with their aggregates.

    A session goes on while the next tuple's moment `of` is at most the gap, in microseconds, later. `days` of the gap
    are calendar days, counted in the gap with 24 hours each.
    """

    of: str
    gap: int
    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    name: str = "session_window"
    days: int = 0
    exact_inputs: ClassVar[bool] = False
    takes_over: ClassVar[TakesOver] = TakesOver.ABOVE_SAME_ATTRIBUTES

    @property
    def ends(self) -> tuple[str, str]:
        """The names of a session's start and end."""
        return f"{self.name}{START}", f"{self.name}{END}"

    @property
    def _completed(self) -> tuple[str, ...]:
        """The attributes of the punctuations that complete sessions: the groups', and the moment."""
        return with_moment(self.keys, self.of)

    @property
    def _is_of_one_moment(self) -> bool:
        """Whether the moment is a grouping key: then each group has one moment, and is one session."""
        return len(self._completed) == len(self.keys)

    def schema(self, *inputs: Schema) -> Schema:
        return Schema((*self._groups(inputs[0]), *(a.attribute for a in self.aggregates)))

    def _groups(self, given: Schema) -> Schema:
        of_session = Domain(given.attribute(self.of).domain.type, nullable=False)
        ends = (Attribute(name, of_session) for name in self.ends)
        return Schema((*(given.attribute(key) for key in self.keys), *ends))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes on keys only; prefixes of moments as prefixes of ends, stretches as starts and ends together."""
        names = {key.lower(): key for key in self.keys}
        found: dict[Scheme, None] = {}
        for scheme in inputs[0]:
            moments = (term for term in scheme.terms if term.attribute.lower() == self.of.lower())
            of = None if self._is_of_one_moment else next(moments, None)
            fills = of is not None and of.kind != "tiles" and of.fills(counted=False)
            moved = {self.of.lower(): self.ends[1]} if fills else {}
            if (renamed := scheme.renamed({**names, **moved})) is not None:
                if of is not None and fills and of.kind == "each":
                    renamed = Scheme((*renamed.terms, of.renamed(self.ends[0])))
                found[renamed] = None
        return tuple(found)

    def enabled_by(self, *inputs: Schema) -> Condition:
        return Grown(0, self.keys, self.of)

    def parameters(self, output: Schema) -> str:
        answers = (f"{a.expression} AS `{a.attribute.name}`" for a in self.aggregates)
        keys = f"({', '.join(self.keys)}) " if self.keys else ""
        return f"`{self.of}` within {self.gap / 1_000_000:g} s AS `{self.name}` {keys}{', '.join(answers)}".rstrip()

    def required(self, needed: AbstractSet[str], *inputs: Schema) -> Sequence[AbstractSet[str]]:
        return [among((*self.keys, self.of, *attributes_of(self.pruned(needed).aggregates)), inputs[0])]

    def pruned(self, needed: AbstractSet[str]) -> Session:
        left = tuple(a for a in self.aggregates if a.attribute.name in needed)
        return replace(self, aggregates=left)

    def predicate_terms(self, *inputs: Schema) -> Sequence[Terms]:
        """The keys: a predicate over these selects all sessions of a group, or none."""
        return [{key.lower(): quoted(inputs[0].attribute(key).name) for key in self.keys}]

    def wanted(self, p: Punctuation, held: Held, *inputs: Schema) -> Sequence[Way]:
        """The end of the tuples of these groups, from the gap before the sessions' starts up to their ends."""
        return [self._grown(on((*self.keys, *self.ends), p, self._groups(inputs[0])), inputs[0])]

    def _grown(self, p: Punctuation, given: Schema) -> Way:
        """The way on which the sessions of a punctuation over groups can grow no more."""
        patterns = dict(zip(self.keys, p.patterns, strict=False))
        if self._is_of_one_moment:
            return ((0, Punctuation.of(given, patterns)),)
        moments = given.attribute(self.of).domain
        first, last = (values(pattern, p.schema[len(self.keys)].domain) for pattern in p.patterns[-2:])
        low = min((begin for begin, _ in first.intervals()), default=moments.bottom)
        high = max((end for _, end in last.intervals()), default=moments.top)
        begin = max(low - self._reach(moments), moments.bottom) if low > moments.bottom else low
        if (begin, high) != (moments.bottom, moments.top):
            patterns[self.of] = between(begin, high, moments)
        return ((0, Punctuation.of(given, patterns)),)

    def state_schema(self, *inputs: Schema) -> StateSchema:
        given = inputs[0]
        groups, sets = self._groups(given), completion_sets(given, self._completed)

        def awaits(row: Row, _: Held) -> list[Way]:
            sessions = Punctuation.of(groups, {name: Constant(row[name]) for name in groups.names})
            return [self._grown(sessions, given)]

        what = "open sessions" if self._aggregation.merges is not None else "tuples of open sessions"
        log = LogSchema(
            groups,
            (StateModel(what, 0, self.enabled_by(given)),),
            names=groups.names,
            awaits=awaits,
            combine=self._merged,
            shown=self._aggregation.shown,
            touching=self._touching,
        )
        return StateSchema({"sessions": log}, {**sets, "sent": groups})

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Emits nothing; each new tuple is a session of its own until it is merged with others."""
        new = inputs[0].tuples
        if new is not None:
            given, (start, end) = state.inputs[0], self.ends
            used = {name.lower() for name in (*self.keys, self.of, *attributes_of(self.aggregates))}
            names = [name for name in given.names if name.lower() in used]
            lone = new.frame.where(Present(self.of)).select(
                *names, Column(start, Copy(self.of)), Column(end, later(given.attribute(self.of), self.gap, self.days))
            )
            state.log("sessions").add(new.some(self._aggregation.kept_form(lone)))
        return None

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        newly = completed(inputs[0].punctuations, self._completed, state)
        parts = self._closed(newly, state) if newly else ()
        closed = state.scratch(NewPunctuations).found = state.punctuations("sent").absorb(parts)
        if not closed or (taken := state.log("sessions").take(closed)) is None:
            return None
        exact = self._aggregation.merges is not None
        return Tuples(self._aggregation.answers(taken.frame), taken.at_most, exact=exact)

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        state.log("sessions").settle()
        place = len(self.keys)
        whole = [p for p in closed_so_far(state).set if place not in p.restricted]
        forget_completed(whole, self._completed, state)
        state.punctuations("sent").forget(state.scratch(NewPunctuations).found)

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        closed, groups = state.scratch(NewPunctuations).found, (*self.keys, *self.ends)
        return placed(closed, groups, self.schema(*state.inputs))

    def _merged(self, kept: Frame, ages: Sequence[str] = ()) -> Frame:
        """The rows with touching sessions merged: each row has the first start and the last end of its session."""
        start, end, number = (*map(quoted, self.ends), own("session"))
        by = f"{partition(self.keys)} " if self.keys else ""
        in_order = f"{by}ORDER BY {start}, {end} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        until = kept.with_column(own("until"), f"max({end}) OVER ({in_order} 1 PRECEDING)")
        begins = f"CASE WHEN {start} <= {own('until')} THEN 0 ELSE 1 END"
        numbered = until.with_column(number, f"sum({begins}) OVER ({in_order} CURRENT ROW)")
        whole = f"{by}, {number}" if by else f"PARTITION BY {number}"
        ends = as_columns({self.ends[0]: f"min({start}) OVER ({whole})", self.ends[1]: f"max({end}) OVER ({whole})"})
        merged = numbered.select(*(dict(zip(self.ends, ends, strict=True)).get(name, name) for name in kept.columns))
        combines = self._aggregation.merges is not None or self._aggregation.ignores_duplicates
        return self._aggregation.combined(merged, ages) if combines else merged

    def _touching(self, kept: Frame, new: Frame, at_most: int) -> Frame:
        """The kept sessions that one of the new ones touches; `at_most` is the number of new ones."""
        names = (*self.keys, *self.ends)
        others = new.renamed({own(f"new{i}"): name for i, name in enumerate(names)})
        is_small = at_most <= HASHED
        start, end = map(quoted, self.ends)
        *same, begin, until = (own(f"new{i}") for i in range(len(names)))
        equal = (Equal(name, other, nulls=True) for name, other in zip(self.keys, same, strict=True))
        touches = all_of(*equal, f"{start} <= {until}", f"{begin} <= {end}")
        others = others.distinct() if is_small else others
        return kept.join(others, touches, "left_semi", "right" if is_small else None)

    @property
    def _aggregation(self) -> Aggregation:
        return Aggregation((*self.keys, *self.ends), self.aggregates)

    def _closed(self, new: Sequence[Punctuation], state: OperatorState) -> Iterator[Punctuation]:
        """The punctuations on sessions that new and earlier ones close together, each with the lifespan of its run."""
        known, place = closed_so_far(state), len(self.keys)
        over = self._groups(state.inputs[0])
        if self._is_of_one_moment:
            yield from (Punctuation(over, (*p.patterns, WILDCARD, WILDCARD), p.lifespan) for p in new)
            return
        moments = known.set.schema[place].domain
        reach = self._reach(moments, state.engine if self.days else None)
        lasting = closed_runs(known.lasting, place, [p for p in new if p.lifespan is None])
        yield from (p for run in lasting if (p := self._within(run, over, moments, reach)) is not None)
        for run in closed_runs(known.set, place, new) if known.passes else ():
            if (p := self._within(run, over, moments, reach)) is not None:
                at = {**run.there, place: between(run.low, run.high, moments)}
                yield p.lasting(known.lifespan(Punctuation.at(known.set.schema, at)))

    def _within(self, run: Run, over: Schema, moments: Domain, reach: int) -> Punctuation | None:
        """The punctuation on the sessions that lie in a run together with the gap before them, of length `reach`."""
        ends, place = over[len(over) - 1].domain, len(self.keys)
        patterns: dict[int, Pattern] = dict(run.there)
        if run.low > moments.bottom:
            if run.low + reach >= ends.top:
                return None
            patterns[place] = between(run.low + reach, ends.top, ends)
        if run.high < moments.top:
            patterns[place + 1] = between(ends.bottom, run.high, ends)
        return Punctuation.at(over, patterns)

    def _reach(self, moments: Domain, engine: Engine | None = None) -> int:
        """The longest gap in microseconds: calendar days are longer when clocks are set back.

        No gap is longer, wherever it begins, so tuples before it do not reach the session behind it. Without an engine,
        which knows the time zone, it is that of the zone with the longest days.
        """
        if not self.days or not _is_zoned(moments):
            return self.gap
        return self.gap + (ANYWHERE if engine is None else lengthening(self.days, engine))


def with_moment(keys: tuple[str, ...], moment: str) -> tuple[str, ...]:
    """The keys and the moment, once if it is a key."""
    return keys if moment.lower() in (key.lower() for key in keys) else (*keys, moment)


def later(moment: Attribute, gap: int, days: int = 0) -> str:
    """The moment `gap` microseconds later, as Spark SQL; `days` of the gap, of 24 hours each, are calendar days."""
    if not _is_zoned(moment.domain):
        return f"{quoted(moment.name)} + INTERVAL '{gap // 1_000_000}.{gap % 1_000_000:06d}' SECOND"
    beside = gap - days * DAY
    start = quoted(moment.name)
    if days:
        start = f"{start} + make_interval(0, 0, 0, {days})"
    return f"timestamp_micros(unix_micros({start}) + {beside})" if beside else start


def _is_zoned(moments: Domain) -> bool:
    assert isinstance(moments.sql, TimestampType)
    return moments.sql.zoned
