"""Changes to a query that make it emit its results and bound its state: punctuate rules, windows, join bounds.

A rule states what a source does not promise; a window makes groups that time closes from groups that nothing closes; a
bound lets time close what a join waits for. Each is tried: the plan with it must be enabled and safe. A change that
helps only together with others is not proposed, except rules: each source that must promise something needs one.

A change is written for sources, so `origins` finds the source attributes that an attribute of a node is, or is computed
from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Protocol, TypeAlias

from operators.describe import Describe
from operators.difference import Difference
from operators.expressions.dialect import conjoined, expression, render
from operators.expressions.output_columns import Column
from operators.group_by import GroupBy
from operators.intersect import Intersect
from operators.join import Join
from operators.merge import Merge
from operators.project import Project
from operators.punctuate import Punctuate
from operators.punctuators.order import ByOrder
from operators.select import Select
from operators.semi_join import SemiJoin
from operators.window import Window
from punct_ns.schema import END, START, Attribute
from punct_ns.slices import quoted
from punct_ns.temporal_type import TemporalType, TimestampType
from xmlstream.plan.nodes import Node, Results, Scan, Static, topological
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import OperatorVerdict, judged

Origin: TypeAlias = tuple[Node, str]
"""A source and one of its attributes."""


def origins(node: Node, name: str) -> tuple[Origin, ...]:
    """What an attribute comes from, once each: several of what is merged or coalesced, none of what an operator makes.

    Of what is computed it is the one attribute whose closing closes it, where there is one.
    """
    operator = node.operator
    match operator:
        case Scan() | Static():
            return ((node, node.schema.attribute(name).name),)
        case Results():
            return ()
        case Merge() | Intersect() | Difference():
            at = node.schema.index(name)
            found = [origins(below, below.schema.names[at]) for below in node.inputs]
            return tuple(dict.fromkeys(one for each in found for one in each)) if all(found) else ()
        case Project(columns=columns):
            (column,) = (column for column in columns if column.attribute.name.lower() == name.lower())
            sources = [each.source for each in column.either or (column,) if each.source]
            found = [origins(node.inputs[0], source) for source in sources]
            return tuple(dict.fromkeys(one for each in found for one in each)) if all(found) else ()
    if len(node.inputs) == 1 and (line := operator.lineage([name], node.inputs[0].schema)) and len(line[0]) == 1:
        return origins(node.inputs[0], line[0][0])
    having = [below for below in node.inputs if name.lower() in map(str.lower, below.schema.names)]
    return origins(having[0], name) if len(having) == 1 else ()


def by_source(found: Sequence[tuple[Origin, ...]]) -> list[tuple[Node, tuple[str, ...]]]:
    """Attributes' origins by their sources; nothing where one of them has none."""
    if not all(found):
        return []
    sources: dict[Node, dict[str, None]] = {}
    for each in found:
        for node, name in each:
            sources.setdefault(node, {})[name] = None
    return [(node, tuple(names)) for node, names in sources.items()]


HOUR = 3_600_000_000
"""The length of windows and bounds that are proposed, in microseconds: any other serves as well."""

TRIED = 50
"""Changes that are tried of each kind."""


class Change(Protocol):
    """Something to change in a query, whose text says what."""

    def applied(self, root: Node) -> Node:
        """The plan with it."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rules by which sources are punctuated in the order of an attribute, each by its source's name."""

    rules: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        said = " and ".join(f"punctuate 'order of {name}' on {source}" for source, name in self.rules)
        return f"declare {said}, where tuples come in that order"

    def applied(self, root: Node) -> Node:
        """The plan with a punctuate on each of the sources."""
        wanted = dict(self.rules)
        return _instead(
            root,
            {
                node: Node(Punctuate(ByOrder(wanted[node.operator.name])), (node,), "punctuate")
                for node in topological(root)
                if isinstance(node.operator, Scan) and node.operator.name in wanted
            },
        )


@dataclass(frozen=True, slots=True)
class Windowed:
    """A window in time beside what is grouped by; `below` is the group_by's input, with the moment."""

    node: Node
    below: Node
    of: str
    called: str

    def __str__(self) -> str:
        return f"group by a window, too: GROUP BY …, window({self.called}, '1 hour')"

    def applied(self, root: Node) -> Node:
        """The plan with the groups of each window apart."""
        operator = self.node.operator
        assert isinstance(operator, GroupBy)
        window = Window(self.of, HOUR, HOUR, name="__window")
        ends = tuple(f"{window.name}{end}" for end in (START, END))
        grouped = replace(operator, keys=(*operator.keys, *ends))
        return _instead(root, {self.node: Node(grouped, (Node(window, (self.below,), "window"),), self.node.label)})


@dataclass(frozen=True, slots=True)
class Bounded:
    """A bound in time beside what is joined on; `inputs` are the join's, with the moments."""

    node: Node
    inputs: tuple[Node, Node]
    left: str
    right: str
    called: tuple[str, str]

    def __str__(self) -> str:
        left, right = self.called
        return f"bound what is joined: … AND {right} BETWEEN {left} AND {left} + INTERVAL '1' HOUR"

    def applied(self, root: Node) -> Node:
        """The plan with the bound."""
        operator = self.node.operator
        assert isinstance(operator, Join | SemiJoin)
        low, high = quoted(self.left), f"{quoted(self.left)} + INTERVAL '1' HOUR"
        bound = expression(f"{quoted(self.right)} BETWEEN {low} AND {high}")
        before = [expression(operator.residual)] if operator.residual else []
        whole = conjoined([*before, bound])
        assert whole is not None
        joined = replace(operator, residual=render(whole)).bounded(*(below.schema for below in self.inputs))
        return _instead(root, {self.node: Node(joined, self.inputs, self.node.label)})


def changes(root: Node, *, follow: bool) -> list[Change]:
    """The changes of a plan that mend it, one of each kind at the most; none if it needs none."""
    verdict = judged(root, follow=follow)
    if not (troubled := verdict.troubled()):
        return []
    tried: list[Iterator[Change]] = [_ordered(root, follow=follow), _windows(root, troubled), _bounds(root, troubled)]

    def mends(change: Change) -> bool:
        found = judged(change.applied(root), follow=follow)
        return found.is_enabled and found.is_safe

    firsts: list[Change] = []
    for kind in tried:
        firsts += islice((change for change in islice(kind, TRIED) if mends(change)), 1)
    return firsts


def _ordered(root: Node, *, follow: bool) -> Iterator[Ordered]:
    """Rules by which sources say what it would help that they promise by prefixes; by time rather than by numbers."""
    schemas = {node.operator.name: node.schema for node in topological(root) if isinstance(node.operator, Scan)}

    def of_numbers(rules: tuple[tuple[str, str], ...]) -> int:
        return sum(not isinstance(schemas[source].attribute(name).domain.sql, TemporalType) for source, name in rules)

    found = [
        tuple((source, scheme.terms[0].attribute) for source, scheme in remedy.promises)
        for remedy in remedies(root, follow=follow, most=TRIED, kinds=["prefix"])
    ]
    yield from map(Ordered, sorted(found, key=of_numbers))


def _windows(root: Node, troubled: Sequence[OperatorVerdict]) -> Iterator[Windowed]:
    """Windows of the moments of what is grouped."""
    for one in troubled:
        if isinstance(one.node.operator, GroupBy) and _is_alone_above(root, one.node):
            for below, name in _with_moments(one.node.inputs[0]):
                yield Windowed(one.node, below, name, _called(below, name))


def _is_alone_above(root: Node, node: Node) -> bool:
    """Whether one way leads from the root to a node, by operators of one input each."""
    while root != node and len(root.inputs) == 1:
        (root,) = root.inputs
    return root == node


def _bounds(root: Node, troubled: Sequence[OperatorVerdict]) -> Iterator[Bounded]:
    """Bounds between the moments of what is joined."""
    for one in troubled:
        if isinstance(one.node.operator, Join | SemiJoin) and _is_alone_above(root, one.node):
            for (left, mine), (right, theirs) in product(
                _with_moments(one.node.inputs[0], "left"), _with_moments(one.node.inputs[1], "right")
            ):
                if left.schema.attribute(mine).domain.sql == right.schema.attribute(theirs).domain.sql:
                    called = _called(left, mine), _called(right, theirs)
                    yield Bounded(one.node, (left, right), mine, theirs, called)


def _with_moments(node: Node, side: str = "") -> Iterator[tuple[Node, str]]:
    """The moments of an input, each with the input; those that are left out there are put in again, under new names."""
    for attribute in node.schema:
        if isinstance(attribute.domain.sql, TimestampType):
            yield node, attribute.name
    match node.operator:
        case Describe():
            yield from _with_moments(node.inputs[0], side)
        case Select():
            for below, name in _with_moments(node.inputs[0], side):
                if below != node.inputs[0]:
                    yield Node(node.operator, (below,), node.label), name
        case Project(columns=columns):
            for below, name in _with_moments(node.inputs[0], side):
                moment = Attribute(f"{side} {name} there", below.schema.attribute(name).domain)
                yield Node(Project((*columns, Column(moment, quoted(name), name))), (below,), node.label), moment.name


def _called(node: Node, name: str) -> str:
    """What an attribute is called in its source, with the source's name."""
    found = origins(node, name)
    return f"{found[0][0].label}.{found[0][1]}" if len(found) == 1 else name


def _instead(root: Node, others: Mapping[Node, Node]) -> Node:
    """The plan with other nodes in the places of some."""
    done: dict[Node, Node] = {}
    for node in topological(root):
        inputs = tuple(done[below] for below in node.inputs)
        done[node] = others[node] if node in others else Node(node.operator, inputs, node.label)
    return done[root]
