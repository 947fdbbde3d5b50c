"""Forgetting in joins: punctuations on values that all inputs have closed are dropped.

While one side alone has closed a key, its punctuation purges what may yet come of the other. Once both have, no tuple
of that key comes any more, none is kept, and its punctuation has gone out: nothing is left that could need it. A side
has closed a key, too, by several punctuations on what is bounded beside it that cover the key together. What has a
lifespan is needed for as long as it holds: the other side's may end before.

In a join of many inputs the same holds of a class, which is what tuples of several inputs are joined on. Once each
input that has it has closed a value, and keeps no tuple of it, no row of a chain can wait for that value any more.
Where a tuple is still kept, the value waits in a set of its own, and is tried again in the next slice.

Source: Li et al. 2006, §5.1: a punctuation is purged by the other stream's on the attributes that it restricts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from xmlstream.operators.joins.chained_purge import ChainBounds, class_column
from xmlstream.operators.joins.equi_join import EquiJoin
from xmlstream.operators.joins.punctuation_graph import PunctuationGraph
from xmlstream.operators.state.blocked_set import emittable
from xmlstream.operators.state.completion import closed_so_far, closed_together, common_known, forget_completed
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.punct_ns.pattern import Pattern
from xmlstream.punct_ns.punctuation import Punctuation, of_values
from xmlstream.punct_ns.recast import recast_pattern
from xmlstream.punct_ns.schema import Schema


def forget_keys(
    equi_join: EquiJoin,
    covered: Sequence[Sequence[Punctuation]],
    sent: Iterable[Punctuation],
    state: OperatorState,
    output: Schema,
) -> None:
    """Forgets keys that both sides have closed, one in this slice, and emitted punctuations that cannot come again.

    Args:
        equi_join: The condition under which tuples of the sides are partners.
        covered: For each side, the punctuations over its keys that the other side's punctuations newly give.
        sent: The punctuations that went out in this slice.
        state: The join's state, whose set `sent` holds the punctuations that went out.
        output: The schema of that set.
    """
    newly = _closed_by_both(covered, state, len(equi_join.left))
    closed = [closed_so_far(state, side).lasting for side in range(2)]
    with common_known(newly, closed, state.punctuations("common")) as both:
        for side, key in zip((1, 0), equi_join.bounded_keys, strict=True):
            schema = closed_so_far(state, side).set.schema
            forget_completed([_on_keys(p, schema) for p in both], key.names, state, side)
            if key.bounds:
                purging = state.punctuations(f"bounded-{side}")
                purging.forget([_on_keys(p, purging.set.schema) for p in both])
    there = {name.lower(): i for i, name in enumerate(output.names)}
    places = [
        [there[name.lower()] for name in pair if name.lower() in there] for pair in zip(*equi_join.on, strict=True)
    ]
    keys = {place for pair in places for place in pair}
    # Values of other attributes come from one side, once; those on keys may come from the other side, too.
    gone = of_values(p for p in sent if not keys.issuperset(p.restricted))
    state.punctuations("sent").forget([*gone, *(written for p in both for written in _written(p, places, output))])


def _closed_by_both(covered: Sequence[Sequence[Punctuation]], state: OperatorState, width: int) -> list[Punctuation]:
    """The keys that both sides have closed, over the left side's `width` key attributes."""
    found: list[Punctuation] = []
    keys = Schema(closed_so_far(state, 1).set.schema.attributes[:width])
    for newly in covered:
        new = [p for p in newly if p.lifespan is None and all(i < width for i in p.restricted)]
        for side in range(2):
            closed = closed_so_far(state, side).lasting
            new = closed_together([_on_keys(p, closed.schema) for p in new], range(width), closed) if closed else []
        found += (_on_keys(p, keys) for p in new)
    return found


def _on_keys(p: Punctuation, schema: Schema) -> Punctuation:
    """The punctuation over a schema that begins with the key's attributes, under any names and types."""
    patterns: dict[int, Pattern] = {
        i: recast_pattern(p.patterns[i], p.schema[i].domain, schema[i].domain) for i in p.restricted
    }
    return Punctuation.at(schema, patterns)


def _written(p: Punctuation, places: Sequence[Sequence[int]], output: Schema) -> Iterator[Punctuation]:
    """The output's punctuation for the key, in each form in which it may have been emitted."""
    for chosen in product(*(places[i] for i in p.restricted)):
        yield Punctuation.at(output, dict(zip(chosen, (p.patterns[i] for i in p.restricted), strict=True)))


def due_sets(graph: PunctuationGraph, inputs: Sequence[Schema]) -> dict[str, Schema]:
    """The schemas of the sets in which the join keeps the values that it may soon forget, by the names of the sets."""
    return {_due(key, i): inputs[i] for key, names in enumerate(graph.classes) for i in names}


def forget_classes(
    graph: PunctuationGraph,
    bounds: ChainBounds,
    complete: Sequence[Iterable[Punctuation]],
    sent: Iterable[Punctuation],
    kept: Sequence[TupleLog],
    state: OperatorState,
    output: Schema,
) -> None:
    """Forgets class values that all its inputs have closed, one of them in this slice, where none keeps a tuple.

    Args:
        graph: The inputs, and their equal attributes.
        bounds: The bounds between the inputs.
        complete: For each input, the new punctuations over its classes.
        sent: The punctuations that went out in this slice.
        kept: The tuples that each input keeps.
        state: The join's state, whose set `sent` holds the punctuations that went out.
        output: The schema of that set.
    """
    joined = {name.lower() for names in graph.classes for name in names.values()}
    keys = {i for i, name in enumerate(output.names) if name.lower() in joined}
    gone = of_values(p for p in sent if not keys.issuperset(p.restricted))
    for key, names in enumerate(graph.classes):
        found = _closed_by_all(graph, key, complete, state)
        for i in names:
            schema, own = state.inputs[i], graph.keys(i)
            given = [Punctuation.of(schema, {own[c]: p.patterns[at] for c, at in _places(p, graph)}) for p in found]
            classes = closed_so_far(state, i).set.schema
            free = emittable(_due(key, i), given, [kept[i]], state, schema)
            back = {schema.index(name): class_column(c) for c, name in own.items()}
            found = [Punctuation.of(classes, {back[at]: p.patterns[at] for at in p.restricted}) for p in free]
        for i in names:
            classes = closed_so_far(state, i).set.schema
            forget_completed(
                [_over(p, classes) for p in found], [*graph.keys(i).values(), *bounds.bounded(i)], state, i
            )
            parted = state.punctuations(f"parted-{i}")
            parted.forget([_over(p, parted.set.schema) for p in found])
            if bounds.bounded(i):
                bounded = state.punctuations(f"bounded-{i}")
                bounded.forget([_over(p, bounded.set.schema) for p in found])
        gone += (written for p in found for written in _written_values(p, graph, output))
    state.punctuations("sent").forget(gone)


def _due(key: int, input_: int) -> str:
    return f"due-{key}-{input_}"


def _closed_by_all(
    graph: PunctuationGraph, key: int, complete: Sequence[Iterable[Punctuation]], state: OperatorState
) -> list[Punctuation]:
    """The punctuations on a class, and classes shared by all its inputs, that all these inputs have closed."""
    members = list(graph.classes[key])
    common = frozenset[int].intersection(*(frozenset(graph.keys(i)) for i in members))
    found: list[Punctuation] = []
    known: set[frozenset[tuple[tuple[str, Pattern], ...]]] = set()
    for i in members:
        # A punctuation with a lifespan is needed for as long as it holds.
        own = [_on_classes(p, graph) for p in complete[i] if p.lifespan is None]
        new = [p for p in own if key in (of := {c for c, _ in _places(p, graph)}) and of <= common]
        closing = frozenset(tuple((p.schema[at].name, p.patterns[at]) for at in p.restricted) for p in new)
        if closing in known:
            continue  # another input has closed the same now
        known.add(closing)
        # The input itself may have closed a value by several punctuations on what is bounded, the last of them now.
        for j in members if new else ():
            closed = closed_so_far(state, j).lasting
            over = [_over(p, closed.schema) for p in new]
            new = closed_together(over, sorted({i for p in over for i in p.restricted}), closed)
        found += new
    return found


def _places(p: Punctuation, graph: PunctuationGraph) -> list[tuple[int, int]]:
    """The classes that a punctuation restricts, each with its place."""
    numbers = {class_column(key): key for key in range(len(graph.classes))}
    return [(numbers[name], i) for i in p.restricted if (name := p.schema[i].name) in numbers]


def _on_classes(p: Punctuation, graph: PunctuationGraph) -> Punctuation:
    """The values of classes that a punctuation is about, whatever it says of what is bounded."""
    return Punctuation.at(p.schema, {i: p.patterns[i] for _, i in _places(p, graph)})


def _over(p: Punctuation, classes: Schema) -> Punctuation:
    """Rewrites the punctuation for another input, which has attributes of all classes that it restricts."""
    return Punctuation.of(classes, {p.schema[i].name: p.patterns[i] for i in p.restricted})


def _written_values(p: Punctuation, graph: PunctuationGraph, output: Schema) -> Iterator[Punctuation]:
    """The output's punctuation for the values, in each form in which it may have been emitted."""
    places = _places(p, graph)
    for chosen in product(*(graph.classes[key].values() for key, _ in places)):
        yield Punctuation.of(output, {name: p.patterns[i] for name, (_, i) in zip(chosen, places, strict=True)})
