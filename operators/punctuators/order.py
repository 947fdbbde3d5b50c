"""Punctuation by order: an attribute ascends, with some slack; what is behind the greatest value has passed.

The punctuation is `(,v)`, open at v, since more tuples may have v itself; v is the greatest value so far, less the
slack.

Differs: Tucker et al. 2007, §8.1, has `[⊥,v]` after each tuple, which is unsound where two tuples have one value.

This is what sort knows, too (Tucker et al. 2003, §6.2): a stream that is sorted by an attribute, ascending, is
punctuated by order without slack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from operators.punctuators import distance
from operators.punctuators.distance import Distance
from operators.punctuators.rule import AHEAD, ASIDE, UNGRAMMATICAL, Facts, ordered_attribute, prefix_of, up_to
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from punct_ns.domain import Domain
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import POSITION, arrow_type, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FAR = own("far")
"""BOOLEAN: a tuple too far ahead; else null."""


@dataclass(frozen=True, slots=True)
class ByOrder:
    """The attribute ascends; a tuple may be up to `slack` behind the greatest value so far.

    One that is more than `max_ahead` ahead of it, as where a clock is wrong, is set aside and moves nothing. Null and
    NaN move nothing either, and are never late.
    """

    attribute: str
    slack: Distance | None = None
    max_ahead: Distance | None = None

    @property
    def name(self) -> str:
        """By what is punctuated."""
        return f"order of {self.attribute}"

    def require(self, schema: Schema) -> None:
        """The attribute is ordered, and both distances are in its units."""
        attribute = ordered_attribute(schema, self.attribute)
        distance.require(self.slack, attribute)
        distance.require(self.max_ahead, attribute)

    def promises(self) -> tuple[Scheme, ...]:
        """Ranges from the start."""
        return prefix_of(self.attribute)

    def state_schema(self, schema: Schema) -> StateSchema:
        """The greatest value."""
        return StateSchema(notes=["greatest"])

    def marked(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """Late is what is behind the greatest value before it by more than the slack."""
        domain = state.inputs[0].attribute(self.attribute).domain
        rows = tuples
        if (greatest := state.notes.get("greatest")) is not None:
            # A row, not a literal: it changes from slice to slice, and generated code does not.
            value = pa.array([distance.value_told(greatest, domain)], arrow_type(domain))
            ddl = f"{quoted(self.attribute)} {domain.type}"
            start = tuples.sparkSession.createDataFrame(pa.table({self.attribute: value}), ddl)
            rows = tuples.unionByName(start, allowMissingColumns=True)
        far = "false"
        if self.max_ahead is not None:
            rows, far = self._far(rows, domain), f"{_FAR} IS NOT NULL"
        greatest_before = (
            f"max(IF({far}, NULL, {self._place(domain)})) OVER"
            f" (ORDER BY {POSITION} NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        )
        late = f"{quoted(self.attribute)} < {distance.before(greatest_before, self.slack, domain)}"
        aside = f"CASE WHEN {far} THEN '{AHEAD}' WHEN {late} THEN '{UNGRAMMATICAL}' END AS {ASIDE}"
        return rows.coalesce(1).selectExpr("*", aside).drop(_FAR)

    def asks(self, schema: Schema) -> dict[str, str]:
        """The greatest value, and the slack before it."""
        domain = schema.attribute(self.attribute).domain
        greatest = f"max(IF({ASIDE} <=> '{AHEAD}', NULL, {self._place(domain)}))"
        bound = distance.before(greatest, self.slack, domain)
        return {"greatest": distance.told(greatest, domain), "bound": distance.told(bound, domain)}

    def learn(self, marked: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """All below the greatest value, less the slack, has passed."""
        if facts.get("greatest") is None:
            return []
        state.notes["greatest"] = facts["greatest"]
        schema = state.inputs[0]
        bound = distance.values_below(facts["bound"], schema.attribute(self.attribute).domain)
        return [Punctuation.of(schema, {self.attribute: bound})]

    def broken(self, values: Facts, schema: Schema) -> Punctuation:
        """Its value had passed."""
        attribute = schema.attribute(self.attribute)
        return up_to(values[attribute.name], attribute, schema)

    def _place(self, domain: Domain) -> str:
        return distance.comparable(quoted(self.attribute), domain)

    def _far(self, rows: DataFrame, domain: Domain) -> DataFrame:
        """The rows with `_FAR`: one after the other, each compared with the greatest before it that was not too far."""
        from pyspark.sql import functions as F

        sequence = f"array_sort(collect_list(named_struct('at', {POSITION}, 'v', {self._place(domain)})))"
        beyond = distance.after("so_far.greatest", self.max_ahead, domain)
        none = f"named_struct('greatest', CAST(NULL AS {domain.type}), 'far', CAST(array() AS ARRAY<BIGINT>))"
        step = (
            f"IF(item.v > {beyond},"
            " named_struct('greatest', so_far.greatest, 'far', array_append(so_far.far, item.at)),"
            " named_struct('greatest', greatest(so_far.greatest, item.v), 'far', so_far.far))"
        )
        fold = f"aggregate({sequence}, {none}, (so_far, item) -> {step}, so_far -> so_far.far)"
        far = rows.selectExpr(f"{fold} AS far").selectExpr(f"explode(far) AS {POSITION}", f"true AS {_FAR}")
        return rows.join(F.broadcast(far), POSITION, "left")
