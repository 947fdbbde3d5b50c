"""Punctuation graph of an n-way equi-join: in which order punctuations reach its inputs from a tuple of one.

Attributes that must be equal, directly or through others, are one *class*; a class is what the tuples of two inputs
can disagree on. The *shape* of a punctuation is the set of classes that it restricts. A tuple knows the values of its
classes, and each input that the chain reaches makes more of them known; an input is reached when one of its shapes is
known. That is the generalized punctuation graph, over the punctuations really seen.

Comparisons of two inputs are edges, too: where a tuple of one bounds what it waits for of the other, from above, a
punctuation on what is bounded is as good as one on a class. Such a *link* has a number behind those of the classes; it
is known where the input that sets the bounds is reached. A chain goes on to an input that has a class with those
reached.

*Reachability* is found from all inputs at once. What a chain reaches, its own chains reach too. So inputs are looked at
after those that they lead to at once, and what those reach is taken over as a whole: a ring of 200 inputs takes as many
steps as it has edges.

Source: Li et al. 2006, §3.2.1, §4.2, Definitions 6 to 9, Theorem 3; §4.3 for the time that it takes. Differs:
Definition 7 draws an edge for each attribute of a scheme, which is right for schemes of one attribute; here all of a
shape must be known. Definition 9 is read as a fixpoint that contains the node itself and follows plain edges too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.closing_conditions import Grouping, Promises
from xmlstream.operators.expressions.bounds import Bound
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.scheme import Scheme

InputAttribute = tuple[int, str]
"""The number of an input, and the name of one of its attributes."""

Equality = tuple[InputAttribute, InputAttribute]
Shape = frozenset[int]


def equal_groups(equalities: Iterable[Equality]) -> list[list[InputAttribute]]:
    """The attributes that equalities name, in groups of equal ones; different names differ by more than case.

    >>> equal_groups([((0, "a"), (1, "b")), ((2, "c"), (3, "d")), ((1, "B"), (2, "e"))])
    [[(0, 'a'), (1, 'b'), (2, 'e')], [(2, 'c'), (3, 'd')]]
    """
    group: dict[tuple[int, str], dict[tuple[int, str], InputAttribute]] = {}
    for equality in equalities:
        one, other = (
            group.setdefault(key, {key: place}) for place in equality for key in [(place[0], place[1].lower())]
        )
        if one is not other:
            few, many = (one, other) if len(one) < len(other) else (other, one)
            many |= {key: place for key, place in few.items() if key not in many}
            group |= dict.fromkeys(few, many)
    return [list(places.values()) for places in {id(places): places for places in group.values()}.values()]


@dataclass(frozen=True)
class Link:
    """Bounds that each tuple of the input `bounding` sets to the tuples of the input `bounded` that it waits for."""

    bounding: int
    bounded: int
    bounds: tuple[Bound, ...]

    @cached_property
    def attributes(self) -> dict[str, Bound]:
        """The attributes that are bounded from above, with their bounds."""
        return {bound.attribute: bound for bound in self.bounds if bound.upper}


_TRIED = frozenset[tuple[int, Shape]]
_MOST = 256
"""The number of situations that a chain is planned for; beyond it, those with the fewest reached inputs drop out."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One step of a chain: it tests an input's punctuations if the row knows the value of the class `key`.

    `joins` states that the step also joins the input's tuples: they add values, or there are none.
    """

    input: int
    key: int
    joins: bool = True


@dataclass(frozen=True)
class PunctuationGraph:
    """The inputs of a join, and their equal attributes.

    Raises:
        QueryError: There are fewer than two inputs, or the equalities do not connect them, or two attributes of one
            input would have to be equal.
    """

    inputs: int
    equalities: tuple[Equality, ...]
    links: tuple[Link, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.inputs < 2:
            raise QueryError("a join has two inputs or more")
        for input_ in (place[0] for equality in self.equalities for place in equality):
            if not 0 <= input_ < self.inputs:
                raise QueryError(f"the join has no input {input_}: its {self.inputs} inputs are numbered from 0")
        for equal in self._equal:
            names: dict[int, str] = {}
            for input_, name in equal:
                if names.setdefault(input_, name) != name:
                    raise QueryError(
                        f"the equalities make {names[input_]} and {name} of one input equal",
                        hint="select the tuples in which they are equal, then join on one of them",
                    )
        missing = set(range(self.inputs)) - self._hanging_together
        if missing:
            raise QueryError(
                f"no equality leads from the first input to {', '.join(f'input {i + 1}' for i in sorted(missing))}",
                hint="each input must be joined to the others",
            )

    @cached_property
    def _equal(self) -> list[list[InputAttribute]]:
        return equal_groups(self.equalities)

    @cached_property
    def _hanging_together(self) -> set[int]:
        """The inputs that equalities connect to the first one."""
        found, new = {0}, [0]
        while new:
            beside = {i for key in self.keys(new.pop()) for i in self.classes[key]} - found
            found |= beside
            new += beside
        return found

    @cached_property
    def classes(self) -> tuple[Mapping[int, str], ...]:
        """The classes, each with its attribute of each input that has one."""
        return tuple(sorted((dict(sorted(equal)) for equal in self._equal), key=lambda c: sorted(c.items())))

    def keys(self, input_: int) -> dict[int, str]:
        """The classes of an input, with its attributes."""
        return self._keys[input_]

    def equal_to(self, input_: int) -> dict[str, list[str]]:
        """For each join attribute of an input, the equal attributes of other inputs."""
        return {
            name: [other for i, other in self.classes[key].items() if i != input_]
            for key, name in self.keys(input_).items()
        }

    @cached_property
    def _keys(self) -> list[dict[int, str]]:
        keys: list[dict[int, str]] = [{} for _ in range(self.inputs)]
        for number, names in enumerate(self.classes):
            for input_, name in names.items():
                keys[input_][number] = name
        return keys

    def known_from(self, input_: int) -> Sequence[int]:
        """The equality classes whose values a tuple of this input determines, directly or by a link."""
        return self._known_from[input_]

    @cached_property
    def _known_from(self) -> list[list[int]]:
        known = [list(keys) for keys in self._keys]
        for number, link in enumerate(self.links, start=len(self.classes)):
            known[link.bounding].append(number)
        return known

    def order(self, *reached: int, among: Iterable[int] | None = None) -> list[int]:
        """The other inputs, ordered so that each shares a class with earlier ones, and as many classes as possible.

        With `among`, only these of them; `reached` come first, and share classes among themselves.
        """
        order: list[int] = []
        rest = set(range(self.inputs) if among is None else among).difference(reached)
        known = {key for i in reached for key in self.keys(i)}
        while left := [i for i in rest if known & self.keys(i).keys()]:
            order.append(max(left, key=lambda i: (len(known & self.keys(i).keys()), -i)))
            known |= self.keys(order[-1]).keys()
            rest.remove(order[-1])
        return order

    def parted(self, some: Sequence[int]) -> tuple[list[int], list[int]]:
        """Parts inputs that classes connect in two that classes connect, too, of sizes as equal as can be."""
        order = [some[0], *self.order(some[0], among=some)]
        leading: dict[int, int] = {}
        for place, i in enumerate(order[1:], start=1):
            leading[i] = next(j for j in reversed(order[:place]) if self.keys(i).keys() & self.keys(j).keys())
        beyond = {i: [i] for i in order}
        for i in reversed(order[1:]):
            beyond[leading[i]] += beyond[i]
        part = min((beyond[i] for i in order[1:]), key=lambda found: abs(2 * len(found) - len(order)))
        return sorted(set(order).difference(part)), sorted(part)

    def promised_shapes(self, schemes: Sequence[Sequence[Scheme]]) -> dict[int, frozenset[Shape]]:
        """For each input, the shapes of the punctuations that its schemes promise."""
        found: dict[int, frozenset[Shape]] = {}
        for i, promised in enumerate(schemes):
            numbers = {name.lower(): str(key) for key, name in self.keys(i).items()}
            on_keys = [renamed for scheme in promised if (renamed := scheme.renamed(numbers)) is not None]
            found[i] = frozenset(frozenset(map(int, scheme.attributes)) for scheme in on_keys)
        for number, link in enumerate(self.links, start=len(self.classes)):
            linked = (self._linked(scheme, number, link) for scheme in schemes[link.bounded])
            found[link.bounded] |= {shape for shape in linked if shape is not None}
        return found

    def _linked(self, scheme: Scheme, number: int, link: Link) -> Shape | None:
        """The shape of a scheme's punctuations if they restrict attributes of a link; otherwise None.

        Within bounds, prefixes end, and so do constants if they close stretches.
        """
        keys = {name.lower(): key for key, name in self.keys(link.bounded).items()}
        bounded = {name.lower(): bound for name, bound in link.attributes.items()}
        shape: set[int] = set()
        for term in scheme.terms:
            name = term.attribute.lower()
            if name in keys:
                shape.add(keys[name])
            elif name in bounded and bounded[name].is_closed_by(term):
                shape.add(number)
            elif not (term.finite and term.null):
                return None
        return frozenset(shape) if number in shape else None

    def chain(self, root: int, shapes: Mapping[int, frozenset[Shape]]) -> list[Reach]:
        """The steps by which punctuations of these shapes purge tuples of an input; none if they can purge none.

        An input with several shapes may have several steps, the later ones with more known values: each tuple takes its
        own way. Inputs out of reach purge only tuples that are dead before.
        """
        known = (root, tuple(shapes.get(i, frozenset()) for i in range(self.inputs)))
        if known not in self._chains:
            if len(self._chains) >= _MOST:
                self._chains.clear()
            plain = self._plain_chain(root, shapes)
            self._chains[known] = self._searched_chain(root, shapes) if plain is None else plain
        return self._chains[known]

    @cached_property
    def _chains(self) -> dict[tuple[int, tuple[frozenset[Shape], ...]], list[Reach]]:
        """The chains of the last slices: a search takes longer than many a slice, and shapes seldom change."""
        return {}

    def _plain_chain(self, root: int, shapes: Mapping[int, frozenset[Shape]]) -> list[Reach] | None:
        """The steps in the order of the inputs if the root's tuples know all that the shapes restrict; else None."""
        own = self.keys(root).keys()
        given = {i: of_input for i, of_input in sorted(shapes.items()) if i != root and of_input}
        if any(not own & self.keys(i).keys() or any(shape - own for shape in given[i]) for i in given):
            return None
        return [Reach(i, min(own & self.keys(i).keys()), self.inputs > 2) for i in given]

    def _searched_chain(self, root: int, shapes: Mapping[int, frozenset[Shape]]) -> list[Reach]:
        everything = frozenset(range(self.inputs))
        steps: list[Reach] = []
        waiting: set[tuple[frozenset[int], _TRIED]] = {(frozenset([root]), frozenset())}
        while len(steps) < 2 * self.inputs:
            wanted = Counter(step for state in waiting for step in self._next(root, state, shapes))
            if not wanted:
                break
            step = max(wanted, key=lambda s: (wanted[s], self._is_ripe(s, waiting, shapes), -s.input, -s.key))
            after = {state for before in waiting for state in self._after(step, before, shapes)}
            left = [state for state in after if state[0] != everything]
            steps.append(replace(step, joins=any(step.input in reached for reached, _ in left)))
            waiting = set(sorted(left, key=lambda state: -len(state[0]))[:_MOST])
        return steps

    def known_set(self, input_: int) -> Shape:
        """The classes and links of `known_from`, as a set."""
        return self._known_sets[input_]

    def _known(self, reached: frozenset[int]) -> Shape:
        return frozenset().union(*(self._known_sets[i] for i in reached))

    @cached_property
    def _known_sets(self) -> list[Shape]:
        return list(map(frozenset, self._known_from))

    def _next(
        self, root: int, state: tuple[frozenset[int], _TRIED], shapes: Mapping[int, frozenset[Shape]]
    ) -> Iterator[Reach]:
        reached, _ = state
        for input_ in range(self.inputs):
            if input_ not in reached and self._untried(input_, state, shapes):
                shared = self._known(reached) & self.keys(input_).keys()
                of_root = shared & self.keys(root).keys()
                for key in [min(of_root)] if of_root else shared:
                    yield Reach(input_, key)

    def _untried(
        self, input_: int, state: tuple[frozenset[int], _TRIED], shapes: Mapping[int, frozenset[Shape]]
    ) -> list[Shape]:
        known = self._known(state[0])
        return [shape for shape in shapes.get(input_, ()) if shape <= known and (input_, shape) not in state[1]]

    def _is_ripe(
        self, step: Reach, waiting: set[tuple[frozenset[int], _TRIED]], shapes: Mapping[int, frozenset[Shape]]
    ) -> bool:
        """Whether waiting cannot help to reach the input: all that its shapes restrict is known in some situation."""
        known = frozenset[int]().union(*(self._known(reached) for reached, _ in waiting))
        return all(shape <= known for shape in shapes[step.input])

    def _after(
        self, step: Reach, state: tuple[frozenset[int], _TRIED], shapes: Mapping[int, frozenset[Shape]]
    ) -> Sequence[tuple[frozenset[int], _TRIED]]:
        """The situations of a tuple after a step: punctuations cover it, or do not by any of these shapes."""
        reached, tried = state
        untried = self._untried(step.input, state, shapes)
        if step.input in reached or not untried or step.key not in self._known(reached):
            return [state]
        return [(reached | {step.input}, tried), (reached, tried | {(step.input, shape) for shape in untried})]


_Reached = tuple[frozenset[int], frozenset[int]]
"""The inputs that chains from an input reach, and the classes and links whose values become known along them."""


@dataclass(frozen=True)
class Reachability:
    """The inputs of a graph under the shapes of their punctuations."""

    graph: PunctuationGraph
    shapes: Mapping[int, frozenset[Shape]]

    def reaches_all(self, root: int) -> bool:
        """Whether the punctuations purge each tuple of an input in the end (Theorem 3)."""
        return len(self.reached(root)) == self.graph.inputs

    def reached(self, root: int) -> frozenset[int]:
        """The inputs that chains from one input reach, itself included."""
        return self._found[root][0]

    def known(self, root: int) -> frozenset[int]:
        """The classes and links whose values become known along chains from one input."""
        return self._found[root][1]

    def rounds(self, root: int) -> int:
        """The number of rounds of punctuations that a tuple of an input waits for until all other inputs are reached.

        Each round reaches all inputs that the values known by then allow.
        """
        graph, reached, number = self.graph, {root}, 0
        while len(reached) < graph.inputs:
            known = {key for i in reached for key in graph.known_from(i)}
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
    def _found(self) -> dict[int, _Reached]:
        found: dict[int, _Reached] = {}
        for root in self._leading_last():
            found[root] = self._fixpoint(root, found)
        return found

    def _leading_last(self) -> Iterator[int]:
        """All inputs, each after the inputs that it leads to directly, except in cycles."""
        unseen = [{i: self.shapes[i] for i in names if self.shapes.get(i)} for names in self.graph.classes]
        seen: set[int] = set()
        for first in range(self.graph.inputs):
            open_, after = list[int](), None if first in seen else first
            while open_ or after is not None:
                if after is None:
                    yield open_.pop()
                else:
                    seen.add(after)
                    open_.append(after)
                    for number in self.graph.keys(after):
                        unseen[number].pop(after, None)
                after = self._led_to(open_[-1], unseen) if open_ else None

    def _led_to(self, root: int, among: Sequence[Mapping[int, frozenset[Shape]]]) -> int | None:
        """An input, of these of each class, that one leads to directly; None if it leads to none of them."""
        own = self.graph.known_set(root)
        for number in self.graph.keys(root):
            for i, shapes in among[number].items():
                if any(shape <= own for shape in shapes):
                    return i
        return None

    @cached_property
    def _of_several(self) -> list[int]:
        """The inputs with punctuations on more than one class, or on a link."""
        classes = len(self.graph.classes)
        return [
            i for i, s in self.shapes.items() if any(len(shape) > 1 or max(shape, default=0) >= classes for shape in s)
        ]

    def _fixpoint(self, root: int, found: Mapping[int, _Reached]) -> _Reached:
        """The reached inputs, and the known classes; each class becomes known once."""
        graph = self.graph
        reached, known, new = {root}, set[int](), [*graph.known_from(root)]
        while new and len(reached) < graph.inputs:
            number = new.pop()
            if number in known:
                continue
            known.add(number)
            is_class = number < len(graph.classes)
            inputs = [*graph.classes[number]] if is_class else [graph.links[number - len(graph.classes)].bounded]
            for i in inputs:  # some are added
                if len(reached) == graph.inputs:
                    break
                if i in reached or not any(shape <= known for shape in self.shapes.get(i, ())):
                    continue
                if known.isdisjoint(graph.keys(i)):
                    continue
                reached.add(i)
                if i in found:
                    reached |= found[i][0]
                    known |= found[i][1]
                    inputs += self._of_several
                else:
                    new += graph.known_from(i)
        return frozenset(reached), frozenset(known)


def promised_shapes_of(graph: PunctuationGraph, schemes: Sequence[Sequence[Scheme]]) -> Reachability:
    """The reachability under the shapes that the inputs' schemes promise."""
    return Reachability(graph, graph.promised_shapes(schemes))


@dataclass(frozen=True)
class Chains:
    """The reachability in a graph, computed once for the last promises, for all conditions on them."""

    graph: PunctuationGraph
    _last: list[tuple[Promises, Reachability]] = field(default_factory=list, init=False, repr=False, compare=False)

    def under(self, promises: Promises) -> Reachability:
        for known, found in self._last:
            if known is promises:
                return found
        found = promised_shapes_of(self.graph, [schemes for _, schemes in promises])
        self._last[:] = [
            (promises, found),
            *self._last[:1],
        ]  # the schemes of inputs that go on, and those of inputs that end
        return found


@dataclass(frozen=True, slots=True)
class Reached:
    """A condition: a chain of punctuations leads from each tuple of an input to all other inputs (Theorem 3)."""

    chains: Chains
    root: int

    def holds(self, promises: Promises) -> bool:
        return self.chains.under(promises).reaches_all(self.root)

    def groupings(self, promises: Promises) -> Iterator[Grouping]:
        """The groupings of all other inputs by their join attributes; if it does not hold, of those where chains end.

        Chains do not reach these, although they know some of their join attributes: a scheme on these would lead on.
        """
        graph, found = self.chains.graph, self.chains.under(promises)
        holds, reached, known = found.reaches_all(self.root), found.reached(self.root), found.known(self.root)
        for i in range(graph.inputs):
            if i != self.root and (holds or i not in reached):
                names = [name for key, name in graph.keys(i).items() if holds or key in known]
                linked = [link for link in graph.links if link.bounded == i and (holds or link.bounding in reached)]
                if names:
                    linked_names = dict.fromkeys(name for link in linked for name in link.attributes)
                    yield Grouping(i, (*names, *linked_names), null=False)
