"""Punctuation by domain: limits that always hold. Nothing lies outside them, and that is said once, at the beginning.

Source: Tucker et al. 2003, §6.2 (stream semantics): sensors that measure from 20F to 95F let punctuate say that no
report is above 95F and none below 20F. Of null the limits say nothing; NaN is above them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.punctuators.rule import ASIDE, UNGRAMMATICAL, Facts
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from punct_ns.errors import QueryError
from punct_ns.pattern import patterns
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import condition
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

    def marked(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """Late is whatever lies outside, from the first tuple on."""
        late = condition(self._outside(state.inputs[0]))
        return tuples.selectExpr("*", f"IF({late}, '{UNGRAMMATICAL}', NULL) AS {ASIDE}")

    def asks(self, schema: Schema) -> dict[str, str]:
        """Nothing."""
        return {}

    def learn(self, marked: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The same from the beginning; it goes out once."""
        return self._outside(state.inputs[0])

    def broken(self, values: Facts, marked: DataFrame, schema: Schema) -> tuple[Punctuation, str]:
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
