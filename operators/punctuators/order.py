"""Punctuation by order: an attribute ascends, by its values so far or by the clock.

*By order*: the attribute ascends, with some slack; the values below the greatest one have passed. The punctuation is
`(,v)`, v the greatest value so far, less the slack; it leaves v open, since more tuples may have v. Where each key has
its own time, like sensors with their own clocks, the order holds among the tuples of one key, and the punctuation names
the key: `<S01, (,v)>`. A slow key then closes its own past late, and no other key's. A stream that sort has put in
ascending order is punctuated by order without slack (Tucker et al. 2003, §6.2). Differs: Tucker et al. 2007, §8.1, has
`[⊥,v]` after each tuple, which is unsound if two tuples have the same value.

*By clock*: time passes even while the source is silent, and closes the moments whose tuples would come too late.
Source: Tucker et al. 2007, §8.3 (heartbeats). A slice that has read everything that had arrived at a moment closes up
to that moment, less the delay. The moment is recorded with the slice, so that no clock is read twice. While more has
arrived than one slice reads, the clock closes nothing: it must not overtake a source with a backlog. Differs: that
section states that no tuple *greater* than the heartbeat will follow; *not greater* is meant. Here the heartbeat itself
stays open, as v does in every `(,v)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.frames.expression import Column, Equal
from xmlstream.operators.frames.matching import condition
from xmlstream.operators.punctuators import distance
from xmlstream.operators.punctuators.distance import Distance
from xmlstream.operators.punctuators.rule import (
    AHEAD,
    ASIDE,
    UNGRAMMATICAL,
    Facts,
    Rule,
    added,
    constants,
    greatest_of,
    in_each,
    one_row,
    ordered_attribute,
    prefix_of,
    unless_late,
    up_to,
)
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Constant, Pattern, Range, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema, written_name
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import POSITION, STREAM, in_utc, own, quoted
from xmlstream.punct_ns.temporal_type import TimestampType

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


_FAR = own("far")
"""BIGINT: the position of a tuple that is too far ahead; else null."""

_GREATEST, _BEFORE, _BOUND = map(own, ("greatest", "before", "bound"))
"""For a key: its greatest value, that before the slice, and the end of the passed values, as text."""


@dataclass(frozen=True, slots=True)
class ByOrder(Rule):
    """The attribute ascends; a tuple may be up to `slack` behind the greatest value so far.

    A tuple more than `max_ahead` ahead of that value, for example from a wrong clock, is set aside and closes nothing.
    Null and NaN close nothing either, and are never late.

    `per` names one or more attributes, the key: `ByOrder("ts", per="sid")`. The order then holds among the tuples of
    each key, null included, and one value is kept for each key that has come.
    """

    attribute: str
    slack: Distance | None = None
    max_ahead: Distance | None = None
    per: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "per", (self.per,) if isinstance(self.per, str) else tuple(self.per))

    @property
    def name(self) -> str:
        keys = ", ".join("stream" if name == STREAM else name for name in self.per)
        return " per ".join([f"order of {self.attribute}", *([keys] if keys else [])])

    def __str__(self) -> str:
        distances = {"slack": self.slack, "max_ahead": self.max_ahead}
        shown = (f"{word} {distance.written(length)}" for word, length in distances.items() if length is not None)
        keys = (f"per {written_name(name)}" for name in self.per if name != STREAM)
        return ", ".join([f"order of {written_name(self.attribute)}", *keys, *shown, *in_each(self.per)])

    def require(self, schema: Schema) -> None:
        """The attribute's type has an order, both distances are in its units, and the key is other attributes."""
        attribute = ordered_attribute(schema, self.attribute)
        distance.require_distance(self.slack, attribute)
        distance.require_distance(self.max_ahead, attribute)
        keys = self._keys(schema)
        for key in keys:
            if key.domain.opaque:
                raise QueryError(f"no order holds per {key.name}: {key.domain.type} has no constants")
        if attribute in keys or len(set(keys)) < len(keys):
            raise QueryError(
                f"an order of {attribute.name} per {', '.join(k.name for k in keys)} names an attribute twice",
                hint="the order holds for each value of the key: the key must be another attribute",
            )

    def of_each(self, key: str) -> ByOrder:
        """The order among the tuples of each."""
        return replace(self, per=(*self.per, key))

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """Prefixes of the attribute, for each key."""
        if not self.per:
            return prefix_of(self.attribute)
        return (Scheme((*map(Term, self.per), Term(self.attribute, "prefix"))),)

    def awaited(self, p: Punctuation) -> tuple[str, Value] | None:
        """The first value above those that `p` closes, and the slack after it.

        >>> ByOrder("hour", slack=2).awaited(Punctuation.parse("<[5,7], *>", Schema.parse("hour INT, v INT")))
        ('hour', 10)
        """
        return _above(self.attribute, p, self.slack)

    def state_schema(self, schema: Schema) -> StateSchema:
        """The greatest value; with `per`, that of each key."""
        if not self.per:
            return StateSchema(notes=["greatest"])
        keys = Schema(self._keys(schema))
        return StateSchema({"greatest": LogSchema(keys, combine=greatest_of(self._key_names(schema), self.attribute))})

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is a tuple that is behind the greatest value before it by more than the slack."""
        schema = state.inputs[0]
        domain = schema.attribute(self.attribute).domain
        start = self._start(tuples, state)
        rows = tuples if start is None else tuples.union_by_name(start)
        far = "false"
        if self.max_ahead is not None:
            rows, far = self._far(rows, schema), f"{_FAR} IS NOT NULL"
        greatest_before = f"max(IF({far}, NULL, {self._place(domain)})) {self._before_it(schema)}"
        late = f"{quoted(self.attribute)} < {distance.before(greatest_before, self.slack, domain)}"
        aside = f"CASE WHEN {far} THEN '{AHEAD}' WHEN {late} THEN '{UNGRAMMATICAL}' END"
        return (rows if self.per else rows.in_one_task()).with_column(ASIDE, aside).drop(_FAR)

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """The greatest value, and the value at the slack before it."""
        if self.per:
            return {}
        domain = schema.attribute(self.attribute).domain
        greatest = f"max({self._unless_ahead(domain)})"
        bound = distance.before(greatest, self.slack, domain)
        return {"greatest": distance.as_text(greatest, domain), "bound": distance.as_text(bound, domain)}

    def facts_of(self, rows: pa.Table, state: OperatorState) -> Facts | None:
        """The same as `aggregates`, of whole numbers and of moments with a slack of less than a day of a calendar."""
        domain = state.inputs[0].attribute(self.attribute).domain
        slack = distance.number_of_units(self.slack, domain)
        if slack is None or self.per or self.max_ahead is not None:
            return None
        greatest = None if (known := state.notes.get("greatest")) is None else int(known)
        (name,) = (name for name in rows.column_names if name.lower() == self.attribute.lower())
        column = rows.sort_by(POSITION)[name].drop_null()
        column = column.cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(column.type) else column
        values: list[Any] = column.cast(pa.int64()).to_pylist()
        for value in values:
            if greatest is not None and value < greatest - slack:
                return None
            greatest = value if greatest is None else max(greatest, value)
        return {} if greatest is None else {"greatest": str(greatest), "bound": str(greatest - slack)}

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The values below the greatest value, less the slack, have passed."""
        if self.per:
            return [] if flagged is None else self._new_punctuations_of_each(flagged, state)
        if facts.get("greatest") is None:
            return []
        state.notes["greatest"] = facts["greatest"]
        schema = state.inputs[0]
        return [self._of((), distance.values_below(facts["bound"], schema.attribute(self.attribute).domain), schema)]

    def forget(self, closed: Sequence[Punctuation], state: OperatorState) -> None:
        """Forgets the greatest values of keys that are closed as a whole."""
        if self.per:
            schema = state.inputs[0]
            places = [schema.index(name) for name in self.per]
            over = [p for p in closed if p.restricted and set(places).issuperset(p.restricted) and p.lifespan is None]
            if over:
                keys = Schema(self._keys(schema))
                state.log("greatest").purge([Punctuation(keys, tuple(p.patterns[i] for i in places)) for p in over])

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        """The values that were closed before the late tuple, and the slack with which no tuple would be late."""
        domain = schema.attribute(self.attribute).domain
        greatest = f"max({self._unless_ahead(domain)}) {self._before_it(schema)}"
        late = flagged.with_column(_GREATEST, greatest).where(f"{ASIDE} = '{UNGRAMMATICAL}'")
        bound = distance.before(_GREATEST, self.slack, domain)
        texts = {"greatest": distance.as_text(_GREATEST, domain), "bound": distance.as_text(bound, domain)}
        first = {name: f"min_by({text}, {POSITION})" for name, text in texts.items()}
        behind = f"max({distance.distance_between(quoted(self.attribute), _GREATEST, domain)})"
        (row,) = late.group_by((), {**first, "behind": behind}).to_arrow().to_pylist()
        passed = distance.values_below(row["bound"], domain)
        key = tuple(values[key.name] for key in self._keys(schema))
        came = format_pattern(Constant(distance.text_value(row["greatest"], domain)), domain)
        slack = distance.as_option(row["behind"], domain)
        mending = "" if slack is None else f", and with slack {slack} no tuple of this slice would be late"
        return self._of(key, passed, schema), f"{came} came before it{mending}"

    def _before_it(self, schema: Schema) -> str:
        """The window of the rows before a tuple that have its key."""
        apart = f"PARTITION BY {', '.join(self._quoted_keys(schema))}" if self.per else ""
        return f"OVER ({apart} ORDER BY {POSITION} NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"

    def _new_punctuations_of_each(self, flagged: Frame, state: OperatorState) -> list[Punctuation]:
        """One punctuation for each key whose greatest value has risen."""
        schema = state.inputs[0]
        domain, keys = schema.attribute(self.attribute).domain, self._key_names(schema)
        before = f"max(IF({POSITION} IS NULL, {quoted(self.attribute)}, NULL))"
        aggregates = {_GREATEST: f"max({self._unless_ahead(domain)})", _BEFORE: before}
        greatest = flagged.group_by(self._key_names(schema), aggregates)
        risen = greatest.where(f"{_GREATEST} IS NOT NULL AND ({_BEFORE} IS NULL OR {_GREATEST} > {_BEFORE})")
        bound = distance.as_text(distance.before(_GREATEST, self.slack, domain), domain)
        table = in_utc(risen.select(*keys, _GREATEST, Column(_BOUND, bound)).to_arrow())
        if not table.num_rows:
            return []
        kept = state.log("greatest")
        ddl = ", ".join([*(f"{quoted(k.name)} {k.domain.type}" for k in self._keys(schema)), self._ddl(domain)])
        rows = table.drop_columns([_BOUND]).rename_columns([*table.column_names[:-2], self.attribute])
        kept.add(Tuples(flagged.engine.rows(rows, ddl), rows.num_rows))
        kept.settle()
        table = table.sort_by([(key.name, "ascending") for key in self._keys(schema)])
        values = zip(*(column.to_pylist() for column in table.columns[:-2]), strict=True)
        texts: list[str] = table[_BOUND].to_pylist()  # type: ignore[assignment]
        return [
            self._of(key, distance.values_below(text, domain), schema) for key, text in zip(values, texts, strict=True)
        ]

    def _start(self, tuples: Frame, state: OperatorState) -> Frame | None:
        """The greatest value before the slice, of each key, as rows; None if there is none.

        Rows, not literals, so that Spark generates the same code in every slice.
        """
        if self.per:
            kept = state.log("greatest").whole()
            return None if kept is None else kept.frame
        if (greatest := state.notes.get("greatest")) is None:
            return None
        domain = state.inputs[0].attribute(self.attribute).domain
        return one_row(tuples.engine, state.inputs[0].attribute(self.attribute), distance.text_value(greatest, domain))

    def _far(self, rows: Frame, schema: Schema) -> Frame:
        """The rows with the column `_FAR`: each is compared with the greatest value before it that was not too far."""
        domain = schema.attribute(self.attribute).domain
        sequence = f"array_sort(collect_list(named_struct('at', {POSITION}, 'v', {self._place(domain)})))"
        beyond = distance.after("so_far.greatest", self.max_ahead, domain)
        none = f"named_struct('greatest', CAST(NULL AS {domain.type}), 'far', CAST(array() AS ARRAY<BIGINT>))"
        step = (
            f"IF(item.at IS NOT NULL AND item.v > {beyond},"
            " named_struct('greatest', so_far.greatest, 'far', array_append(so_far.far, item.at)),"
            " named_struct('greatest', greatest(so_far.greatest, item.v), 'far', so_far.far))"
        )
        fold = f"aggregate({sequence}, {none}, (so_far, item) -> {step}, so_far -> so_far.far)"
        far = rows.group_by(self._key_names(schema), {"far": fold})
        far = far.select(Column(_FAR, "explode(far)"))
        return rows.join(far, Equal(POSITION, _FAR), "left", small="right")

    def _place(self, domain: Domain) -> str:
        return distance.comparable(quoted(self.attribute), domain)

    def _unless_ahead(self, domain: Domain) -> str:
        """The value of a flagged row that is not too far ahead."""
        return f"IF({ASIDE} <=> '{AHEAD}', NULL, {self._place(domain)})"

    def _keys(self, schema: Schema) -> tuple[Attribute, ...]:
        return tuple(map(schema.attribute, self.per))

    def _key_names(self, schema: Schema) -> list[str]:
        return [key.name for key in self._keys(schema)]

    def _quoted_keys(self, schema: Schema) -> list[str]:
        return list(map(quoted, self._key_names(schema)))

    def _ddl(self, domain: Domain) -> str:
        return f"{quoted(self.attribute)} {domain.type}"

    def _of(self, key: tuple[object, ...], passed: Pattern, schema: Schema) -> Punctuation:
        of_key = constants(schema, self._key_names(schema), key)
        return Punctuation.of(schema, {**dict(zip(schema.names, of_key.patterns, strict=True)), self.attribute: passed})


def _above(attribute: str, p: Punctuation, slack: Any) -> tuple[str, Value] | None:
    """The attribute, and the first value above those that `p` closes and the slack after it; None if there is none."""
    place = p.schema.index(attribute)
    domain = p.schema[place].domain
    spans = list(values(p.patterns[place], domain).intervals())
    if not spans or spans[-1][1] == domain.top:
        return None
    above: Any = domain.bound(spans[-1][1], above=True)[0]
    return attribute, above if slack is None else above + slack


@dataclass(frozen=True, slots=True)
class ByClock(Rule):
    """A tuple comes no later than `delay` after the moment in its `attribute`."""

    attribute: str
    delay: timedelta = timedelta()

    @property
    def name(self) -> str:
        return f"clock of {self.attribute}"

    def __str__(self) -> str:
        delay = f", delay {distance.written(self.delay)}" if self.delay else ""
        return f"clock of {written_name(self.attribute)}{delay}"

    def require(self, schema: Schema) -> None:
        """The attribute is a TIMESTAMP, and the delay is not below zero."""
        attribute = schema.attribute(self.attribute)
        if attribute.domain.sql != TimestampType(zoned=True):
            raise QueryError(
                f"the rule '{self.name}' needs a TIMESTAMP, but {attribute.name} is {attribute.domain.type}",
                hint="name an attribute of type TIMESTAMP after 'clock of', or write another rule",
            )
        if self.delay < timedelta():
            raise UsageError(f"the delay {self.delay} is below zero")

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """Prefixes of the attribute."""
        return prefix_of(self.attribute)

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is a tuple whose moment the clock has closed."""
        return unless_late(tuples, condition(added(state).set))

    def awaited(self, p: Punctuation) -> tuple[str, Value] | None:
        """The moment at which the clock sends `p`."""
        return _above(self.attribute, p, self.delay)

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The moments before the one up to which everything was read, less the delay, have passed."""
        if state.read_until is None:
            return []
        return [Punctuation.of(state.inputs[0], {self.attribute: Range(None, state.read_until - self.delay)})]

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        """The punctuation that closed the moment of the late tuple."""
        return up_to(self.attribute, values, schema), ""
