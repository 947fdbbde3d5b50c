"""Punctuation by predicate: a tuple itself says that its group has ended, as `status = 'closed'` does of an auction.

After such a tuple the values of the named attributes have passed, together: one punctuation restricts them all, by
constants, null among them. The tuple itself still goes on; one with the same values after it is late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.punctuators.rule import ASIDE, UNGRAMMATICAL, Facts, ordered_attribute, said
from operators.state.operator_state import OperatorState
from operators.state.state_schema import StateSchema
from punct_ns.errors import UsageError
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, Term
from punct_ns.slices import POSITION, condition, in_utc, is_inline, matching, not_matching, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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

    def marked(self, tuples: DataFrame, state: OperatorState) -> DataFrame:
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

    def asks(self, schema: Schema) -> dict[str, str]:
        """How many tuples end a group."""
        return {"ending": f"count_if({_ENDS} AND {ASIDE} IS NULL)"}

    def learn(self, marked: DataFrame | None, facts: Facts, state: OperatorState) -> list[Punctuation]:
        """The groups of the tuples that end theirs."""
        if marked is None or not facts["ending"]:
            return []
        schema = state.inputs[0]
        ending = marked.where(f"{_ENDS} AND {ASIDE} IS NULL").select(*map(quoted, self.attributes))
        columns = in_utc(ending.toArrow()).columns
        return [self._of(values, schema) for values in zip(*(c.to_pylist() for c in columns), strict=True)]

    def broken(self, values: Facts, marked: DataFrame, schema: Schema) -> tuple[Punctuation, str]:
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
