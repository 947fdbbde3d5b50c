"""Punctuation by clock: time passes, while the source is silent, too, and with it what cannot come so much later.

Source: Tucker et al. 2007, §8.3 (heartbeats). What had come at a moment was read with the slice: of that moment the
clock speaks, less the delay. It is recorded with the slice, and no clock is asked twice. While more is there than a
slice reads, nothing is said: a source that is read with a backlog must not be overtaken by the clock.

Differs: that section says that no tuple *greater* than the heartbeat will follow; meant is *not greater*. Here the
heartbeat itself stays open, as all of `(,v)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from operators.punctuators.rule import ASIDE, UNGRAMMATICAL, Facts, prefix_of, said, up_to
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from punct_ns.errors import QueryError, UsageError
from punct_ns.pattern import Range
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import condition
from punct_ns.temporal_type import TimestampType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ByClock:
    """A tuple comes, if at all, no later than `delay` after the moment that its `attribute` names."""

    attribute: str
    delay: timedelta = timedelta()

    @property
    def name(self) -> str:
        """By what is punctuated."""
        return f"clock of {self.attribute}"

    def require(self, schema: Schema) -> None:
        """The attribute is a moment, and the delay a delay."""
        attribute = schema.attribute(self.attribute)
        if attribute.domain.sql != TimestampType(zoned=True):
            raise QueryError(
                f"no clock tells {attribute.name}, which is {attribute.domain.type}",
                hint="a clock tells a TIMESTAMP: it knows no other time zone",
            )
        if self.delay < timedelta():
            raise UsageError(f"the delay {self.delay} is below zero")

    def promises(self) -> tuple[Scheme, ...]:
        """Ranges from the start."""
        return prefix_of(self.attribute)

    def state_schema(self, schema: Schema) -> StateSchema:
        """Nothing."""
        return StateSchema()

    def marked(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
        """Late is what the clock has overtaken."""
        return tuples.selectExpr("*", f"IF({condition(said(state).set)}, '{UNGRAMMATICAL}', NULL) AS {ASIDE}")

    def asks(self, schema: Schema) -> dict[str, str]:
        """Nothing."""
        return {}

    def learn(self, marked: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The moment up to which all was read, less the delay."""
        if state.read_until is None:
            return []
        return [Punctuation.of(state.inputs[0], {self.attribute: Range(None, state.read_until - self.delay)})]

    def broken(self, values: Facts, marked: DataFrame, schema: Schema) -> tuple[Punctuation, str]:
        """Its moment had passed."""
        attribute = schema.attribute(self.attribute)
        return up_to(values[attribute.name], attribute, schema), ""
