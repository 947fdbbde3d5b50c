"""Punctuation by a condition on tuples: limits of a domain that always hold, and a predicate of the last of a group.

*By domain*: nothing lies outside the limits, and that is punctuated once, at the beginning. Source: Tucker et al. 2003,
§6.2 (stream semantics): for sensors that measure from 20F to 95F punctuate closes what is above 95F and below 20F. The
limits leave null open; NaN is above them.

*By predicate*: a tuple itself shows that its group has ended, as `status = 'closed'` does of an auction. After such a
tuple the values of the named attributes have passed, together: one punctuation restricts them all, by constants, null
among them. The tuple itself still goes on; one with the same values after it is late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.punctuators.rule import ASIDE, UNGRAMMATICAL, Facts, ordered_attribute, said
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from punct_ns.errors import QueryError, UsageError
from punct_ns.pattern import Constant, patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, Term
from punct_ns.slices import POSITION, condition, in_utc, is_inline, matching, not_matching, own, quoted
from punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ByDomain:
    """No value lies outside the `limits`, written as domains are: `min 0..59, currtmp 20..95`."""

    limits: str

    @property
    def name(self) -> str:
        """By what is punctuated."""
        return f"domain {self.limits}"

    def require(self, schema: Schema) -> None:
        """The limits leave something outside."""
        if not self._outside(schema):
            raise QueryError(f"the limits '{self.limits}' say nothing that the schema does not say")

    def promises(self) -> tuple[Scheme, ...]:
        """None: no more will be said."""
        return ()

    def state_schema(self, schema: Schema) -> StateSchema:
        """Nothing."""
        return StateSchema()

    def flagged(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """Late is whatever lies outside, from the first tuple on."""
        late = condition(self._outside(state.inputs[0]))
        return tuples.selectExpr("*", f"IF({late}, '{UNGRAMMATICAL}', NULL) AS {ASIDE}")

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """Nothing."""
        return {}

    def new_punctuations(self, flagged: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The same from the beginning; it goes out once."""
        return self._outside(state.inputs[0])

    def broken(self, values: Facts, flagged: DataFrame, schema: Schema) -> tuple[Punctuation, str]:
        """What was said of the first attribute whose value lies outside."""
        normal = [None if values.get(a.name) is None else a.domain.normal(values[a.name]) for a in schema]
        return next(p for p in self._outside(schema) if p.matches(normal)), ""

    def _outside(self, schema: Schema) -> list[Punctuation]:
        found = []
        for wide, narrow in zip(schema, schema.bounded(self.limits), strict=True):
            inside = ValueSet.of_intervals(wide.domain, [(narrow.domain.bottom, narrow.domain.top)])
            outside = ValueSet(wide.domain, inside.complement().cuts)
            found += [Punctuation.of(schema, {wide.name: pattern}) for pattern in patterns(outside)]
        return found


_SAID, _ENDS = own("said"), own("ends")
"""BOOLEAN: whether an earlier slice ended the tuple's group, and whether the tuple does."""


@dataclass(frozen=True, slots=True)
class ByPredicate:
    """A tuple for which `when` is true, Spark SQL over the input's attributes, ends the group of its `attributes`."""

    when: str
    attributes: tuple[str, ...]

    @property
    def name(self) -> str:
        """By what is punctuated."""
        return f"predicate {self.when}"

    def require(self, schema: Schema) -> None:
        """The attributes are there, and their values can be named."""
        if not self.attributes:
            raise UsageError("a predicate that ends nothing", hint="name the attributes whose values have passed")
        for name in self.attributes:
            ordered_attribute(schema, name)

    def promises(self) -> tuple[Scheme, ...]:
        """Constants for each of the attributes."""
        return (Scheme(tuple(Term(name) for name in self.attributes)),)

    def state_schema(self, schema: Schema) -> StateSchema:
        """Nothing."""
        return StateSchema()

    def flagged(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """Late is a tuple whose group an earlier one ended, of this slice or of one before."""
        group = ", ".join(map(quoted, self.attributes))
        ended = (
            f"max({_ENDS}) OVER (PARTITION BY {group}"
            f" ORDER BY {POSITION} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        )
        told = self._told(tuples, state).selectExpr("*", f"coalesce(({self.when}), false) AS {_ENDS}")
        return told.selectExpr(
            "*", f"IF({_SAID} OR coalesce({ended}, false), '{UNGRAMMATICAL}', NULL) AS {ASIDE}"
        ).drop(_SAID)

    def aggregates(self, schema: Schema) -> dict[str, str]:
        """How many tuples end a group."""
        return {"ending": f"count_if({_ENDS} AND {ASIDE} IS NULL)"}

    def new_punctuations(self, flagged: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The groups of the tuples that end theirs."""
        if flagged is None or not facts["ending"]:
            return []
        schema = state.inputs[0]
        ending = flagged.where(f"{_ENDS} AND {ASIDE} IS NULL").select(*map(quoted, self.attributes))
        columns = in_utc(ending.toArrow()).columns
        return [self._of(values, schema) for values in zip(*(c.to_pylist() for c in columns), strict=True)]

    def broken(self, values: Facts, flagged: DataFrame, schema: Schema) -> tuple[Punctuation, str]:
        """Its group had ended."""
        return self._of(tuple(values[schema.attribute(name).name] for name in self.attributes), schema), ""

    def _of(self, values: tuple[object, ...], schema: Schema) -> Punctuation:
        pairs = [(schema.attribute(name), v) for name, v in zip(self.attributes, values, strict=True)]
        return Punctuation.of(schema, {a.name: Constant(None if v is None else a.domain.normal(v)) for a, v in pairs})

    def _told(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """The tuples with `_SAID`."""
        ended = list(said(state).set)
        if is_inline(ended):
            return tuples.selectExpr("*", f"({condition(ended)}) AS {_SAID}")
        late, others = matching(tuples, ended), not_matching(tuples, ended)
        return late.selectExpr("*", f"true AS {_SAID}").unionAll(others.selectExpr("*", f"false AS {_SAID}"))
