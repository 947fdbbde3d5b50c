"""distinct: each tuple once (the papers' dupelim).

Meaning:    δ(R) = {t | t ∈ R}; null equals null, as in SQL's DISTINCT.
Step:       δ(new − kept)
Pass:       –
Propagate:  all.
Keep:       {t ∈ kept ∪ new | no p ∈ P matches t}
Safe when:  the schemes cover every tuple with finitely many punctuations.
Source:     Tucker et al. 2003, §4.2, Theorem 1, Tables 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.behaviour import Slice, Tuples
from operators.state import OperatorState
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HASHED = 500_000
"""Kept tuples up to which they are broadcast to the new ones; beyond it both are shuffled."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each tuple of the input when it comes for the first time."""

    def schema(self, *inputs: Schema) -> Schema:
        """The input's."""
        return inputs[0]

    def schemes(self, *inputs: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The input's."""
        return inputs[0]

    def step(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """New tuples that are not kept, once each."""
        new = inputs[0].tuples
        if new is None:
            return None
        attributes = state.inputs[0]
        kept = state.kept("tuples", attributes)
        once = new.frame.select(*map(quoted, attributes.names)).dropDuplicates()
        if not kept.is_empty:
            once = _without(once, kept.frame(), attributes.names, broadcast=kept.rows <= HASHED)
        return kept.append(Tuples(once, new.at_most))

    def pass_(self, inputs: Sequence[Slice], state: OperatorState) -> Tuples | None:
        """Nothing: distinct does not block."""
        return None

    def propagate(self, inputs: Sequence[Slice], state: OperatorState) -> Sequence[Punctuation]:
        """All."""
        return inputs[0].punctuations

    def keep(self, inputs: Sequence[Slice], state: OperatorState) -> None:
        """Purge what can have no more duplicates."""
        state.kept("tuples", state.inputs[0]).purge(inputs[0].punctuations)


def _without(new: DataFrame, kept: DataFrame, names: Sequence[str], *, broadcast: bool) -> DataFrame:
    from pyspark.sql import functions as F

    others = kept.select(*(F.col(quoted(name)).alias(f"_kept{i}") for i, name in enumerate(names)))
    same = " AND ".join(f"{quoted(name)} <=> _kept{i}" for i, name in enumerate(names))
    return new.join(F.broadcast(others) if broadcast else others, F.expr(same), "left_anti")
