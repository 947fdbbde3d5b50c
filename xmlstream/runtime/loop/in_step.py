"""Sources in step: of sources that are joined or merged, one that has closed more than another waits for it.

Where one input is ahead of the other, its tuples are kept until the other has closed their values. So the source whose
closed values reach farther gets no bytes while the other one has more input than a slice takes: what is kept is what a
slice reads, and not what the files differ in. Answers are the same, since they do not depend on slices; and in a feed
without a backlog nothing waits.

A source waits only if it was already ahead one slice before: sources of one pace are read together. It does not wait
for a source that has closed nothing yet, or whose closed values no longer grow as it is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from xmlstream.operators.project import Project
from xmlstream.plan.nodes import Node, Results, Scan, Static, names, topological
from xmlstream.punct_ns.domain import Cut
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.sql_type import DiscreteType

SourceAttribute: TypeAlias = tuple[str, str]
"""Name of a source in the plan, and name of one of its attributes."""

PATIENCE = 2
"""The slices without a new closed value after which nothing waits for a source: one is planned before one is done."""


class InStep:
    """Finds the sources of a running query that are ahead of others."""

    def __init__(self, root: Node, reached: Callable[[str, str], Cut | None]) -> None:
        """Compare the sources of a plan; `axes` are the groups of attributes that are compared.

        Args:
            root: The plan.
            reached: Returns the end of the first closed values of a source's attribute; None if none is closed.
        """
        self._reached, self.axes = reached, list(_compared(root))
        self._before: dict[SourceAttribute, Cut | None] = {}
        self._idle = Counter[SourceAttribute]()
        self._held: frozenset[str] = frozenset()

    def ahead(self, waiting: Collection[str]) -> frozenset[str]:
        """Returns the sources that get no bytes in the next slice; called once a slice.

        Args:
            waiting: The sources that have more input than a slice takes.
        """
        now = {place: self._reached(*place) for axis in self.axes for place in axis}
        for place, cut in now.items():
            if place[0] in waiting and place[0] not in self._held:
                self._idle[place] = self._idle[place] + 1 if cut == self._before.get(place) else 0
        held = set[str]()
        for axis in self.axes:
            slow = [
                (cut, place) for place in axis if (cut := now[place]) is not None and self._is_awaited(place, waiting)
            ]
            for source, attribute in axis:
                before = self._before.get((source, attribute))
                if before is not None and any(cut < before and place[0] != source for cut, place in slow):
                    held.add(source)
        self._before = now
        self._held = frozenset() if held.issuperset(waiting) else frozenset(held)
        return self._held

    def _is_awaited(self, place: SourceAttribute, waiting: Collection[str]) -> bool:
        return place[0] in waiting and self._idle[place] < PATIENCE


def end_of_first(closed: PunctuationSet, attribute: str) -> Cut | None:
    """The end of the first values of an attribute that punctuations close for ever; None if there are none."""
    i = closed.schema.index(attribute)
    if closed.is_all:
        return closed.schema[i].domain.top
    return next((high for _, high in closed.singles[i].value_set().intervals()), None) if i in closed.singles else None


def _compared(root: Node) -> Iterator[list[SourceAttribute]]:
    """The attributes of several sources whose closed values can be compared: of one type with an order."""
    types = {name: node.schema for node, name in names(root).items() if isinstance(node.operator, Scan)}
    for axis in axes(root):
        by_type: dict[str, list[SourceAttribute]] = {}
        for source, attribute in axis:
            domain = types[source].attribute(attribute).domain
            if isinstance(domain.sql, DiscreteType) and not domain.sql.opaque and domain.listed is None:
                by_type.setdefault(domain.type, []).append((source, attribute))
        yield from (places for places in by_type.values() if len({source for source, _ in places}) > 1)


def axes(root: Node) -> list[list[SourceAttribute]]:
    """Groups the attributes of all sources into axes, in the order of the plan.

    On one axis are those that the plan makes one attribute, as they are or by the same non-decreasing function.
    """
    name_of = names(root)
    group: dict[SourceAttribute, set[SourceAttribute]] = {}
    origins: dict[tuple[Node, str], set[tuple[SourceAttribute, tuple[str, ...]]]] = {}
    for node in topological(root):
        handed_on = _handed_on(node)
        for name in node.schema.names:
            place = node, name.lower()
            if isinstance(node.operator, Scan):
                one = (name_of[node], name)
                group[one] = {one}
                origins[place] = {(one, ())}
                continue
            origins[place] = {
                (one, (*done, function) if function else done)
                for below, attribute, function in handed_on.get(name.lower(), ())
                for one, done in origins.get((below, attribute), ())
            }
            for functions in {done for _, done in origins[place]}:
                same = (group[one] for one, done in origins[place] if done == functions)
                merged = set[SourceAttribute]().union(*same)
                group |= dict.fromkeys(merged, merged)
    together: dict[int, list[SourceAttribute]] = {}
    for one, each in group.items():
        together.setdefault(id(each), []).append(one)
    return list(together.values())


def _handed_on(node: Node) -> dict[str, list[tuple[Node, str, str]]]:
    """For each output attribute, the input attributes that it is, or is computed from by a non-decreasing function.

    Each has that function as Spark SQL of `$`; the text is empty for an attribute as it is.
    """
    found: dict[str, list[tuple[Node, str, str]]] = {}
    if isinstance(node.operator, Scan | Static | Results):
        return found
    if node.operator.declared_in is not None:  # it changes no tuple
        return {name.lower(): [(node.inputs[0], name.lower(), "")] for name in node.schema.names}
    terms = node.operator.predicate_terms(*(below.schema for below in node.inputs))
    for below, known in zip(node.inputs, terms, strict=True):
        attributes = {quoted(name).lower(): name.lower() for name in below.schema.names}
        for name, term in known.items():
            if term.lower() in attributes:
                found.setdefault(name.lower(), []).append((below, attributes[term.lower()], ""))
    for column in node.operator.columns if isinstance(node.operator, Project) else ():
        how = column.monotone
        if how is not None and not (how.falling or how.unordered):
            of = how.of.lower()
            function = re.sub(re.escape(quoted(of)), "$", column.expression, flags=re.IGNORECASE)
            found.setdefault(column.attribute.name.lower(), []).append((node.inputs[0], of, function))
    return found
