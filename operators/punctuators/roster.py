"""Punctuation by roster: a list says who must report; a value has passed once each of them has sent a greater one.

Source: Tucker et al. 2003, §6.2 (auxiliary information): with a list of the sensor units, punctuate can tell when all
reports for an hour have arrived, and the sensors need not.

The punctuation is `(,v)`, v being the least of the members' greatest values. In the sequence of a slice, u has passed
at the first position at which every member has exceeded u. A member's greatest value rises in steps, from an old value
o at a position p; it exceeds u with the last of its steps that has o ≤ u, if it ever does. Steps of one member follow
each other in both o and p, and so the position for u is simply the greatest p of all members' steps with o ≤ u, where
each member's last value counts as a step that has not come yet: one window, ordered by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from operators.punctuators import distance
from operators.punctuators.rule import ASIDE, UNGRAMMATICAL, Facts, ordered_attribute, prefix_of, up_to
from operators.state.behaviour import Tuples
from operators.state.operator_state import OperatorState
from operators.state.state_schema import LogSchema, StateSchema
from punct_ns.domain import Value
from punct_ns.errors import QueryError, UsageError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import POSITION, arrow_type, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BEFORE, _LAST, _LISTED, _STEP = map(own, ("before", "last", "listed", "step"))
"""Of a row's member: the greatest value before it, that of the slice, whether it is waited for; and what follows."""

_NEVER = "9223372036854775807"


@dataclass(frozen=True, slots=True)
class ByRoster:
    """Each member of the roster, a value of the attribute `member`, sends ascending values of `attribute`.

    Whoever is not on the roster is not waited for, but may come too late like the others. Null and NaN say nothing.
    """

    attribute: str
    member: str
    roster: tuple[Value, ...]

    @property
    def name(self) -> str:
        """By what is punctuated."""
        return f"roster of {self.member}"

    def require(self, schema: Schema) -> None:
        """Somebody is on the roster, and all can be."""
        ordered_attribute(schema, self.attribute)
        member = schema.attribute(self.member)
        if schema.index(self.attribute) == schema.index(self.member):
            raise QueryError(f"{self.attribute} cannot say both who reports and what has passed")
        if not self.roster:
            raise UsageError("nobody is on the roster", hint=f"name values of {self.member}")
        for value in self.roster:
            if not member.domain.contains(value):
                raise UsageError(f"{value!r} on the roster is no value of {self.member} {member.domain.type}")

    def promises(self) -> tuple[Scheme, ...]:
        """Ranges from the start."""
        return prefix_of(self.attribute)

    def state_schema(self, schema: Schema) -> StateSchema:
        """The greatest value of each member."""
        member = Schema((schema.attribute(self.member),))
        return StateSchema({"latest": LogSchema(member, lambda rows, _ages: self._latest(rows), of=None)})

    def marked(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """Late is what comes after the position at which its value had passed."""
        schema = state.inputs[0]
        place = distance.comparable(quoted(self.attribute), schema.attribute(self.attribute).domain)
        rows = tuples.unionByName(self._start(tuples, state), allowMissingColumns=True)
        mine = f"OVER (PARTITION BY {quoted(self.member)}"
        earlier = f"{mine} ORDER BY {POSITION} NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        told = rows.selectExpr(
            "*",
            f"max({place}) {earlier} AS {_BEFORE}",
            # Nobody but a member has a row without a position before all others.
            f"IF({place} IS NULL, NULL, bool_or({POSITION} IS NULL) {earlier}) AS {_LISTED}",
            f"max({place}) {mine}) AS {_LAST}",
        )
        tuple_ = f"named_struct('value', {place}, 'at', CAST(NULL AS BIGINT), 'own', {POSITION})"
        step = f"named_struct('value', {_BEFORE}, 'at', {POSITION}, 'own', CAST(NULL AS BIGINT))"
        ahead = f"named_struct('value', {_LAST}, 'at', {_NEVER}, 'own', CAST(NULL AS BIGINT))"
        parts = (
            f"CASE WHEN {POSITION} IS NULL THEN array({ahead})"
            f" WHEN {_LISTED} AND ({_BEFORE} IS NULL OR {place} > {_BEFORE}) THEN array({tuple_}, {step})"
            f" ELSE array({tuple_}) END"
        )
        each = told.selectExpr("*", f"explode({parts}) AS {_STEP}").drop(POSITION, _BEFORE, _LAST, _LISTED)
        passed = f"coalesce(max({_STEP}.at) OVER (ORDER BY {_STEP}.value NULLS FIRST), -1)"
        late = f"{_STEP}.value IS NOT NULL AND {_STEP}.own > {passed}"
        return each.selectExpr("*", f"{_STEP}.own AS {POSITION}", f"IF({late}, '{UNGRAMMATICAL}', NULL) AS {ASIDE}")

    def asks(self, schema: Schema) -> dict[str, str]:
        """The least of the members' greatest values; null while one has sent none."""
        domain = schema.attribute(self.attribute).domain
        last = f"{_STEP}.at = {_NEVER}"
        least = distance.told(f"min(IF({last}, {_STEP}.value, NULL))", domain)
        return {"bound": f"IF(count_if({last} AND {_STEP}.value IS NULL) = 0, {least}, NULL)"}

    def learn(self, marked: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """All below the least of the members' greatest values has passed."""
        if marked is None:
            return []
        names = f"{quoted(self.member)}", f"{_STEP}.value AS {quoted(self.attribute)}"
        last = marked.where(f"{_STEP}.at = {_NEVER}").selectExpr(*names)
        latest = state.log("latest")
        latest.add(Tuples(last, len(self.roster)))
        latest.settle()
        if facts["bound"] is None:
            return []
        schema = state.inputs[0]
        bound = distance.values_below(facts["bound"], schema.attribute(self.attribute).domain)
        return [Punctuation.of(schema, {self.attribute: bound})]

    def broken(self, values: Facts, marked: DataFrame, schema: Schema) -> tuple[Punctuation, str]:
        """Its value had passed."""
        attribute = schema.attribute(self.attribute)
        return up_to(values[attribute.name], attribute, schema), ""

    def _start(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """Each member's greatest value before the slice; null for none."""
        if (whole := state.log("latest").whole()) is not None:
            return whole.frame
        member, attribute = (state.inputs[0].attribute(name) for name in (self.member, self.attribute))
        members = list(dict.fromkeys(map(member.domain.normal, self.roster)))
        listed = pa.array(members, arrow_type(member.domain))
        nothing = pa.array([None] * len(members), arrow_type(attribute.domain))
        ddl = f"{quoted(self.member)} {member.domain.type}, {quoted(self.attribute)} {attribute.domain.type}"
        return tuples.sparkSession.createDataFrame(pa.table([listed, nothing], [self.member, self.attribute]), ddl)

    def _latest(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        attribute = quoted(self.attribute)
        return rows.groupBy(quoted(self.member)).agg(F.expr(f"max({attribute}) AS {attribute}"))
