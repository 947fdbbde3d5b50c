"""Punctuation by count: a group is complete with its n-th tuple, as a transaction or a message that states its length.

The number n is a constant, or an attribute: the first tuple of a group that has a value of it states it. Often this is
not one of the n, as Debezium's END of a transaction, the header of a payment message or the trailer of an EDI message;
then a condition (`counting`) selects what counts. The number may come before, among or behind the tuples it counts.

Example:    Punctuate(ByCount("tx", "n"))
              over (tx INT, n INT) gives (tx INT, n INT)
              in   (1, 2) (2, 1)        | (1, null)
              out  (1, 2) (2, 1) <2, *> | (1, null) <1, *>

The tuple that makes the number full is emitted, and one punctuation restricts all attributes of the group to its
values, null among them; a later tuple of the group is ungrammatical. So is a tuple that contradicts the count, and that
alone of its group: its number is negative, or zero though it counts itself; it is not the one that the group already
has; or it is less than the tuples that have come. The latter closes its group nevertheless: nothing else would.

A count is kept for each open group. If other punctuations close the group, as at the end of the input, the count is
forgotten; since tuples are missing, that is a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.closing_conditions import ALWAYS, StateModel
from xmlstream.operators.frames.expression import Column, Copy, Present
from xmlstream.operators.punctuators.rule import (
    ASIDE,
    CONTRADICTORY,
    UNGRAMMATICAL,
    Facts,
    Rule,
    constants,
    in_each,
    ordered_attribute,
    with_ended,
)
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Tuples
from xmlstream.operators.state.state_schema import LogSchema, StateSchema
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.grammar import written
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.numeric_type import IntegerType
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import project
from xmlstream.punct_ns.schema import Schema, written_name
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.slices import POSITION, STREAM, in_utc, own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame

_ENDED, _COUNT, _N, _BEGAN = map(own, ("ended", "count", "n", "began"))
"""Whether an earlier slice completed the tuple's group; how many tuples the row counts for; the number that it states,
if it can be one; for a kept row, the position of its group's first tuple."""

_NO_COUNT, _FIRST, _KNOWN, _FITS, _SUM = map(own, ("no_count", "first", "known", "fits", "sum"))
"""The number that the tuple states, if it cannot be one; the first of its group, where it is stated, and from there on;
whether the row does not contradict it; the tuples of its group up to the row."""

_FULL, _ALREADY = map(own, ("full", "already"))
"""Whether the row makes the number of its group full; whether one before it in the slice did."""


@dataclass(frozen=True, slots=True)
class ByCount(Rule):
    """The end of a group, by the values of its `attributes`, with its n-th tuple.

    The `count` is n, or the name of the attribute that has it. Only the tuples for which `counting`, Spark SQL over the
    input's attributes, is true count; by default all do. One count is kept for each group that is open.
    """

    attributes: tuple[str, ...] | str
    count: int | str
    counting: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.attributes, str):
            object.__setattr__(self, "attributes", (self.attributes,))

    @property
    def name(self) -> str:
        return f"count of {', '.join(self.attributes)}"

    def __str__(self) -> str:
        count = self.count if isinstance(self.count, int) else written_name(self.count)
        each = in_each(self.attributes)
        ends = ", ".join(f"end of {written_name(name)}" for name in self.attributes if name != STREAM)
        return ", ".join([f"{ends} after {count}", *([f"counting {self.counting}"] if self.counting else []), *each])

    @property
    def condition(self) -> str | None:
        return self.counting

    def of_each(self, key: str) -> ByCount:
        """The count of each one's group."""
        return replace(self, attributes=(*self.attributes, key))

    def require(self, schema: Schema) -> None:
        """The input has the attributes, their types have constants, and the count is an integer above zero."""
        if not self.attributes:
            raise UsageError("a count that ends nothing", hint="name the attributes whose values have passed")
        for name in self.attributes:
            ordered_attribute(schema, name)
        if isinstance(self.count, str):
            attribute = schema.attribute(self.count)
            if not isinstance(attribute.domain.sql, IntegerType):
                what = f"a number of tuples is an integer, and {attribute.name} is {attribute.domain.type}"
                raise QueryError(what, hint=f"declare {attribute.name} INT or BIGINT, or name another attribute")
        elif self.count < 1:
            what = f"no group is complete with {self.count} tuples"
            raise UsageError(what, hint="a count is 1 or more, or an attribute that has it")

    def promises(self, schemes: Sequence[Scheme] = ()) -> tuple[Scheme, ...]:
        """Constants for all of the attributes together."""
        return (Scheme(tuple(Term(name) for name in self.attributes)),)

    def state_schema(self, schema: Schema) -> StateSchema:
        """The count of each open group, with its number once that is known."""
        group = self._group(schema)
        what = f"the number of tuples of each open {', '.join(group.names)}"
        log = LogSchema(
            group,
            (StateModel(what, 0, ALWAYS, is_fixed=True),),
            combine=lambda rows, _ages: _combined(rows, group.names),
            key=group.names,
        )
        return StateSchema({"open": log})

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is a tuple of a complete group; contradictory is one whose number cannot be that of its group."""
        rows = self._counted(tuples, state)
        if (kept := state.log("open").whole()) is not None:
            rows = rows.union_by_name(kept.frame)
        within = f"OVER (PARTITION BY {', '.join(map(quoted, self.attributes))} ORDER BY {POSITION} NULLS FIRST"
        before, until = (
            f"{within} ROWS BETWEEN UNBOUNDED PRECEDING AND {end})" for end in ("1 PRECEDING", "CURRENT ROW")
        )
        rows = rows.with_column(_FIRST, f"IF(max({_N}) {before} IS NULL, {_N}, NULL)")
        rows = rows.with_column(_KNOWN, f"max({_FIRST}) {until}")
        rows = rows.with_column(_FITS, f"{_NO_COUNT} IS NULL AND coalesce({_N} = {_KNOWN}, true)")
        rows = rows.with_column(_SUM, f"CAST(sum(IF({_FITS}, {_COUNT}, 0)) {until} AS BIGINT)")
        full = f"{POSITION} IS NOT NULL AND {_FITS} AND coalesce({_SUM} >= {_KNOWN}, false)"
        rows = rows.with_column(_FULL, full)
        rows = rows.with_column(_ALREADY, f"coalesce({_ENDED}, false) OR coalesce(max({_FULL}) {before}, false)")
        wrong = f"NOT {_FITS} OR coalesce({_SUM} > {_KNOWN}, false)"
        aside = f"CASE WHEN {_ALREADY} THEN '{UNGRAMMATICAL}' WHEN {wrong} THEN '{CONTRADICTORY}' END"
        return rows.with_column(ASIDE, aside)

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """One punctuation for each group whose number is full; the counts of all groups that have come are kept."""
        if flagged is None:
            return []
        schema = state.inputs[0]
        group, kept = self._group(schema), state.log("open")
        alive = flagged.where(f"{_FITS} AND NOT {_ALREADY}").select(
            *group.names,
            POSITION,
            Column(_COUNT, Copy(_SUM)),
            Column(_N, Copy(_KNOWN)),
            Column(_BEGAN, f"coalesce({_BEGAN}, {POSITION})"),
        )
        came = _combined(alive, group.names, **{POSITION: f"max({POSITION})"}).where(Present(POSITION))
        kept.add(Tuples(came.drop(POSITION), facts["on"] + facts["late"], exact=False))
        kept.settle()
        if not facts["full"]:
            return []
        full = flagged.where(f"{_FULL} AND NOT {_ALREADY}").select(*group.names, POSITION)
        rows = in_utc(full.to_arrow().sort_by(POSITION).select(list(group.names)))
        return [constants(schema, self.attributes, row.values()) for row in rows.to_pylist()]

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """The number of tuples that make a number full."""
        return {"full": f"count_if({_FULL} AND NOT {_ALREADY})"}

    def forget(self, closed: Sequence[Punctuation], state: OperatorState) -> None:
        """Forgets the counts of closed groups; those that are not full are findings."""
        kept = state.log("open")
        if kept.is_empty or not closed:
            return
        group, new = self._group(state.inputs[0]), [p.lasting(None) for p in closed]
        every: PunctuationSet = state.punctuations("sent").set
        gone = project(every, group.names, group, new=new)
        if not gone or (taken := kept.take(gone)) is None:
            return
        short = taken.frame.where(f"{_N} IS NULL OR {_COUNT} < {_N}")
        found = in_utc(short.to_arrow().sort_by(_BEGAN)).to_pylist()
        state.short += [(row[_BEGAN], self._too_few(row, group)) for row in found]

    def _too_few(self, row: Facts, group: Schema) -> str:
        """A sentence about a group that was closed before its number was full."""
        count, n = row[_COUNT], row[_N]
        came = f"{count} of {_tuples(n)}" if n is not None else f"{_tuples(count)}, none with a value of {self.count}"
        return f"{_named(row, group)} was closed with {came}"

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        group = self._group(schema)
        known = "the tuples that it has" if values[_ENDED] else _tuples(values[_KNOWN])
        words = f"{_named(values, group)} was complete with {known}{self._or_not_all}"
        return constants(schema, self.attributes, [values[name] for name in group.names]), words

    def contradiction(self, values: Facts, schema: Schema) -> str:
        """What is wrong with a tuple's number."""
        group = _named(values, self._group(schema))
        stated, known, count = values[_NO_COUNT], values[_KNOWN], values[_SUM]
        if stated is not None:
            why = "which is no number of tuples" if stated < 0 else f"and is itself a tuple of {group}"
        elif values[_FITS]:
            stated, why = known, f"but {_tuples(count)} of {group} came{self._or_not_all}"
        else:
            stated, why = values[_N], f"but an earlier tuple of {group} has {known}"
        return f"the tuple {written(values, schema)} has {self.count} {stated}, {why}"

    @property
    def _or_not_all(self) -> str:
        """What to write if too many tuples count."""
        if self.counting or not isinstance(self.count, str):
            return ""
        return "; if some do not count, such as headers, add a condition: counting …"

    def _counted(self, tuples: Frame, state: OperatorState) -> Frame:
        """The tuples with `_ENDED`, `_COUNT`, `_N` and `_NO_COUNT`."""
        counts = f"coalesce(({self.counting}\n), false)" if self.counting else "true"
        rows = with_ended(tuples, state, _ENDED).with_column(_COUNT, f"CAST(IF({counts}, 1, 0) AS BIGINT)")
        stated = f"CAST({quoted(self.count) if isinstance(self.count, str) else self.count} AS BIGINT)"
        none = f"IF({stated} < {_COUNT} OR {stated} < 0, {stated}, NULL)"
        rows = rows.with_columns({_NO_COUNT: none, _BEGAN: "CAST(NULL AS BIGINT)"})
        return rows.with_column(_N, f"IF({_NO_COUNT} IS NULL, {stated}, NULL)")

    def _group(self, schema: Schema) -> Schema:
        return Schema(tuple(map(schema.attribute, self.attributes)))


def _combined(rows: Frame, keys: Sequence[str], **more: str) -> Frame:
    """One row for each group: the greatest count, the only number, where it begins; and more aggregates."""
    wanted = {_COUNT: f"max({_COUNT})", _N: f"max({_N})", _BEGAN: f"min({_BEGAN})"}
    return rows.group_by(keys, {**wanted, **more})


def _tuples(count: int) -> str:
    return f"{count} tuple" if count == 1 else f"{count} tuples"


def _named(values: Facts, group: Schema) -> str:
    """The group of a row, as `tx 7`."""
    patterns = constants(group, group.names, [values[name] for name in group.names]).patterns
    texts = (format_pattern(pattern, each.domain) for pattern, each in zip(patterns, group, strict=True))
    return ", ".join(f"{name} {text}" for name, text in zip(group.names, texts, strict=True))
