"""Chained purge in a join of many inputs: which tuples of an input can be in no result that is still to come.

The rows of few tuples are followed by this process, those of many by the engine.

A row is a tuple of the input, by its join attributes, with kept tuples of the inputs that it has reached, by theirs.
An input is reached by a row when its punctuations cover all that the row waits for of it; then the row becomes one row
for each kept tuple that joins it, or is dead where none does, since none will come. A tuple is purged once each of its
rows has reached all inputs, or is dead. Each row takes its own way: one that is not covered at a step goes on to the
next, so that a chain never hangs on punctuations that do not come again.

*Bounds*: `b.t BETWEEN a.t AND a.t + 5` bounds for a tuple of `a` the tuples of `b` that it waits for, and the other way
around. A chain that has reached `a` knows the values of its bounds, and waits for no more of `b` than what they leave.
What `b` closes of its classes and of what is bounded of it is translated into the terms of these values, as in a join
of two (`xmlstream.operators.joins.equi_join`). Only comparisons of two inputs are bounds, and none of an attribute that
is joined on.

What a kept row waits for at run time is read off the graph: one input after the other, along one order; others may
purge it sooner, but never later.

Source: Li et al. 2006, §3.2.1 (Tₜ[Υ], Pₜ[S]) and §4.2, for punctuations of any patterns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.bounds import Bound, bounds_between
from xmlstream.operators.frames.expression import Column, Copy, Equal, Expression, all_of, as_columns
from xmlstream.operators.frames.held import COMPARED, FEW
from xmlstream.operators.frames.matching import flagged
from xmlstream.operators.joins.equal_attributes import narrower
from xmlstream.operators.joins.equi_join import end_of
from xmlstream.operators.joins.punctuation_graph import Link, PunctuationGraph, Reach, Shape
from xmlstream.operators.required_punctuations import Held, Row, Want, Way, whole
from xmlstream.operators.state.completion import closed_so_far
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import HASHED, Tuples
from xmlstream.punct_ns.closed_intervals import End, beyond, contained
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.pattern import Constant, matches
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.recast import project
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import arrow_type, in_utc, own, quoted

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


@dataclass(frozen=True)
class ChainBounds:
    """All bounds between the inputs of a join."""

    pairs: tuple[Link, ...] = ()

    @staticmethod
    def between(residual: str | None, graph: PunctuationGraph, inputs: Sequence[Schema]) -> ChainBounds:
        """The bounds in a condition on combinations, beside the equalities of a graph."""
        if residual is None:
            return NO_CHAIN_BOUNDS
        found = []
        for i, j in permutations(range(len(inputs)), 2):
            on = [tuple(graph.keys(input_).values()) for input_ in (i, j)]
            equal = [
                {name.lower(): own for own, others in graph.equal_to(input_).items() for name in others}
                for input_ in (i, j)
            ]
            bounds, _ = bounds_between(residual, on, (inputs[i], inputs[j]), equal)
            if bounds:
                found.append(Link(i, j, bounds))
        return ChainBounds(tuple(found))

    def needs(self, input_: int) -> tuple[str, ...]:
        """The attributes from which an input's tuples set bounds; a tuple with null in one has no partner."""
        return tuple(
            dict.fromkeys(name for p in self.pairs if p.bounding == input_ for b in p.bounds for name in b.needs)
        )

    def bounded(self, input_: int) -> tuple[str, ...]:
        """The attributes of an input that bounds of other inputs restrict."""
        return tuple(dict.fromkeys(b.attribute for p in self.pairs if p.bounded == input_ for b in p.bounds))

    def values(self, input_: int) -> dict[str, Bound]:
        """The columns for the bounds that an input's tuples set, with these bounds."""
        known = {(b.value, b.type): b for p in self.pairs if p.bounding == input_ for b in p.bounds}
        return {own(f"v{input_}_{number}"): bound for number, bound in enumerate(known.values())}

    def columns_on(self, input_: int) -> dict[str, int]:
        """The columns of the bounds on an input, each with the number of its pair."""
        return {
            name: number
            for number, pair in enumerate(self.pairs)
            if pair.bounded == input_
            for name in self._columns(pair)
        }

    def _columns(self, pair: Link) -> list[str]:
        """The columns of a pair's bounds, in order."""
        named = {(bound.value, bound.type): name for name, bound in self.values(pair.bounding).items()}
        return [named[bound.value, bound.type] for bound in pair.bounds]

    def terms(self, input_: int, classes: Schema) -> Schema:
        """The terms of an input: its classes, and the values of the bounds on it."""
        types = {name: bound.type for pair in self.pairs for name, bound in self.values(pair.bounding).items()}
        columns = [Attribute(name, Domain(types[name])) for name in self.columns_on(input_)]
        return Schema((*classes, *columns))

    def punctuation_sets(self, classes: Mapping[int, Schema]) -> dict[str, Schema]:
        """The sets of punctuations in the terms of each bounded input, by name."""
        inputs = dict.fromkeys(pair.bounded for pair in self.pairs)
        return {f"bounded-{i}": self.terms(i, classes[i]) for i in inputs}

    def add_translated(
        self, input_: int, new: Sequence[Punctuation], graph: PunctuationGraph, state: OperatorState
    ) -> None:
        """Translates an input's new punctuations into its terms, and adds them to the state."""
        if not new or not self.bounded(input_):
            return
        known, held = closed_so_far(state, input_), state.punctuations(f"bounded-{input_}")
        schema, places = held.set.schema, {i: i for i in range(len(graph.keys(input_)))}
        found: list[Punctuation] = []
        for pair in self.pairs:
            if pair.bounded == input_:
                ends = self._ends(pair, schema, graph, state)
                found += known.following(new, partial(contained, places=places, ends=ends, schema=schema))
        held.absorb(found)

    def answers(self, input_: int, graph: PunctuationGraph, state: OperatorState) -> list[Punctuation]:
        """All punctuations of an input in its terms, and those that no tuple of the input can match anyway."""
        if not self.bounded(input_):
            return list(closed_so_far(state, input_).set)
        return [*state.punctuations(f"bounded-{input_}").set, *self.never(input_, graph, state)]

    def never(self, input_: int, graph: PunctuationGraph, state: OperatorState) -> Iterator[Punctuation]:
        """Punctuations that no tuple of an input can match, for bounded attributes with a declared domain.

        Without a declared domain there are none: bounds beyond the values of a type are rare.
        """
        schema = state.punctuations(f"bounded-{input_}").set.schema
        known = closed_so_far(state, input_).set.schema
        for pair in self.pairs:
            if pair.bounded == input_:
                for at, ends in self._ends(pair, schema, graph, state).items():
                    if (known[at].domain.low, known[at].domain.high) != (None, None):
                        yield from beyond(ends, schema, known[at].domain)

    def _ends(self, pair: Link, schema: Schema, graph: PunctuationGraph, state: OperatorState) -> dict[int, list[End]]:
        """The ends of what a tuple waits for, by the bounded attribute's place among the input's closed ones."""
        bounded, before = self.bounded(pair.bounded), len(graph.keys(pair.bounded))
        found: dict[int, list[End]] = {before + bounded.index(b.attribute): [] for b in pair.bounds}
        # An attribute that only other pairs bound has no end for this pair: it must be closed as a whole.
        for at in range(before, before + len(bounded)):
            found.setdefault(at, [])
        for bound, name in zip(pair.bounds, self._columns(pair), strict=True):
            end = end_of(bound, schema.index(name), schema, state.inputs[pair.bounded], state)
            found[before + bounded.index(bound.attribute)].append(end)
        return found


NO_CHAIN_BOUNDS = ChainBounds()


MOST_PARTED = 4
"""The number of join attributes of an input up to which covers by several punctuations are sought for some of them."""

_REACHED, _COVERED, _THERE = map(own, ("reached", "covered", "there"))


def class_column(key: int) -> str:
    """The name of the column with the values of a class."""
    return own(f"k{key}")


def shapes(closed: PunctuationSet, keys: Sequence[int]) -> frozenset[Shape]:
    """The shapes of an input's punctuations over the given classes and links."""
    if closed.is_all:
        return frozenset([frozenset()])
    several = {entry.restricted for entry in closed.several()}
    alone = {(place,) for place, single in closed.singles.items() if not single.is_empty}
    return frozenset(frozenset(keys[place] for place in places) for places in several | alone)


def partial_projections(closed: PunctuationSet, new: Sequence[Punctuation]) -> list[Punctuation]:
    """The punctuations on some of the attributes that new punctuations complete, whatever the others' values.

    Several punctuations together may cover a row that does not know all attributes that they restrict.
    """
    schema = closed.schema
    if not 1 < len(schema) <= MOST_PARTED or not new or not closed.several():
        return []
    found: list[Punctuation] = []
    for size in range(1, len(schema)):
        for names in combinations(schema.names, size):
            some = schema.only(names)
            holding = project(closed, names, some, new=new)
            found += (Punctuation.of(schema, dict(zip(names, p.patterns, strict=True))) for p in holding)
    return found


_Key = tuple[Value | None, ...]
"""The values of an input's classes, or of all classes, null where they are not known."""

_Row = tuple[_Key, _Key, int]
"""A row of a chain: the key of its tuple, the values of all classes, and the inputs that it has reached, as bits."""


class FewValues:
    """The values of classes that few tuples have, and which of them punctuations cover; for the chains of one purge.

    `answers` are the punctuations of inputs over their `terms`, as in `ChainedPurge`.
    """

    def __init__(
        self,
        graph: PunctuationGraph,
        bounds: ChainBounds,
        answers: Mapping[int, Sequence[Punctuation]],
        terms: Mapping[int, Schema],
    ) -> None:
        """Values for these chains; none if there are bounds, or classes whose values Python compares otherwise."""
        self._graph, self._answers, self._terms = graph, answers, terms
        self.is_plain = not bounds.pairs and all(a.domain.type in COMPARED for of in terms.values() for a in of)
        self._kept: dict[int, frozenset[_Key] | None] = {}
        self._covered: dict[tuple[int, _Key], bool] = {}

    def of(self, input_: int, tuples: Tuples) -> frozenset[_Key] | None:
        """The different values of tuples of an input; None if the tuples are many or not in this process."""
        names = self._graph.keys(input_).values()
        table = tuples.frame.select(*names).here() if tuples.at_most <= FEW else None
        if table is None:
            return None
        pairs = zip(in_utc(table).columns, self._terms[input_], strict=True)
        columns = [[a.domain.normal(value) for value in column.to_pylist()] for column, a in pairs]
        return frozenset(zip(*columns, strict=True))

    def kept(self, input_: int, tuples: Tuples) -> frozenset[_Key] | None:
        """The same for all that an input keeps, read once."""
        if input_ not in self._kept:
            self._kept[input_] = self.of(input_, tuples)
        return self._kept[input_]

    def forget(self, input_: int) -> None:
        """Has what an input keeps read again, since some of it was purged."""
        self._kept.pop(input_, None)

    def is_covered(self, input_: int, key: _Key) -> bool:
        """Whether a punctuation of an input matches the values of its classes; none that restricts matches null."""
        known = input_, key
        if known not in self._covered:
            self._covered[known] = any(
                all(matches(p.patterns[i], key[i]) for i in p.restricted) for p in self._answers[input_]
            )
        return self._covered[known]


@dataclass(frozen=True, slots=True)
class ChainedPurge:
    """The chain of steps for one input, over the tuples that all inputs keep and the punctuations that they have.

    `bounds` are the bounds between the inputs. `answers` are the punctuations of inputs over their `terms`: their
    classes and the values of the bounds on them. `few` has the values of classes where tuples are few.
    """

    graph: PunctuationGraph
    bounds: ChainBounds
    root: int
    steps: Sequence[Reach]
    kept: Mapping[int, Tuples]
    answers: Mapping[int, Sequence[Punctuation]]
    terms: Mapping[int, Schema]
    few: FewValues

    def purged(self, tuples: Tuples) -> Tuples:
        """The input's tuples that can be in no result to come, by `determined_by`, without duplicates."""
        if (found := self._purged_here(tuples)) is not None:
            known = list(zip(self.determined_by, self.terms[self.root], strict=True))
            columns = zip(*found, strict=True) if found else ([] for _ in known)
            arrays = [pa.array(of, arrow_type(a.domain)) for of, (_, a) in zip(columns, known, strict=True)]
            ddl = ", ".join(f"{quoted(name)} {a.domain.type}" for name, a in known)
            rows = tuples.frame.engine.rows(pa.table(arrays, self.determined_by), ddl)
            return Tuples(rows, len(found), computed=True)
        rows = self._begun(tuples.frame)
        for number in range(len(self.steps)):
            rows = self._stepped(rows, number)
        done = f"bool_and({_REACHED} = {self._everything})"
        ends = rows.group_by(tuple(self._identity), {_COVERED: done}).where(_COVERED)
        purged = ends.renamed({attribute: name for name, attribute in self._identity.items()})
        return tuples.some(purged)

    def _purged_here(self, tuples: Tuples) -> list[_Key] | None:
        """The same, as keys, where tuples are few; None if they are not, or stand for many rows."""
        if not self.few.is_plain or (own_ := self.few.of(self.root, tuples)) is None:
            return None
        mine, whole = list(self.graph.keys(self.root)), range(len(self.graph.classes))
        begun = (dict(zip(mine, key, strict=True)) for key in own_)
        rows = {(tuple(map(known.get, mine)), tuple(map(known.get, whole)), 1 << self.root) for known in begun}
        for number, step in enumerate(self.steps):
            needed = {key for each in self.steps[number + 1 :] for key in self.graph.keys(each.input)}
            after = self._stepped_here(rows, step)
            if after is None or len(after) > FEW:
                return None
            rows = {(k, tuple(v if i in needed else None for i, v in enumerate(a)), r) for k, a, r in after}
        left = {key for key, _, reached in rows if reached != self._everything}
        return [key for key in dict.fromkeys(key for key, _, _ in rows) if key not in left]

    def _stepped_here(self, rows: set[_Row], step: Reach) -> set[_Row] | None:
        """Takes one step for few rows; None if the input keeps many."""
        bit, classes = 1 << step.input, list(self.graph.keys(step.input))
        there: dict[Value | None, list[_Key]] | None = None
        if step.joins and step.input in self.kept:
            if (kept := self.few.kept(step.input, self.kept[step.input])) is None:
                return None
            there, at = {}, classes.index(step.key)
            for key in kept:
                there.setdefault(key[at], []).append(key)
        found: set[_Row] = set()
        for row in rows:
            of, known, reached = row
            key = tuple(known[i] for i in classes)
            if reached & bit or known[step.key] is None or not self.few.is_covered(step.input, key):
                found.add(row)
            elif not step.joins:
                found.add((of, known, reached | bit))
            else:
                some = [
                    partner
                    for partner in (there or {}).get(known[step.key], ())
                    if all(own_ in (None, other) for own_, other in zip(key, partner, strict=True))
                ]
                for partner in some:
                    more = dict(zip(classes, partner, strict=True))
                    found.add((of, tuple(more.get(i, v) for i, v in enumerate(known)), reached | bit))
                if not some:
                    found.add((of, known, self._everything))
        return found

    @property
    def determined_by(self) -> list[str]:
        """The attributes that distinguish the input's tuples in the chain: its join attributes, and those in bounds."""
        return list(self._identity.values())

    @property
    def _identity(self) -> dict[str, str]:
        keys = {class_column(key): name for key, name in self.graph.keys(self.root).items()}
        taken = {name.lower() for name in keys.values()}
        needs = [name for name in self.bounds.needs(self.root) if name.lower() not in taken]
        return {**keys, **{own(f"n{number}"): name for number, name in enumerate(needs)}}

    @property
    def _everything(self) -> int:
        return (1 << self.graph.inputs) - 1

    def _columns_of(self, input_: int) -> dict[str, Expression]:
        """The columns that an input's tuples add to a row, with their expressions: its classes and its bounds."""
        classes = {class_column(key): Copy(name) for key, name in self.graph.keys(input_).items()}
        return {**classes, **{name: _value(bound) for name, bound in self.bounds.values(input_).items()}}

    def _begun(self, frame: Frame) -> Frame:
        """The first rows: the columns that the tuples have; those that later inputs add are null."""
        terms = {a.name: a.domain.type for step in self.steps for a in self.terms[step.input]}
        known = {name: value for name, value in self._columns_of(self.root).items() if name in terms}
        own_ = {**{name: Copy(attribute) for name, attribute in self._identity.items()}, **known}
        other = {name: type_ for name, type_ in terms.items() if name not in own_}
        unknown = {name: f"CAST(NULL AS {type_})" for name, type_ in other.items()}
        rows = frame.select(*as_columns({**own_, **unknown, _REACHED: str(1 << self.root)}))
        # One row may become many only if an input adds columns.
        return rows.distinct() if other else rows

    def _stepped(self, rows: Frame, number: int) -> Frame:
        """Takes one step for all rows; drops the columns that no later step needs."""
        step, later = self.steps[number], self.steps[number + 1 :]
        bit = 1 << step.input
        is_covered = f"{_COVERED} AND {_REACHED} & {bit} = 0 AND {class_column(step.key)} IS NOT NULL"
        rows = flagged(rows, self.answers[step.input], _COVERED).with_column(_COVERED, is_covered)
        needed = {*self._identity, *(name for each in later for name in self.terms[each.input].names)}
        if not step.joins:
            return self._advanced(rows, f"{_REACHED} | {bit}", needed)
        if step.input not in self.kept:
            return self._advanced(rows, str(self._everything), needed)
        joined = self._joined(rows, step, needed)
        after = self._advanced(
            joined, f"IF({_THERE} IS NULL, {self._everything}, {_REACHED} | {bit})", needed, step.input
        )
        return after if needed.issuperset(self._known_after(number)) else after.distinct()

    def _known_after(self, number: int) -> set[str]:
        """The columns whose values a row may determine after a step."""
        inputs = [self.root, *(step.input for step in self.steps[: number + 1])]
        return {name for input_ in inputs for name in self._columns_of(input_)}

    def _joined(self, rows: Frame, step: Reach, needed: set[str]) -> Frame:
        """Each covered row with each kept tuple that joins it; the other rows once, without a tuple."""
        kept, keys = self.kept[step.input], self.graph.keys(step.input)
        classes = set(map(class_column, keys))
        columns = {f"_t{name}": v for name, v in self._columns_of(step.input).items() if name in classes | needed}
        there = kept.frame.select(*as_columns({**columns, _THERE: "true"})).distinct()
        sure = {step.key, *self.graph.keys(self.root)}
        same = [
            Equal(class_column(key), f"_t{class_column(key)}")
            if key in sure
            else f"{class_column(key)} IS NULL OR {class_column(key)} = _t{class_column(key)}"
            for key in keys
        ]
        return rows.join(there, all_of(_COVERED, *same), "left", "right" if kept.at_most <= HASHED else None)

    def _advanced(self, rows: Frame, reached: str, needed: set[str], joined: int | None = None) -> Frame:
        """The rows with the inputs that they have reached, and the values that they now know."""
        known = self._columns_of(joined) if joined is not None else {}
        own_ = {*self._identity, *self._columns_of(self.root)}
        columns = [
            Column(name, f"coalesce({name}, _t{name})") if name in known and name not in own_ else name
            for name in sorted(needed)
        ]
        return rows.select(*columns, Column(_REACHED, f"IF({_COVERED}, {reached}, {_REACHED})"))


def _value(bound: Bound) -> Expression:
    return bound.value if bound.plain is None else Copy(bound.plain)


_EACH = 20
"""The number of punctuations up to which an input's matching rows are looked up one by one."""


def partners(graph: PunctuationGraph, i: int, row: Row, held: Held, inputs: Sequence[Schema]) -> Way:
    """The way that closes all partners of an input's row: input by input, by the values of kept partners."""
    chains: list[dict[int, Value | None]] = [{key: row[name] for key, name in graph.keys(i).items()}]
    wants: dict[Want, None] = {}
    for j in graph.order(i):
        names = graph.keys(j)
        shared = [{key: chain[key] for key in names if key in chain} for chain in chains]
        ps = [Punctuation.of(inputs[j], {names[key]: Constant(v) for key, v in known.items()}) for known in shared]
        wants |= dict.fromkeys((j, p) for p in ps)
        like = dict.fromkeys(ps) if len(ps) <= _EACH else [Punctuation.all(inputs[j])]
        partners_of = [held.rows(f"input-{j}", tuple(names.values()), p) for p in like]
        if None in partners_of:
            return whole(*inputs)
        kept = [{key: partner[name] for key, name in names.items()} for rows in partners_of for partner in rows or ()]
        longer = (
            chain | partner
            for chain, known in zip(chains, shared, strict=True)
            for partner in kept
            if known.items() <= partner.items()
        )
        chains = list({tuple(sorted(chain.items())): chain for chain in longer}.values())
    return tuple(wants)


def ways_to(p: Punctuation, graph: PunctuationGraph, held: Held, inputs: Sequence[Schema]) -> list[Way]:
    """The ways to a punctuation of the output: an input's punctuation, and those that purge its matching tuples.

    An input with too many such tuples gives no way.
    """
    ways: list[Way] = []
    for i, schema in enumerate(inputs):
        own = {at: p.patterns[p.schema.index(name)] for at, name in enumerate(schema.names)}
        for name, others in graph.equal_to(i).items():
            at = schema.index(name)
            for other in others:
                there = p.schema.index(other)
                own[at] = narrower(own[at], p.patterns[there], schema[at].domain, p.schema[there].domain)
        wanted = Punctuation.at(schema, own)
        rows = held.rows(f"input-{i}", tuple(graph.keys(i).values()), wanted, f"waiting-{i}")
        if rows is not None:
            wants = (want for row in rows for want in partners(graph, i, row, held, inputs))
            ways.append(tuple(dict.fromkeys([(i, wanted), *wants])))
    return ways
