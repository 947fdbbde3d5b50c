"""Changes to a query that make it emit its results and bound its state: punctuate rules, windows, join bounds.

A rule adds punctuations that a source does not send. A window splits groups that nothing closes into groups that time
closes. A bound in a join condition lets time close kept tuples. A change is proposed only if the plan with it is
enabled and safe, by itself; rules may be proposed together, one for each source that needs one.

Changes name attributes of sources: `origins` traces an attribute of a node to the source attributes that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Protocol, TypeAlias

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import GroupsBy, JoinsTwo
from xmlstream.operators.closing_conditions import most_values
from xmlstream.operators.expressions.dialect import conjoined, expression, render
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.project import Project
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.order import ByOrder
from xmlstream.operators.window import Window
from xmlstream.optimizer.choose_joins import joined_at_once
from xmlstream.plan.nodes import Node, Scan, Static, topological
from xmlstream.punct_ns.numeric_type import IntegerType
from xmlstream.punct_ns.schema import END, START, Attribute, Schema, written_name
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import TemporalType, TimestampType
from xmlstream.safety.remedies import remedies
from xmlstream.safety.verdicts import OperatorVerdict, judged

Origin: TypeAlias = tuple[Node, str]
"""A source and one of its attributes."""


@lru_cache(maxsize=4096)  # a chain of nodes is asked from each of them
def origins(node: Node, name: str) -> tuple[Origin, ...]:
    """The source attributes that an attribute of a node comes from, each once.

    A merged or coalesced attribute has several; an attribute that an operator creates has none. A computed attribute
    has the one attribute whose closing closes it, if there is one.
    """
    if isinstance(node.operator, Scan | Static):
        return ((node, node.schema.attribute(name).name),)
    found = node.operator.origins(name, *node.input_schemas)
    return _all_of([origins(node.inputs[i], of) for i, of in found])


def _all_of(found: Sequence[tuple[Origin, ...]]) -> tuple[Origin, ...]:
    """The origins, each once; none if one of several attributes has none."""
    return tuple(dict.fromkeys(one for each in found for one in each)) if all(found) else ()


def by_source(found: Sequence[tuple[Origin, ...]]) -> list[tuple[Node, tuple[str, ...]]]:
    """GroupsBy the origins of attributes by source; empty if an attribute has none."""
    if not all(found):
        return []
    sources: dict[Node, dict[str, None]] = {}
    for each in found:
        for node, name in each:
            sources.setdefault(node, {})[name] = None
    return [(node, tuple(names)) for node, names in sources.items()]


HOUR = 3_600_000_000
"""Length of proposed windows and bounds, in microseconds; any other length is as good."""

TRIED = 50
"""Most changes of each kind to try."""

MOST_LISTED = 2
"""Most attributes of a key whose values are proposed to be listed."""


class Change(Protocol):
    """A change to a query; its text is the advice to the user."""

    def applied(self, root: Node) -> Node:
        """The plan with the change."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rules that punctuate sources in the order of an attribute: pairs of a source's name and an attribute."""

    rules: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        rules = " and ".join(f"punctuate 'order of {name}' on {source}" for source, name in self.rules)
        return f"declare {rules}, if tuples come in that order"

    def applied(self, root: Node) -> Node:
        """The plan with a punctuate operator on each of the sources."""
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
class Limited:
    """Finite domains of attributes whose every value is kept, or that a source's punctuations name beside others.

    `attributes` are pairs of a source's name and an attribute, all of strings or of integers.
    """

    attributes: tuple[tuple[str, Attribute], ...]

    def __str__(self) -> str:
        (_, first), *others = self.attributes
        lists: dict[str, list[str]] = {}
        for source, attribute in self.attributes:
            lists.setdefault(source, []).append(f"{written_name(attribute.name)} {{…}}")
        domains = " and ".join(dict.fromkeys(f"domains '{', '.join(of)}'" for of in lists.values()))
        bounds = f"; or, if it is NOT NULL, bound it: domains '{written_name(first.name)} 0..99'"
        return (
            f"list what {' and '.join(dict.fromkeys(a.name for _, a in self.attributes))} can be in the options of"
            f" {' and '.join(lists)}, if that is known: {domains}{bounds if _is_whole(first) and not others else ''}"
        )

    def applied(self, root: Node) -> Node:
        """The plan with each of the attributes limited to two values; any others are as good."""
        others: dict[Node, Node] = {}
        for node in topological(root):
            if isinstance(scan := node.operator, Scan):
                of_it = [attribute for source, attribute in self.attributes if source == scan.name]
                limits = [f"{written_name(a.name)} {'{1, 3}' if _is_whole(a) else '{a, b}'}" for a in of_it]
                domains = ", ".join(filter(None, [dict(scan.options.given).get("domains"), *limits]))
                if limits:
                    scan = replace(scan, options=scan.options.replace(domains=domains))
                    others[node] = Node(scan, (), node.label)
        limited: dict[Node, Node] = {}
        for node in topological(root):
            below = tuple(limited[input_] for input_ in node.inputs)
            operator = node.operator
            if isinstance(operator, Project):
                operator = Project(tuple(_of_input(column, below[0].schema) for column in operator.columns))
            limited[node] = others.get(node) or Node(operator, below, node.label)
        return limited[root]


def _of_input(column: Column, given: Schema) -> Column:
    """The column; one that copies an attribute has its domain, which may have become smaller."""
    if column.copy_of is None or (of := given.attribute(column.copy_of).domain).type != column.attribute.domain.type:
        return column
    return replace(column, attribute=replace(column.attribute, domain=of))


def _is_whole(attribute: Attribute) -> bool:
    return isinstance(attribute.domain.sql, IntegerType)


@dataclass(frozen=True, slots=True)
class Windowed:
    """A time window as a further grouping key; `below` is the input of the group_by, with the timestamp `of`."""

    node: Node
    below: Node
    of: str
    called: str

    def __str__(self) -> str:
        return f"also group by a window: GROUP BY …, window({self.called}, '1 hour')"

    def applied(self, root: Node) -> Node:
        """The plan with the groups of each window separate."""
        operator = self.node.operator
        assert isinstance(operator, GroupsBy)
        window = Window(self.of, HOUR, HOUR, name="__window")
        ends = tuple(f"{window.name}{end}" for end in (START, END))
        grouped = operator.by_more(*ends)
        return _instead(root, {self.node: Node(grouped, (Node(window, (self.below,), "window"),), self.node.label)})


@dataclass(frozen=True, slots=True)
class Bounded:
    """A bound in time as a further join condition; `inputs` are those of the join, with the timestamps."""

    node: Node
    inputs: tuple[Node, Node]
    left: str
    right: str
    called: tuple[str, str]

    def __str__(self) -> str:
        left, right = self.called
        inputs = ""
        if left.partition(".")[0] == right.partition(".")[0]:
            # A plan does not know the aliases of a query that joins a source with itself.
            left, right = (
                f"{side}.{name.rpartition('.')[2]}" for side, name in zip(("left", "right"), self.called, strict=True)
            )
            inputs = ", with left and right for the aliases of its inputs"
        return f"bound the join in time{inputs}: … AND {right} BETWEEN {left} AND {left} + INTERVAL '1' HOUR"

    def applied(self, root: Node) -> Node:
        """The plan with the bound."""
        operator = self.node.operator
        assert isinstance(operator, JoinsTwo)
        low, high = quoted(self.left), f"{quoted(self.left)} + INTERVAL '1' HOUR"
        bound = expression(f"{quoted(self.right)} BETWEEN {low} AND {high}")
        before = [expression(operator.residual)] if operator.residual else []
        whole = conjoined([*before, bound])
        assert whole is not None
        joined = operator.with_residual(render(whole)).bounded(*(below.schema for below in self.inputs))
        return _instead(root, {self.node: Node(joined, self.inputs, self.node.label)})


def changes(root: Node, *, follow: bool) -> list[Change]:
    """Returns changes that make a plan enabled and safe, at most one of each kind; none if the plan already is."""
    verdict = judged(root, follow=follow)
    if not (troubled := verdict.troubled()):
        return []
    tried: list[Iterator[Change]] = [_limited(root, troubled), _ordered(root, follow=follow)]
    tried += [_windows(root, troubled), _bounds(root, troubled)]

    def mends(change: Change) -> bool:
        found = judged(joined_at_once(change.applied(root)), follow=follow)
        return found.is_enabled and found.is_safe

    firsts: list[Change] = []
    for kind in tried:
        firsts += islice((change for change in islice(kind, TRIED) if mends(change)), 1)
    return firsts


def _limited(root: Node, troubled: Sequence[OperatorVerdict]) -> Iterator[Limited]:
    """Finite domains of attributes that sources name beside others, value by value, and of keys kept for ever."""
    for node in topological(root):
        if isinstance(scan := node.operator, Scan):
            several = (scheme for scheme in scan.options.schemes if len(scheme.terms) > 1)
            for name in dict.fromkeys(
                term.attribute for scheme in several for term in scheme.terms if term.kind == "each"
            ):
                yield from _limits(((node, name),))
    for one in troubled:
        for kept in (kept for kept in one.keeps if not kept.is_bounded and kept.model.per is not None):
            below, per = one.node.inputs[kept.model.input], kept.model.per or ()
            found = [origins(below, a.name) if a.name in below.schema.names else () for a in per]
            if len(found) <= MOST_LISTED and all(found):
                yield from _limits(tuple(dict.fromkeys(origin for each in found for origin in each)))


def _limits(keys: Sequence[Origin]) -> Iterator[Limited]:
    """The limit of these attributes of sources, if those without one can have one."""
    named = [(node, node.schema.attribute(name)) for node, name in keys]
    endless = [(node, a) for node, a in named if most_values(Schema((a,))) is None]
    can_be = [
        isinstance(node.operator, Scan)
        and (a.domain.low, a.domain.high) == (None, None)
        and isinstance(a.domain.sql, IntegerType | StringType)
        for node, a in endless
    ]
    if endless and all(can_be):
        yield Limited(tuple((node.label, a) for node, a in endless))


def _ordered(root: Node, *, follow: bool) -> Iterator[Ordered]:
    """Rules for the prefixes that `remedies` would have sources promise; orders of time before orders of numbers."""
    schemas = {node.operator.name: node.schema for node in topological(root) if isinstance(node.operator, Scan)}

    def of_numbers(rules: tuple[tuple[str, str], ...]) -> int:
        return sum(not isinstance(schemas[source].attribute(name).domain.sql, TemporalType) for source, name in rules)

    found = [
        tuple((source, scheme.terms[0].attribute) for source, scheme in remedy.promises)
        for remedy in remedies(root, follow=follow, most=TRIED, kinds=["prefix"])
    ]
    yield from map(Ordered, sorted(found, key=of_numbers))


def _windows(root: Node, troubled: Sequence[OperatorVerdict]) -> Iterator[Windowed]:
    """Windows over the timestamps in the input of a grouping."""
    for one in troubled:
        if isinstance(one.node.operator, GroupsBy) and _is_alone_above(root, one.node):
            for below, name in _with_moments(one.node.inputs[0]):
                yield Windowed(one.node, below, name, _called(below, name))


def _is_alone_above(root: Node, node: Node) -> bool:
    """Whether only operators with one input are above a node."""
    while root != node and len(root.inputs) == 1:
        (root,) = root.inputs
    return root == node


def _bounds(root: Node, troubled: Sequence[OperatorVerdict]) -> Iterator[Bounded]:
    """Bounds between the timestamps of the two inputs of a join."""
    for one in troubled:
        if isinstance(one.node.operator, JoinsTwo) and _is_alone_above(root, one.node):
            for (left, mine), (right, theirs) in product(
                _with_moments(one.node.inputs[0], "left"), _with_moments(one.node.inputs[1], "right")
            ):
                if left.schema.attribute(mine).domain.sql == right.schema.attribute(theirs).domain.sql:
                    called = _called(left, mine), _called(right, theirs)
                    yield Bounded(one.node, (left, right), mine, theirs, called)


def _with_moments(node: Node, side: str = "") -> Iterator[tuple[Node, str]]:
    """The timestamps of an input, each with the input; a projected-away timestamp is added again under a new name."""
    for attribute in node.schema:
        if isinstance(attribute.domain.sql, TimestampType):
            yield node, attribute.name
    selection = node.operator.selection(*node.input_schemas)
    if selection is None or node.operator.declared_in:
        return
    for below, name in _with_moments(node.inputs[0], side):
        if isinstance(node.operator, Project):
            moment = Attribute(f"{side} {name} there", below.schema.attribute(name).domain)
            column = Column(moment, quoted(name), name)
            yield Node(Project((*node.operator.columns, column)), (below,), node.label), moment.name
        elif not selection.conditions:
            yield below, name
        elif below != node.inputs[0]:
            yield Node(node.operator, (below,), node.label), name


def _called(node: Node, name: str) -> str:
    """The name of an attribute in its source, qualified by the source's name."""
    found = origins(node, name)
    return f"{found[0][0].label}.{found[0][1]}" if len(found) == 1 else name


def _instead(root: Node, others: Mapping[Node, Node]) -> Node:
    """The plan with some nodes replaced."""
    done: dict[Node, Node] = {}
    for node in topological(root):
        inputs = tuple(done[below] for below in node.inputs)
        done[node] = others[node] if node in others else Node(node.operator, inputs, node.label)
    return done[root]
