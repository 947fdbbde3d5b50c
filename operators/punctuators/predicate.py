"""Punctuation by a condition on tuples: limits of a domain that always hold, or a predicate for a group's last tuple.

*By domain*: no value lies outside the limits; punctuations close the values outside, once, at the beginning. Source:
Tucker et al. 2003, §6.2 (stream semantics): for sensors that measure from 20F to 95F punctuate closes the values above
95F and below 20F. The limits leave null open; NaN is above them.

*By predicate*: a tuple shows that its group has ended, for example an auction's by `status = 'closed'`. After such a
tuple, one punctuation restricts all named attributes to its values, by constants, null among them. The tuple itself is
still emitted; a later one with the same values is late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.expressions.iso_duration import with_iso_durations
from operators.frames.matching import matching, not_matching
from operators.punctuators.rule import ASIDE, Facts, Rule, added, ordered_attribute, unless_late
from operators.state.operator_state import OperatorState
from punct_ns.errors import QueryError, UsageError
from punct_ns.pattern import Constant, patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, Term
from punct_ns.slices import POSITION, condition, in_utc, is_inline, own, quoted
from punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from operators.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class ByDomain(Rule):
    """No value lies outside the `limits`, which are written like domains: `min 0..59, currtmp 20..95`."""

    limits: str

    @property
    def name(self) -> str:
        return f"domain {self.limits}"

    def require(self, schema: Schema) -> None:
        """At least one value lies outside the limits; else QueryError."""
        if not self._outside(schema):
            raise QueryError(f"the limits '{self.limits}' exclude no value that the schema allows")

    def promises(self) -> tuple[Scheme, ...]:
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
            outside = ValueSet(wide.domain, inside.complement().cuts)
            found += [Punctuation.of(schema, {wide.name: pattern}) for pattern in patterns(outside)]
        return found


_ENDED, _ENDS = own("ended"), own("ends")
"""BOOLEAN: whether an earlier slice ended the tuple's group; whether the tuple ends it."""


@dataclass(frozen=True, slots=True)
class ByPredicate(Rule):
    """A tuple for which `when`, Spark SQL over the input's attributes, is true ends the group of its `attributes`."""

    when: str
    attributes: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"predicate {self.when}"

    def require(self, schema: Schema) -> None:
        """The input has the attributes, and their types have constants; else QueryError or UsageError."""
        if not self.attributes:
            raise UsageError("a predicate that ends nothing", hint="name the attributes whose values have passed")
        for name in self.attributes:
            ordered_attribute(schema, name)

    def promises(self) -> tuple[Scheme, ...]:
        """Constants for all of the attributes together."""
        return (Scheme(tuple(Term(name) for name in self.attributes)),)

    def flagged(self, tuples: Frame, state: OperatorState) -> Frame:
        """Late is a tuple whose group an earlier tuple ended, in this slice or before."""
        group = ", ".join(map(quoted, self.attributes))
        ended = (
            f"max({_ENDS}) OVER (PARTITION BY {group}"
            f" ORDER BY {POSITION} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        )
        known = self._with_ended(tuples, state).select(
            "*", f"coalesce(({with_iso_durations(self.when)}), false) AS {_ENDS}"
        )
        return unless_late(known, f"{_ENDED} OR coalesce({ended}, false)").drop(_ENDED)

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """The number of tuples that end a group."""
        return {"ending": f"count_if({_ENDS} AND {ASIDE} IS NULL)"}

    def new_punctuations(self, flagged: Frame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """One punctuation for each group that a tuple of the slice ended."""
        if flagged is None or not facts["ending"]:
            return []
        schema = state.inputs[0]
        ending = flagged.where(f"{_ENDS} AND {ASIDE} IS NULL").select(*map(quoted, self.attributes))
        columns = in_utc(ending.to_arrow()).columns
        return [self._of(values, schema) for values in zip(*(c.to_pylist() for c in columns), strict=True)]

    def broken(self, values: Facts, flagged: Frame, schema: Schema) -> tuple[Punctuation, str]:
        return self._of(tuple(values[schema.attribute(name).name] for name in self.attributes), schema), ""

    def _of(self, values: tuple[object, ...], schema: Schema) -> Punctuation:
        pairs = [(schema.attribute(name), v) for name, v in zip(self.attributes, values, strict=True)]
        return Punctuation.of(schema, {a.name: Constant(None if v is None else a.domain.normal(v)) for a, v in pairs})

    def _with_ended(self, tuples: Frame, state: OperatorState) -> Frame:
        """The tuples with the column `_ENDED`."""
        ended = list(added(state).set)
        if is_inline(ended):
            return tuples.select("*", f"({condition(ended)}) AS {_ENDED}")
        late, others = matching(tuples, ended), not_matching(tuples, ended)
        return late.select("*", f"true AS {_ENDED}").union(others.select("*", f"false AS {_ENDED}"))
