"""Reachability in a punctuation graph, from all inputs at once: which inputs a chain of punctuations leads to.

What a chain reaches, its own chains reach too. So inputs are looked at after those that they lead to at once, and what
those reach is taken over as a whole: a ring of 200 inputs takes as many steps as it has edges.

Source: Li et al. 2006, Definition 9 and Theorem 3; §4.3 for the time that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from operators.groupings import Grouping, Promises
from operators.joins.punctuation_graph import PunctuationGraph, Shape
from punct_ns.scheme import Scheme


@dataclass(frozen=True)
class Reachability:
    """The inputs of a graph under the shapes of their punctuations."""

    graph: PunctuationGraph
    shapes: Mapping[int, frozenset[Shape]]

    def reaches_all(self, root: int) -> bool:
        """Whether each tuple of an input is purged in the end (Theorem 3)."""
        return len(self.reached(root)) == self.graph.inputs

    def reached(self, root: int) -> frozenset[int]:
        """The inputs that a chain from one input leads to, itself among them."""
        return self._found[root][0]

    def known(self, root: int) -> frozenset[int]:
        """The classes whose values the chains from one input make known."""
        return self._found[root][1]

    def rounds(self, root: int) -> int:
        """How many punctuations a tuple of an input waits for, one after the other, until all others are reached.

        In each round all inputs are reached that can be by what is known then.
        """
        graph, reached, number = self.graph, {root}, 0
        while len(reached) < graph.inputs:
            known = {key for i in reached for key in graph.told(i)}
            more = {
                i
                for key in known
                if key < len(graph.classes)
                for i in graph.classes[key]
                if i not in reached and any(shape <= known for shape in self.shapes.get(i, ()))
            }
            if not more:
                raise ValueError(f"from input {root} not all others are reached")
            reached |= more
            number += 1
        return number

    @cached_property
    def steps(self) -> int:
        """How often a class became known, from all inputs together: what it takes to find all of this."""
        return sum(steps for _, _, steps in self._found.values())

    @cached_property
    def _found(self) -> dict[int, tuple[frozenset[int], frozenset[int], int]]:
        found: dict[int, tuple[frozenset[int], frozenset[int], int]] = {}
        for root in self._leading_last():
            found[root] = self._fixpoint(root, found)
        return found

    def _leading_last(self) -> Iterator[int]:
        """All inputs, each after those that it leads to at once, as far as there is no way back."""
        seen: set[int] = set()
        for first in range(self.graph.inputs):
            open_ = [] if first in seen else [(first, self._led_to(first))]
            seen.add(first)
            while open_:
                _root, following = open_[-1]
                after = next((i for i in following if i not in seen), None)
                if after is None:
                    yield open_.pop()[0]
                else:
                    seen.add(after)
                    open_.append((after, self._led_to(after)))

    def _led_to(self, root: int) -> Iterator[int]:
        own = frozenset(self.graph.told(root))
        for number in self.graph.keys(root):
            for i in self.graph.classes[number]:
                if any(shape <= own for shape in self.shapes.get(i, ())):
                    yield i

    @cached_property
    def _of_several(self) -> list[int]:
        """The inputs whose punctuations may ask for more than one class, or for a link."""
        classes = len(self.graph.classes)
        return [
            i for i, s in self.shapes.items() if any(len(shape) > 1 or max(shape, default=0) >= classes for shape in s)
        ]

    def _fixpoint(
        self, root: int, found: Mapping[int, tuple[frozenset[int], frozenset[int], int]]
    ) -> tuple[frozenset[int], frozenset[int], int]:
        """What is reached, what is known then, and how many steps it took: each class becomes known once."""
        graph = self.graph
        reached, known, new = {root}, set[int](), [*graph.told(root)]
        steps = 0
        while new and len(reached) < graph.inputs:
            number = new.pop()
            if number in known:
                continue
            known.add(number)
            steps += 1
            is_class = number < len(graph.classes)
            asked = [*graph.classes[number]] if is_class else [graph.links[number - len(graph.classes)].asked]
            while asked:
                i = asked.pop()
                if i in reached or not any(shape <= known for shape in self.shapes.get(i, ())):
                    continue
                if known.isdisjoint(graph.keys(i)):
                    continue
                reached.add(i)
                if i in found:
                    reached |= found[i][0]
                    known |= found[i][1]
                    asked += self._of_several
                else:
                    new += graph.told(i)
        return frozenset(reached), frozenset(known), steps


def promised(graph: PunctuationGraph, schemes: Sequence[Sequence[Scheme]]) -> Reachability:
    """The reachability under the shapes that the inputs' schemes promise."""
    return Reachability(graph, graph.promised_shapes(schemes))


@dataclass(frozen=True)
class Chains:
    """The reachability in a graph, found once for the promises that were asked last, for all conditions on them."""

    graph: PunctuationGraph
    _last: list[tuple[Promises, Reachability]] = field(default_factory=list, init=False, repr=False, compare=False)

    def under(self, promises: Promises) -> Reachability:
        """The reachability under these promises."""
        for known, found in self._last:
            if known is promises:
                return found
        found = promised(self.graph, [schemes for _, schemes in promises])
        self._last[:] = [(promises, found), *self._last[:1]]  # inputs promise this while they go on, and that at ends
        return found


@dataclass(frozen=True, slots=True)
class Reached:
    """A condition: a chain of punctuations leads from each tuple of an input to all other inputs (Theorem 3)."""

    chains: Chains
    root: int

    def holds(self, promises: Promises) -> bool:
        """Whether the schemes make such a chain."""
        return self.chains.under(promises).reaches_all(self.root)

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        """Of all other inputs, by their join attributes; where it does not hold, of those at which chains end.

        Those are not reached, though some of their join attributes are known: a promise on these would lead on.
        """
        graph, found = self.chains.graph, self.chains.under(promises)
        holds, reached, known = found.reaches_all(self.root), found.reached(self.root), found.known(self.root)
        for i in range(graph.inputs):
            if i != self.root and (holds or i not in reached):
                names = [name for key, name in graph.keys(i).items() if holds or key in known]
                linked = [link for link in graph.links if link.asked == i and (holds or link.asker in reached)]
                if names:
                    bounded = dict.fromkeys(name for link in linked for name in link.attributes)
                    yield Grouping(i, (*names, *bounded), null=False)
