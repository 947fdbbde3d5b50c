"""Regions of inner joins in two plans: whether the joins of a new plan mean the same as other joins of the old one.

A region is a tree of inner joins, each read by the next alone; selects and projections may stand between. Its inputs
are what the lowest ones read. However it joins them, at once, one after the other or in groups, its tuples are the
combinations of one tuple of each input that satisfy all its conditions: equalities and others, those of its inputs, and
those between its joins. Both regions are compared as that: over the same inputs (`EarlierStream`), with attributes that
must be equal written as one, so that a condition that a planner copies to an equal attribute is no other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, permutations, product
from typing import TYPE_CHECKING, Any, TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import Combines
from xmlstream.operators.expressions.dialect import attributes_in, brief, conjuncts, expression, in_terms, render
from xmlstream.operators.taking_over import Differs, Names
from xmlstream.plan.nodes import Node, Scan, Static, topological
from xmlstream.punct_ns.slices import quoted

if TYPE_CHECKING:
    from xmlstream.runtime.change.plan_comparison import EarlierStream


Groups: TypeAlias = Mapping[str, AbstractSet[str]]
"""For each term all that equal it, itself included."""

MOST_PAIRINGS = 720
"""The ways that are tried to find the inputs of one region in another one, where several read the same."""


@dataclass(frozen=True, slots=True)
class JoinTree:
    """A region of inner joins.

    Attributes:
        root: The topmost join.
        inputs: Its inputs.
        inner: The nodes of the region, each after its inputs; the topmost join is the last one.
        terms: For each node of the region and each input, its attributes, in lower case, as Spark SQL over those of the
            inputs, which are called `0:name`, `1:name` and so on.
        equal: Pairs of equal terms.
        conditions: The other conditions on combinations.
    """

    root: Node
    inputs: tuple[Node, ...]
    inner: tuple[Node, ...]
    terms: Mapping[Node, Names]
    equal: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]

    @property
    def joins(self) -> list[Node]:
        """The joins of the region, each after those below it."""
        return [node for node in self.inner if len(node.inputs) > 1]

    @property
    def blocks(self) -> list[tuple[Node, int]]:
        """The inputs of joins that are results of others, each as the join and the number of its input."""
        return [(join, i) for join in self.joins for i, below in enumerate(join.inputs) if below not in self.inputs]

    def __str__(self) -> str:
        return self.written(self.root)

    def written(self, node: Node) -> str:
        """A node of the region in one line, over the sources of its inputs."""
        if node in self.inputs:
            leaves = {below.label for below in topological(node) if isinstance(below.operator, Scan | Static)}
            return min(leaves) if len(leaves) == 1 else node.label
        if len(node.inputs) == 1:
            return self.written(node.inputs[0])
        return f"{node.label}({', '.join(map(self.written, node.inputs))})"


def join_trees(root: Node) -> list[JoinTree]:
    """The regions of a plan, the topmost first."""
    uses = Counter(below for node in topological(root) for below in node.inputs)
    found, inner = list[JoinTree](), set[Node]()
    for node in reversed(topological(root)):
        if _is_join(node) and node not in inner:
            walk = _Walk(node, uses)
            inner.update(walk.inner)
            if len({*walk.inputs}) == len(walk.inputs):
                found.append(walk.tree())
    return found


def _is_join(node: Node) -> bool:
    return isinstance(node.operator, Combines) and node.operator.equal is not None


class _Walk:
    """Collects the parts of a region from the topmost join down."""

    def __init__(self, root: Node, uses: Mapping[Node, int]) -> None:
        self._root, self._uses = root, uses
        self.inputs, self.inner, self.terms = list[Node](), list[Node](), dict[Node, Names]()
        self._equal, self._conditions = list[tuple[str, str]](), list[str]()
        self._of(root)

    def tree(self) -> JoinTree:
        """The region."""
        return JoinTree(
            self._root,
            tuple(self.inputs),
            tuple(self.inner),
            self.terms,
            tuple(self._equal),
            tuple(self._conditions),
        )

    def _of(self, node: Node) -> Names:
        if node is not self._root and not self._leads_to_join(node):
            number = len(self.inputs)
            self.inputs.append(node)
            terms: Names = {name.lower(): quoted(f"{number}:{name.lower()}") for name in node.schema.names}
        elif _is_join(node):
            terms = self._of_join(node)
            self.inner.append(node)
        else:
            terms = self._between(node, self._of(node.inputs[0]))
            self.inner.append(node)
        self.terms[node] = terms
        return terms

    def _leads_to_join(self, node: Node) -> bool:
        """Whether a node belongs to the region: it is a join, or hands on the tuples of one, for one reader."""
        while self._uses[node] == 1 and not _is_join(node):
            if len(node.inputs) != 1 or node.operator.selection(*node.input_schemas) is None:
                return False
            (node,) = node.inputs
        return self._uses[node] == 1

    def _of_join(self, node: Node) -> Names:
        places = [self._of(below) for below in node.inputs]
        assert isinstance(node.operator, Combines)
        for (i, one), (j, other) in node.operator.equal or ():
            self._equal.append((places[i][one.lower()], places[j][other.lower()]))
        whole = {name: text for known in places for name, text in known.items()}
        if node.operator.residual:
            self._add_conditions(node.operator.residual, whole)
        return whole

    def _between(self, node: Node, below: Names) -> Names:
        selection = node.operator.selection(*node.input_schemas)
        assert selection is not None
        for text in selection.conditions:
            self._add_conditions(text, below)
        if selection.columns is None:
            return below
        return {name.lower(): render(in_terms(expression(text), below)) for name, text in selection.columns.items()}

    def _add_conditions(self, text: str, terms: Names) -> None:
        self._conditions += (render(in_terms(part, terms)) for part in conjuncts(expression(text)))


@dataclass(frozen=True, slots=True)
class Rejoined:
    """A region of the new plan that joins the inputs of one of the old plan in another way.

    Attributes:
        old: The region of the old plan.
        new: The region of the new plan.
        numbers: For each input of the new region the number of the old one.
        inputs: For each input of the new region the old names of its attributes.
        conditions: For each input of the new region what its tuples satisfy beyond those of the old one, over these.
        output: The old names of the attributes of the topmost join.
    """

    old: JoinTree
    new: JoinTree
    numbers: tuple[int, ...]
    inputs: tuple[Names, ...]
    conditions: tuple[tuple[str, ...], ...]
    output: Names

    def needed(self, i: int) -> list[str]:
        """The attributes of the old input that belongs to an input of the new region, as far as they are needed."""
        used = (name.lower() for text in self.conditions[i] for name in attributes_in(text))
        return list(dict.fromkeys([*self.inputs[i].values(), *used]))

    def lacking(self, join: Node, side: int) -> list[str]:
        """The attributes of inputs that the rows of joined tuples lack which an old join keeps of an input."""
        parts = self.parts(join, side).values()
        return list(dict.fromkeys(name for columns in parts for name, column in columns.items() if column is None))

    def parts(self, join: Node, side: int) -> dict[int, dict[str, str | None]]:
        """For an input of an old join that is a result of others, the inputs whose tuples its rows consist of.

        For each of these, by its number, the attributes that are needed of it, with those of the rows that have their
        values; None if none has.
        """
        below, there = join.inputs[side], dict[str, str]()
        within = set(topological(below))
        numbers = [number for number, each in enumerate(self.old.inputs) if each in within]
        equal = _groups(pair for pair in self.old.equal if all(_input_of(term) in numbers for term in pair))
        for name, term in self.old.terms[below].items():
            for same in (term, *equal.get(term, ())):
                there.setdefault(same, name)
        return {
            number: {name: there.get(quoted(f"{number}:{name}")) for name in self.needed(self.numbers.index(number))}
            for number in numbers
        }


class _Meaning:
    """What the tuples of a region are, over the bases of its inputs; attributes of base `i` are called `i:name`.

    Attributes:
        columns: For each base the attributes of the input.
        selected: For each base what the tuples of the input satisfy.
        within: For each base the terms that are equal in each tuple of the input.
        group: The terms that are equal in each tuple of the region.
        equal: The same, to be compared.
        conditions: All other conditions.
    """

    def __init__(self, tree: JoinTree, streams: Sequence[EarlierStream], numbers: Sequence[int]) -> None:
        over = [
            ({n: _over(text, i) for n, text in of.columns.items()}, [_over(text, i) for text in of.conditions])
            for of, i in zip(streams, numbers, strict=True)
        ]
        self.columns, self.selected = [columns for columns, _ in over], [selected for _, selected in over]
        self._terms = {f"{i}:{name}": text for i, of in enumerate(self.columns) for name, text in of.items()}
        self.within = [_groups(filter(None, map(_equated, of))) for of in self.selected]
        conditions = [*(text for of in self.selected for text in of), *map(self.of, tree.conditions)]
        pairs = [(self.of(one), self.of(other)) for one, other in tree.equal]
        self.group = _groups([*pairs, *filter(None, map(_equated, conditions))])
        self.equal = frozenset(frozenset(group) for group in self.group.values())
        written = {self._written(text) for text in conditions if _equated(text) is None}
        # A condition `a = a` says that it is not null, as an equality with another attribute does.
        present = {f"{text} = {text}" for text in self.group}
        self.conditions = frozenset(written - present)

    def of(self, text: str) -> str:
        """A term over the inputs of the region, over their bases.

        Raises:
            Differs: It uses an attribute that is not known there.
        """
        tree = expression(text)
        if not {name.lower() for name in attributes_in(tree)} <= self._terms.keys():
            raise Differs("it uses attributes that the query before did not read")
        return render(in_terms(tree, self._terms))

    def _written(self, condition: str) -> str:
        """A condition in one of the forms that it has by equal attributes."""
        tree = expression(condition)
        named = ((name.lower(), quoted(name)) for name in attributes_in(tree))
        plain = {text: [t for t in self.group.get(text, ()) if expression(t).key == "column"] for _, text in named}
        return render(in_terms(tree, {expression(t).name.lower(): min(of, default=t) for t, of in plain.items()}))


def _input_of(term: str) -> int | None:
    """The number of the input whose attribute a term is; None if it is computed."""
    tree = expression(term)
    return int(tree.name.partition(":")[0]) if tree.key == "column" else None


def _over(text: str, number: int) -> str:
    tree = expression(text)
    return render(in_terms(tree, {name.lower(): quoted(f"{number}:{name.lower()}") for name in attributes_in(tree)}))


def _equated(condition: str) -> tuple[str, str] | None:
    """The attributes that a condition says are equal; None for any other condition."""
    tree: Any = expression(condition)
    sides = (tree.this, tree.expression) if tree.key == "eq" else ()
    if not sides or any(side.key != "column" for side in sides) or sides[0] == sides[1]:
        return None
    return render(sides[0]), render(sides[1])


def _groups(pairs: Iterable[tuple[str, str]]) -> Groups:
    """For each term the group of all that pairs make equal to it."""
    found: dict[str, set[str]] = {}
    for one, other in pairs:
        group = found.get(one, {one}) | found.get(other, {other})
        found |= dict.fromkeys(group, group)
    return found


def rejoined(
    new: JoinTree, old: JoinTree, streams: Sequence[EarlierStream], before: Sequence[EarlierStream]
) -> Rejoined:
    """A region of the new plan that means the same as one of the old plan, over inputs with these streams.

    Raises:
        Differs: It means something else, or its inputs were kept without an attribute that it needs.
    """
    reasons = list[str]()
    best: tuple[int, Rejoined] | None = None
    earlier = _Meaning(old, before, range(len(before)))
    for numbers in islice(_pairings(streams, before), MOST_PAIRINGS):
        try:
            found = _paired(new, old, _Meaning(new, streams, numbers), earlier, numbers)
        except Differs as differs:
            reasons.append(str(differs))
            continue
        alike = sum(name == other for name, other in found.output.items())
        if best is None or alike > best[0]:
            best = alike, found
    if best is None:
        raise Differs(reasons[0])
    return best[1]


def _pairings(streams: Sequence[EarlierStream], before: Sequence[EarlierStream]) -> Iterator[tuple[int, ...]]:
    """The ways to give each input one of the old region's inputs over the same base, each to one of them."""
    there, here = dict[Node, list[int]](), dict[Node, list[int]]()
    for of, inputs in ((there, before), (here, streams)):
        for number, stream in enumerate(inputs):
            of.setdefault(stream.base, []).append(number)
    for chosen in product(*(permutations(there[base]) for base in here)):
        given = {
            i: number
            for base, some in zip(here, chosen, strict=True)
            for i, number in zip(here[base], some, strict=True)
        }
        yield tuple(given[i] for i in range(len(streams)))


def _paired(new: JoinTree, old: JoinTree, now: _Meaning, earlier: _Meaning, numbers: Sequence[int]) -> Rejoined:
    if now.equal != earlier.equal:
        raise Differs("it joins by other attributes")
    if now.conditions != earlier.conditions:
        raise Differs("it joins under other conditions")
    inputs, conditions = list[Names](), list[tuple[str, ...]]()
    for i, number in enumerate(numbers):
        known, within = earlier.columns[number], earlier.within[number]
        further = [text for text in now.selected[i] if text not in earlier.selected[number]]
        more = {text: _back(text, known, within) for text in further}
        if unknown := [text for text, here in more.items() if here is None]:
            raise Differs(f"what it keeps lacks the attributes of {brief(unknown[0])}")
        inputs.append(_old_names(now.columns[i], known, within))
        conditions.append(tuple(here for here in more.values() if here is not None))
    roots = ((new, now), (old, earlier))
    output, before = ({n: of.of(text) for n, text in tree.terms[tree.root].items()} for tree, of in roots)
    return Rejoined(
        old, new, tuple(numbers), tuple(inputs), tuple(conditions), _old_names(output, before, earlier.group)
    )


def _old_names(now: Names, before: Names, group: Groups) -> Names:
    """For each attribute one that had the same value before, or one that always equals it."""
    there: dict[str, str] = {}
    for name, text in [*before.items(), *((name, _same(text, group)) for name, text in before.items())]:
        there.setdefault(text, name)
    found = {name: there.get(text, there.get(_same(text, group))) for name, text in now.items()}
    return {
        name: name if before.get(name) == now[name] else other for name, other in found.items() if other is not None
    }


def _back(text: str, columns: Names, group: Groups) -> str | None:
    """A condition over a base, over the attributes that copy those of the base; None if one has no copy."""
    tree = expression(text)
    named = {name.lower(): quoted(name) for name in attributes_in(tree)}
    found = _old_names(named, columns, group)
    if named.keys() - found.keys():
        return None
    return render(in_terms(tree, {name: quoted(found[name]) for name in named}))


def _same(text: str, group: Groups) -> str:
    """The term that stands for all that equal a term."""
    return min(group.get(text, (text,)))
