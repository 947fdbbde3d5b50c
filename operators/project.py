"""project: some attributes, renamed, copied, or computed; duplicates stay.

Meaning:    π_E(R) = {| (e₁(t), …, eₙ(t)) | t ∈ R |}
Step:       π_E(new)
Pass:       –
Propagate:  those with a wildcard at every attribute removed; several that together cover the domains of the
            attributes removed count as one; a wildcard at every computed attribute.
Keep:       punctuations only.
Safe when:  always.
Source:     Tucker et al. 2003, Table 3 (projPs) and §5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from operators.behaviour import Slice, Tuples
from operators.completion import completed
from operators.state import OperatorState
from punct_ns.pattern import WILDCARD, Pattern
from punct_ns.punctuation import Punctuation
from punct_ns.recast import recast_pattern
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import POSITION, quoted


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute of the output: Spark SQL over the input's attributes.

    `copy_of` names the input attribute that it is, unchanged or widened without loss; None where it is computed.
    """

    attribute: Attribute
    expression: str
    copy_of: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """The columns, of each tuple of the input."""

    columns: tuple[Column, ...]

    def schema(self, *inputs: Schema) -> Schema:
        """The columns' attributes."""
        return Schema(tuple(column.attribute for column in self.columns))

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """Those whose attributes are all copied, in the output's names."""
        names = {column.copy_of.lower(): column.attribute.name for column in self.columns if column.copy_of}
        return tuple(renamed for scheme in inputs[0] if (renamed := scheme.renamed(names)) is not None)

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """The columns of the new tuples, and their position where it is known."""
        new = inputs[0].tuples
        if new is None:
            return None
        columns = [f"{column.expression} AS {quoted(column.attribute.name)}" for column in self.columns]
        if POSITION in new.frame.columns:
            columns.append(POSITION)
        return Tuples(new.frame.selectExpr(*columns), new.at_most, new.exact)

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Nothing: project does not block."""
        return None

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """What newly holds for the copied attributes, in the output's terms."""
        given = state.inputs[0]
        copied = list(dict.fromkeys(given.attribute(c.copy_of).name for c in self.columns if c.copy_of))
        output = self.schema(given)
        found = completed(inputs[0].punctuations, copied, state)
        return [written for p in found for written in self._written(p, output)]

    def _written(self, punctuation: Punctuation, output: Schema) -> list[Punctuation]:
        """The punctuation over the output; several where an attribute is copied to several places: each says it all."""
        places = [
            [i for i, c in enumerate(self.columns) if c.copy_of and c.copy_of.lower() == attribute.name.lower()]
            for attribute in punctuation.schema
        ]
        result = []
        for chosen in product(*(places[i] for i in punctuation.restricted)):
            patterns: list[Pattern] = [WILDCARD] * len(self.columns)
            for i, place in zip(punctuation.restricted, chosen, strict=True):
                patterns[place] = recast_pattern(
                    punctuation.patterns[i], punctuation.schema[i].domain, output[place].domain
                )
            result.append(Punctuation(output, tuple(patterns)))
        return result

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Punctuations only."""
