"""The chained purge: which tuples of an input can be in no result that is still to come.

A row is a tuple of the input, by its join attributes, with kept tuples of the inputs that it has reached, by theirs.
An input is reached by a row when its punctuations cover all that the row asks of it; then the row becomes one row for
each kept tuple that joins it, or is dead where none does, since none will come. A tuple is purged once each of its rows
has reached all inputs, or is dead. Each row takes its own way: one that is not covered at a step goes on to the next,
so that a chain never hangs on punctuations that do not come again.

Source: Li et al. 2006, §3.2.1 (Tₜ[Υ], Pₜ[S]) and §4.2, for punctuations of any patterns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from operators.joins.punctuation_graph import PunctuationGraph, Reach, Shape
from operators.state.behaviour import Tuples
from operators.state.row_joins import HASHED
from punct_ns.projection import project
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.slices import marked, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_PARTED = 4
"""Join attributes of one input up to which covers by several punctuations are looked for among some of them."""

_REACHED, _COVERED, _THERE = map(own, ("reached", "covered", "there"))


def column(key: int) -> str:
    """What the values of a class are called."""
    return own(f"k{key}")


def shapes(closed: PunctuationSet, keys: Sequence[int]) -> frozenset[Shape]:
    """The shapes of punctuations over an input's join attributes, which are the given classes."""
    if closed.is_all:
        return frozenset([frozenset()])
    several = {entry.restricted for entry in closed.several()}
    alone = {(place,) for place, single in closed.singles.items() if not single.is_empty}
    return frozenset(frozenset(keys[place] for place in places) for places in several | alone)


def partial_projections(closed: PunctuationSet, new: Sequence[Punctuation]) -> list[Punctuation]:
    """What new punctuations bring about for some of the attributes, whatever the others are.

    A row that does not know all that an input's punctuations speak of may still be covered by several together.
    """
    schema = closed.schema
    if not 1 < len(schema) <= MOST_PARTED or not new or not closed.several():
        return []
    found: list[Punctuation] = []
    for size in range(1, len(schema)):
        for names in combinations(schema.names, size):
            some = Schema(tuple(schema.attribute(name) for name in names))
            holding = project(closed, names, some, new=new)
            found += (Punctuation.of(schema, dict(zip(names, p.patterns, strict=True))) for p in holding)
    return found


@dataclass(frozen=True, slots=True)
class ChainedPurge:
    """The steps for one input, over the tuples that all inputs keep, and what their punctuations say of the classes."""

    graph: PunctuationGraph
    root: int
    steps: Sequence[Reach]
    kept: Mapping[int, Tuples]
    closed: Mapping[int, PunctuationSet]

    def purged(self, tuples: Tuples) -> Tuples:
        """The join attributes of those of the input's tuples that can be in no result to come; once each."""
        from pyspark.sql import functions as F

        names = self.graph.keys(self.root)
        rows = self._begun(tuples.frame)
        for number in range(len(self.steps)):
            rows = self._stepped(rows, number)
        done = F.expr(f"bool_and({_REACHED} = {self._everything})").alias(_COVERED)
        ends = rows.groupBy(*map(column, names)).agg(done).where(_COVERED)
        purged = ends.select(*(F.col(column(key)).alias(name) for key, name in names.items()))
        return Tuples(purged, tuples.at_most, exact=False)

    @property
    def _everything(self) -> int:
        return (1 << self.graph.inputs) - 1

    def _begun(self, frame: DataFrame) -> DataFrame:
        """Rows of join attributes; what later inputs will tell is null so far."""
        names = self.graph.keys(self.root)
        own = [f"{quoted(name)} AS {column(key)}" for key, name in names.items()]
        other = {key: step.input for step in self.steps for key in self.graph.keys(step.input) if key not in names}
        unknown = [f"CAST(NULL AS {self._type(input_, key)}) AS {column(key)}" for key, input_ in other.items()]
        rows = frame.selectExpr(*own, *unknown, f"{1 << self.root} AS {_REACHED}")
        # One row may become many only where an input tells more than is known.
        return rows.dropDuplicates() if other else rows

    def _type(self, input_: int, key: int) -> str:
        return self.closed[input_].schema[column(key)].domain.type

    def _stepped(self, rows: DataFrame, number: int) -> DataFrame:
        """The rows after one step; what no later step asks for is dropped."""
        from pyspark.sql import functions as F

        step, later = self.steps[number], self.steps[number + 1 :]
        bit = 1 << step.input
        asked = f"{_COVERED} AND {_REACHED} & {bit} = 0 AND {column(step.key)} IS NOT NULL"
        rows = marked(rows, list(self.closed[step.input]), _COVERED).withColumn(_COVERED, F.expr(asked))
        needed = {*self.graph.keys(self.root), *(key for each in later for key in self.graph.keys(each.input))}
        if not step.joins:
            return self._noted(rows, f"{_REACHED} | {bit}", needed)
        if step.input not in self.kept:
            return self._noted(rows, str(self._everything), needed)
        joined = self._joined(rows, step)
        noted = self._noted(joined, f"IF({_THERE} IS NULL, {self._everything}, {_REACHED} | {bit})", needed, step.input)
        return noted if needed.issuperset(self._told(number)) else noted.dropDuplicates()

    def _told(self, number: int) -> set[int]:
        """The classes that are known, perhaps, after a step."""
        inputs = [self.root, *(step.input for step in self.steps[: number + 1])]
        return {key for input_ in inputs for key in self.graph.keys(input_)}

    def _joined(self, rows: DataFrame, step: Reach) -> DataFrame:
        """Each row that is covered with each kept tuple that joins it; without, where none does."""
        from pyspark.sql import functions as F

        kept, names = self.kept[step.input], self.graph.keys(step.input)
        told = [f"{quoted(name)} AS _t{key}" for key, name in names.items()]
        there = kept.frame.selectExpr(*told, f"true AS {_THERE}").dropDuplicates()
        sure = {step.key, *self.graph.keys(self.root)}
        same = [
            f"{column(key)} = _t{key}" if key in sure else f"({column(key)} IS NULL OR {column(key)} = _t{key})"
            for key in names
        ]
        on = F.expr(" AND ".join([_COVERED, *same]))
        return rows.join(F.broadcast(there) if kept.at_most <= HASHED else there, on, "left")

    def _noted(self, rows: DataFrame, reached: str, needed: set[int], joined: int | None = None) -> DataFrame:
        """The rows with what they have reached and know now."""
        known = self.graph.keys(joined) if joined is not None else {}
        own = self.graph.keys(self.root)
        columns = [
            f"coalesce({column(key)}, _t{key}) AS {column(key)}" if key in known and key not in own else column(key)
            for key in sorted(needed)
        ]
        return rows.selectExpr(*columns, f"IF({_COVERED}, {reached}, {_REACHED}) AS {_REACHED}")
