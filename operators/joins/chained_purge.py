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

from operators.joins.chain_bounds import ChainBounds
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
    """The shapes of punctuations over what an input is asked for, which are the given classes and links."""
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
    """The steps for one input, over the tuples that all inputs keep, and what they have said of what they are asked.

    `bounds` are those between the inputs; `answers` what inputs have said, over their classes and, where others bound
    them, the values of these bounds (`terms`).
    """

    graph: PunctuationGraph
    bounds: ChainBounds
    root: int
    steps: Sequence[Reach]
    kept: Mapping[int, Tuples]
    answers: Mapping[int, Sequence[Punctuation]]
    terms: Mapping[int, Schema]

    def purged(self, tuples: Tuples) -> Tuples:
        """Those of the input's tuples that can be in no result to come, by what tells them (`told_by`); once each."""
        from pyspark.sql import functions as F

        rows = self._begun(tuples.frame)
        for number in range(len(self.steps)):
            rows = self._stepped(rows, number)
        done = F.expr(f"bool_and({_REACHED} = {self._everything})").alias(_COVERED)
        ends = rows.groupBy(*self._identity).agg(done).where(_COVERED)
        purged = ends.select(*(F.col(name).alias(given) for name, given in self._identity.items()))
        return Tuples(purged, tuples.at_most, exact=False)

    @property
    def told_by(self) -> list[str]:
        """The attributes by which the input's tuples differ in the chain: its join attributes, and what sets bounds."""
        return list(self._identity.values())

    @property
    def _identity(self) -> dict[str, str]:
        keys = {column(key): name for key, name in self.graph.keys(self.root).items()}
        taken = {name.lower() for name in keys.values()}
        needs = [name for name in self.bounds.needs(self.root) if name.lower() not in taken]
        return {**keys, **{own(f"n{number}"): name for number, name in enumerate(needs)}}

    @property
    def _everything(self) -> int:
        return (1 << self.graph.inputs) - 1

    def _tells(self, input_: int) -> dict[str, str]:
        """The columns that an input's tuples make known, with their expressions: of its classes, and of its bounds."""
        classes = {column(key): quoted(name) for key, name in self.graph.keys(input_).items()}
        return {**classes, **{name: bound.value for name, bound in self.bounds.values(input_).items()}}

    def _asks(self, input_: int) -> set[str]:
        """The columns in which an input is asked."""
        return set(self.terms[input_].names)

    def _begun(self, frame: DataFrame) -> DataFrame:
        """Rows of what the tuples know; what later inputs will tell is null so far."""
        asked = {a.name: a.domain.type for step in self.steps for a in self.terms[step.input]}
        known = {name: value for name, value in self._tells(self.root).items() if name in asked}
        own_ = {**{name: quoted(given) for name, given in self._identity.items()}, **known}
        other = {name: type_ for name, type_ in asked.items() if name not in own_}
        mine = [f"{value} AS {name}" for name, value in own_.items()]
        unknown = [f"CAST(NULL AS {type_}) AS {name}" for name, type_ in other.items()]
        rows = frame.selectExpr(*mine, *unknown, f"{1 << self.root} AS {_REACHED}")
        # One row may become many only where an input tells more than is known.
        return rows.dropDuplicates() if other else rows

    def _stepped(self, rows: DataFrame, number: int) -> DataFrame:
        """The rows after one step; what no later step asks for is dropped."""
        from pyspark.sql import functions as F

        step, later = self.steps[number], self.steps[number + 1 :]
        bit = 1 << step.input
        asked = f"{_COVERED} AND {_REACHED} & {bit} = 0 AND {column(step.key)} IS NOT NULL"
        rows = marked(rows, self.answers[step.input], _COVERED).withColumn(_COVERED, F.expr(asked))
        needed = {*self._identity, *(name for each in later for name in self._asks(each.input))}
        if not step.joins:
            return self._noted(rows, f"{_REACHED} | {bit}", needed)
        if step.input not in self.kept:
            return self._noted(rows, str(self._everything), needed)
        joined = self._joined(rows, step, needed)
        noted = self._noted(joined, f"IF({_THERE} IS NULL, {self._everything}, {_REACHED} | {bit})", needed, step.input)
        return noted if needed.issuperset(self._told(number)) else noted.dropDuplicates()

    def _told(self, number: int) -> set[str]:
        """The columns that are known, perhaps, after a step."""
        inputs = [self.root, *(step.input for step in self.steps[: number + 1])]
        return {name for input_ in inputs for name in self._tells(input_)}

    def _joined(self, rows: DataFrame, step: Reach, needed: set[str]) -> DataFrame:
        """Each row that is covered with each kept tuple that joins it; without, where none does."""
        from pyspark.sql import functions as F

        kept, keys = self.kept[step.input], self.graph.keys(step.input)
        classes = set(map(column, keys))
        told = [f"{v} AS _t{name}" for name, v in self._tells(step.input).items() if name in classes | needed]
        there = kept.frame.selectExpr(*told, f"true AS {_THERE}").dropDuplicates()
        sure = {step.key, *self.graph.keys(self.root)}
        same = [
            f"{column(key)} = _t{column(key)}"
            if key in sure
            else f"({column(key)} IS NULL OR {column(key)} = _t{column(key)})"
            for key in keys
        ]
        on = F.expr(" AND ".join([_COVERED, *same]))
        return rows.join(F.broadcast(there) if kept.at_most <= HASHED else there, on, "left")

    def _noted(self, rows: DataFrame, reached: str, needed: set[str], joined: int | None = None) -> DataFrame:
        """The rows with what they have reached and know now."""
        known = self._tells(joined) if joined is not None else {}
        own_ = {*self._identity, *self._tells(self.root)}
        columns = [
            f"coalesce({name}, _t{name}) AS {name}" if name in known and name not in own_ else name
            for name in sorted(needed)
        ]
        return rows.selectExpr(*columns, f"IF({_COVERED}, {reached}, {_REACHED}) AS {_REACHED}")
