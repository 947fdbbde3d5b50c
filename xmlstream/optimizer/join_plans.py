"""Plans of a region of inner joins (all inputs at once, one after the other, or in groups), and their state.

A region is a tree of inner joins, described by its inputs and the equalities between them. Between two joins of a
region attributes may be renamed, left out, or computed, unless a join above compares what is computed: it is then
computed above the whole region, for fewer tuples. Any other operator ends the region, and so does a join with two
readers, which becomes an input. An expression that can raise an error must be computed only for the combinations that
the query names: each plan computes such a condition where all inputs of the join that has it are together.

Only safe plans are built, bottom-up: a join of inputs whose punctuation graph is strongly connected, where each input
is a source or again such a join. The cost of a plan is its state: the sum over the inputs of all joins of the rate of
the input, times the number of punctuations that a tuple waits for one after the other. The rate of a join's result is
the greatest rate of its inputs, as if each tuple had one partner.

Source: Li et al. 2006, §5.2. Theorems 2 and 4: if any plan is safe, so is the one join of all inputs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, combinations, pairwise, product

from sqlglot import exp

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.behaviour import Combines
from xmlstream.operators.expressions.dialect import (
    attributes_in,
    cast_to,
    conjuncts,
    expression,
    in_terms,
    named,
    render,
)
from xmlstream.operators.expressions.equalities import widened
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.expressions.throwable import throwable
from xmlstream.operators.expressions.type_rules import loses_nothing, lossless_cast
from xmlstream.operators.join import Join
from xmlstream.operators.joins.punctuation_graph import (
    Equality,
    InputAttribute,
    PunctuationGraph,
    equal_groups,
    promised_shapes_of,
)
from xmlstream.operators.joins.purge_strategy import EAGER, PurgeStrategy
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.project import Project
from xmlstream.operators.select import Select
from xmlstream.optimizer.push_down import conjunction, is_bound, selected, selected_within, with_computed
from xmlstream.plan.nodes import Names, Node, Scan, plain, projected, renamed
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class Residual:
    """A condition of a region, as Spark SQL, and the inputs that must be together before it is computed."""

    condition: str
    inputs: frozenset[int]


@dataclass(frozen=True, slots=True)
class JoinRegion:
    """A region of joins.

    Attributes:
        root: The topmost join.
        written: The inputs of the region, in an order that does not depend on how the query is written.
        inputs: The same inputs, with attributes renamed to distinct names. An input whose attributes must be equal
            selects the tuples in which they are.
        equalities: Pairs of equal attributes, each as (number of the input, name).
        residual: The conjuncts of all other conditions.
        equal: For an attribute in an equality, the equal one of its type of each input.
        output: For each attribute of the root its expression over attributes of the inputs, as Spark SQL.
        purge: The purge strategy that the query sets for one of the joins, the topmost first.
    """

    root: Node
    written: tuple[Node, ...]
    inputs: tuple[Node, ...]
    equalities: tuple[tuple[InputAttribute, InputAttribute], ...]
    residual: tuple[Residual, ...]
    equal: Mapping[str, Mapping[int, str]]
    output: Mapping[str, str]
    purge: PurgeStrategy = EAGER

    @property
    def joins(self) -> list[Node]:
        """Its joins, the topmost first."""
        found, ahead = list[Node](), [self.root]
        while ahead:
            node = ahead.pop()
            if node not in self.written:
                found += [node] if is_join(node) else []
                ahead += node.inputs
        return found

    @property
    def classes(self) -> tuple[Mapping[int, str], ...]:
        """Classes of equal attributes, by input."""
        return PunctuationGraph(len(self.inputs), self.equalities).classes

    def instead(self, node: Node) -> Node:
        """Another plan for the inputs, with the attributes of the root."""
        columns = []
        for attribute in self.root.schema:
            tree = expression(text := self.output[attribute.name])
            if isinstance(tree, exp.Column):
                of = node.schema.attribute(tree.name)
                columns.append(Column(Attribute(attribute.name, of.domain), quoted(of.name), of.name))
            else:
                columns.append(Column.computed(attribute, text, node.schema))
        return projected(node, columns)


def is_join(node: Node) -> bool:
    """Whether a node is a join that can belong to a region."""
    return isinstance(node.operator, Combines) and node.operator.equal is not None


def hands_on(node: Node, compared: AbstractSet[str]) -> bool:
    """Whether a node may be between two joins of a region: it selects, or computes none of the compared attributes."""
    passed = _passed(node)
    is_select = isinstance(node.operator, Select)
    return len(node.inputs) == 1 and (is_select or (passed is not None and compared <= passed.keys()))


def _passed(node: Node) -> Mapping[str, str] | None:
    """The names in its input of the attributes that a node hands on; None if it does not hand on all tuples."""
    if not isinstance(node.operator, Project):
        return node.operator.renames(*node.input_schemas)
    (schema,) = node.input_schemas
    pairs = [(c.attribute, schema.attribute(c.copy_of)) for c in node.operator.columns if c.copy_of is not None]
    return {attribute.name: source.name for attribute, source in pairs if attribute.domain == source.domain}


def region(root: Node, inner: Collection[Node]) -> JoinRegion:
    """The region below its topmost join; `inner` are the nodes that belong to the region of their reader."""
    walk = _Walk(inner)
    output = walk.of_join(root)
    equalities = walk.between_inputs()
    walk.select_within()
    order = sorted(range(len(walk.inputs)), key=lambda i: _written_form(walk.written[i]))
    place = {i: number for number, i in enumerate(order)}
    return JoinRegion(
        root,
        tuple(walk.written[i] for i in order),
        tuple(walk.inputs[i] for i in order),
        tuple(((place[i], one), (place[j], other)) for (i, one), (j, other) in equalities),
        tuple(Residual(part.condition, frozenset(place[i] for i in part.inputs)) for part in walk.residual),
        {name: {place[i]: one for i, one in names.items()} for name, names in walk.equal.items()},
        {name: output[name] for name in root.schema.names},
        walk.purge,
    )


def _written_form(node: Node) -> tuple[list[str], str]:
    """An order of inputs: the sources that they read, and the plan over them."""
    return sorted(_sources(node)), str(plain(node))


class _Walk:
    """Collects the parts of a region from the topmost join down."""

    def __init__(self, inner: Collection[Node]) -> None:
        self._inner = inner
        self._input_of: dict[str, int] = {}  # by the name of an attribute
        self._names = Names()
        self.written: list[Node] = []
        self.inputs: list[Node] = []
        self.equalities: list[tuple[InputAttribute, InputAttribute]] = []
        self.residual: list[Residual] = []
        self.purge = EAGER
        self.equal: dict[str, dict[int, str]] = {}  # for an attribute in an equality, the equal one of each input

    def of_join(self, node: Node) -> dict[str, str]:
        """Adds a join; returns for each of its attributes its expression over attributes of the inputs."""
        if not self.purge.chosen and isinstance(node.operator, Join | MultiwayJoin):
            self.purge = node.operator.purge
        places = [self._of_input(below) for below in node.inputs]
        assert isinstance(node.operator, Combines)
        for pair in node.operator.equal or ():
            one, other = (self._place(places[k][node.inputs[k].schema.attribute(name).name]) for k, name in pair)
            self.equalities.append((one, other))
        whole = {name: text for known in places for name, text in known.items()}
        if node.operator.residual:
            self._add_residual(node.operator.residual, whole)
        return whole

    def _add_residual(self, condition: str, whole: Mapping[str, str]) -> None:
        """Adds a condition on the attributes `whole`, which are expressions over those of inputs."""
        terms = {name.lower(): text for name, text in whole.items()}
        everything, every = self._used(*whole.values()), self._every
        for part in conjuncts(expression(condition)):
            tree = in_terms(part, terms)
            used = self._used(text := render(tree))
            together = everything if len(used) < 2 or throwable(tree, every) else used
            self.residual.append(Residual(text, together))

    @property
    def _every(self) -> Schema:
        return Schema(tuple(attribute for node in self.inputs for attribute in node.schema))

    def _place(self, text: str) -> InputAttribute:
        """The input's attribute that an expression is."""
        name = expression(text).name
        return self._input_of[name], name

    def _used(self, *texts: str) -> frozenset[int]:
        """The inputs whose attributes the expressions use."""
        return frozenset(self._input_of[name] for text in texts for name in attributes_in(text))

    def between_inputs(self) -> list[Equality]:
        """The equalities, with one attribute of each input among those that are equal; the input selects the others.

        Attributes of several types are compared in the widest of these: an input that has none of it computes one. If
        none is, as of a computed key whose type only an engine knows, they are compared as they are.
        """
        within = [((i, a), (i, b)) for i, node in enumerate(self.inputs) for a, b in equal_within(node)]
        known = {place: group[0] for group in equal_groups(within) for place in group}
        only: dict[InputAttribute, InputAttribute] = {}
        for group in equal_groups([*self.equalities, *within]):
            types = list(dict.fromkeys(map(self._type, group)))
            widest = next((type_ for type_ in types if all(loses_nothing(each, type_) for each in types)), None)
            self._compare(group, widest, known, only)
            for type_ in types:
                names: dict[int, str] = {}
                for i, name in (place for place in group if self._type(place) == type_):
                    self.equal[name] = names
                    names.setdefault(i, name)
        return [(only[one], only[other]) for one, other in self.equalities]

    def _type(self, place: InputAttribute) -> SqlType:
        i, name = place
        return self.inputs[i].schema.attribute(name).domain.sql

    def _compare(
        self,
        group: Sequence[InputAttribute],
        type_: SqlType | None,
        known: Mapping[InputAttribute, InputAttribute],
        only: dict[InputAttribute, InputAttribute],
    ) -> None:
        """Chooses for each input the attribute of the type that stands for those of the group, and has it select them.

        Args:
            group: Equal attributes.
            type_: The type in which they are compared; None for their own types.
            known: For an attribute that equals others of its input already, the first of these.
            only: Gets the chosen attribute for each of the group.
        """
        of_type: dict[InputAttribute, InputAttribute] = {}
        firsts: dict[int, InputAttribute] = {}
        for place in sorted(group, key=lambda place: type_ is not None and self._type(place) != type_):
            i, alike = place[0], known.get(place, place)
            if alike not in of_type:
                one = place if type_ is None or self._type(place) == type_ else self._widened(place, type_)
                of_type[alike] = one
                if firsts.setdefault(i, one) != one:
                    test = expression(f"{quoted(firsts[i][1])} = {quoted(one[1])}")
                    self.inputs[i] = selected(self.inputs[i], [test])
            only[place] = firsts[i]

    def _widened(self, place: InputAttribute, type_: SqlType) -> InputAttribute:
        """The attribute in a wider type, computed in its input."""
        i, name = place
        new = self._names.take(name)
        self._input_of[new] = i
        domain = self.inputs[i].schema.attribute(name).domain
        wide = lossless_cast(domain, type_.name) or Domain(type_.name, domain.nullable)
        text = render(cast_to(named(name), type_.name))
        self.inputs[i] = with_computed(self.inputs[i], new, wide, text)
        return i, new

    def select_within(self) -> None:
        """Has inputs select by the conditions on their own attributes, or on attributes that equal these."""
        every = self._every
        own = {name: {i: name} for i, node in enumerate(self.inputs) for name in node.schema.names}
        for part in self.residual.copy():
            tree = expression(part.condition)
            terms = {name: self.equal.get(name, own[name]) for name in attributes_in(tree)}
            fitting = [i for i in range(len(self.inputs)) if all(i in of for of in terms.values())]
            if fitting and not throwable(tree, every):
                self.residual.remove(part)
                for i in fitting:
                    mine = {name.lower(): quoted(of[i]) for name, of in terms.items()}
                    self.inputs[i] = selected(self.inputs[i], [in_terms(tree, mine)])

    def _of_input(self, node: Node) -> dict[str, str]:
        if node not in self._inner:
            return self._of_leaf(node)
        if isinstance(node.operator, Combines):
            return self.of_join(node)
        below = self._of_input(node.inputs[0])
        if isinstance(node.operator, Project):
            terms = {name.lower(): text for name, text in below.items()}
            return {c.attribute.name: render(in_terms(expression(c.expression), terms)) for c in node.operator.columns}
        if isinstance(node.operator, Select):
            self._add_residual(node.operator.predicate, below)
            return below
        return {name: below[source] for name, source in (_passed(node) or {}).items()}

    def _of_leaf(self, node: Node) -> dict[str, str]:
        """Adds an input, renamed where an earlier input has the same names."""
        free: dict[str, str] = {}
        for name in node.schema.names:
            new = self._names.take(name)
            self._input_of[new] = len(self.inputs)
            free[new] = name
        self.written.append(node)
        self.inputs.append(renamed(node, free))
        return {name: quoted(new) for new, name in free.items()}


def _copied(node: Node) -> Mapping[str, str]:
    """The names in its input of the attributes that a node hands on, unchanged or widened without loss."""
    if not isinstance(node.operator, Project):
        return (_passed(node) or {}) if len(node.inputs) == 1 else {}
    (schema,) = node.input_schemas
    places = ((c.attribute.name, widened(expression(c.expression), schema)) for c in node.operator.columns)
    return {name: schema[at].name for name, at in places if at is not None}


def equal_within(node: Node) -> list[tuple[str, str]]:
    """Pairs of attributes of a node that are equal in each of its tuples, by its selects, joins and copies.

    The types of a pair may differ, if one loses nothing in the other.
    """
    operator = node.operator
    if isinstance(operator, Select):
        return [*operator.equal, *equal_within(node.inputs[0])]
    if isinstance(operator, Combines) and operator.equal is not None:
        return [*((a, b) for (_, a), (_, b) in operator.equal), *chain(*map(equal_within, node.inputs))]
    called: dict[str, list[str]] = {}
    for name, source in _copied(node).items():
        called.setdefault(source, []).append(name)
    copies_ = [pair for several in called.values() for pair in pairwise(several)]
    pairs = equal_within(node.inputs[0]) if called else []
    groups = [
        [name for _, source in group for name in called.get(source, ())]
        for group in equal_groups(((0, a), (0, b)) for a, b in pairs)
    ]
    return [*copies_, *(pair for several in groups for pair in pairwise(several))]


MOST = 6
"""Inputs up to which all safe plans are tried; for more only the one join of all inputs."""

_END = Scheme(())


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A plan for some inputs of a region.

    Attributes:
        inputs: The numbers of these inputs.
        node: The plan.
        text: The plan in one line.
        rate: Rate of its output tuples, relative to other inputs.
        kept: Number of tuples that it keeps; infinite if it is not safe.
    """

    inputs: frozenset[int]
    node: Node
    text: str
    rate: float = 1.0
    kept: float = 0.0

    @property
    def is_safe(self) -> bool:
        """Whether all kept tuples are purged, or belong to inputs that end."""
        return self.kept < math.inf


def written(region: JoinRegion) -> JoinPlan:
    found = {id(node): replace(leaf, node=node) for node, leaf in zip(region.written, inputs_of(region), strict=True)}

    def plan(node: Node) -> JoinPlan:
        if (leaf := found.get(id(node))) is not None:
            return leaf
        if not isinstance(node.operator, Combines):  # it renames what is below
            return replace(plan(node.inputs[0]), node=node)
        return _judged(node, [plan(below) for below in node.inputs], node.operator.equal or ())

    return plan(region.root)


def safe_plans(region: JoinRegion) -> list[JoinPlan]:
    """The safe plans for a region, the cheapest first; for each subset of inputs only the cheapest plan is used."""
    inputs = inputs_of(region)
    everything = frozenset(range(len(inputs)))
    best = {leaf.inputs: leaf for leaf in inputs}
    if len(inputs) > MOST:
        return [plan for plan in (_joined(region, inputs),) if plan is not None and plan.is_safe]
    for size in range(2, len(inputs)):
        for some in map(frozenset, combinations(everything, size)):
            if found := _over(region, some, best):
                best[some] = found[0]
    return _over(region, everything, best)


def at_once(region: JoinRegion) -> JoinPlan | None:
    """The one join of all inputs, even if it is unsafe; None if it is impossible."""
    return _joined(region, inputs_of(region))


def inputs_of(region: JoinRegion) -> list[JoinPlan]:
    """The inputs of a region as plans that keep nothing."""
    found = []
    for i, node in enumerate(region.inputs):
        sources = sorted(_sources(node))
        text = sources[0] if len(sources) == 1 else node.label
        found.append(JoinPlan(frozenset([i]), node, text, _rate(node)))
    return found


def _rate(node: Node) -> float:
    """The rate of a source; of an operator the greatest rate of its inputs; of a table 0."""
    if isinstance(node.operator, Scan):
        return node.operator.rate
    return max(map(_rate, node.inputs), default=0.0)


def _sources(node: Node) -> set[str]:
    return {name for below in node.inputs for name in _sources(below)} if node.inputs else {node.label}


def _over(region: JoinRegion, some: AbstractSet[int], best: Mapping[frozenset[int], JoinPlan]) -> list[JoinPlan]:
    """The safe plans for a subset of inputs, the cheapest first; for equal costs those with fewer joins first."""
    found = []
    for parts in _partitions(sorted(some)):
        blocks = [best[part] for part in parts if part in best]
        if 1 < len(blocks) == len(parts) and (plan := _joined(region, blocks)) is not None and plan.is_safe:
            found.append(plan)
    return sorted(found, key=lambda plan: (plan.kept, plan.text.count("("), plan.text))


def _partitions(items: Sequence[int]) -> Iterator[list[frozenset[int]]]:
    """All partitions of the items; parts are in the order of their first items."""
    if not items:
        yield []
        return
    first, *others = items
    for size in range(len(others) + 1):
        for beside in combinations(others, size):
            rest = [item for item in others if item not in beside]
            for parts in _partitions(rest):
                yield [frozenset([first, *beside]), *parts]


def _joined(region: JoinRegion, blocks: Sequence[JoinPlan]) -> JoinPlan | None:
    """The join of blocks; None if no equalities connect them, or a join cannot use them."""
    equalities = tuple(_between(region, blocks))
    here = frozenset[int]().union(*(block.inputs for block in blocks))
    conditions = [
        expression(part.condition)
        for part in region.residual
        if part.inputs <= here and not any(part.inputs <= block.inputs for block in blocks)
    ]
    plan = _joined_on(region, blocks, equalities, conditions)
    if (plan is None or not plan.is_safe) and (more := _bounds_on_equals(region, blocks)):
        return _joined_on(region, blocks, equalities, [*conditions, *more]) or plan
    return plan


def _bounds_on_equals(region: JoinRegion, blocks: Sequence[JoinPlan]) -> list[exp.Expr]:
    """The comparisons of the region on attributes of several blocks that equal the compared ones.

    A comparison `x <= y` within one block restricts what may still come to it, which a punctuation of another block
    on an attribute that equals `x` or `y` can tell.
    """
    block_of = {i: number for number, block in enumerate(blocks) for i in block.inputs}
    input_of = {name: i for i, node in enumerate(region.inputs) for name in node.schema.names}
    every = Schema(tuple(attribute for node in region.inputs for attribute in node.schema))
    found: dict[str, exp.Expr] = {}
    for part in region.residual:
        tree = expression(part.condition)
        if not isinstance(tree, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between) or throwable(tree, every):
            continue
        names = attributes_in(tree)
        equal = ({block_of[i]: one for i, one in _equals(region, name, input_of) if i in block_of} for name in names)
        met = set[frozenset[int]]()
        for places in product(*(of.items() for of in equal)):
            together = frozenset(number for number, _ in places)
            if len(together) > 1 and together not in met:
                met.add(together)
                terms = {name.lower(): quoted(one) for name, (_, one) in zip(names, places, strict=True)}
                found.setdefault(render(one := in_terms(tree, terms)), one)
    return [found[text] for text in found if text not in {part.condition for part in region.residual}]


def _equals(region: JoinRegion, name: str, input_of: Mapping[str, int]) -> Iterable[tuple[int, str]]:
    """The attributes that equal an attribute, itself included, by input."""
    return region.equal.get(name, {input_of[name]: name}).items()


def _joined_on(
    region: JoinRegion, blocks: Sequence[JoinPlan], equalities: tuple[Equality, ...], conditions: Sequence[exp.Expr]
) -> JoinPlan | None:
    here = frozenset[int]().union(*(block.inputs for block in blocks))
    keys = {name.lower() for pair in equalities for _, name in pair}
    within = (part for i in sorted(here) for part in selected_within(region.inputs[i]) if is_bound(part, keys))
    residual = conjunction([*conditions, *within])
    nodes = tuple(block.node for block in blocks)
    schemas = [node.schema for node in nodes]
    try:
        PunctuationGraph(len(blocks), equalities)
        if len(blocks) == 2:
            on = tuple(name for (_, name), _ in equalities), tuple(name for _, (_, name) in equalities)
            node = Node(Join("inner", *on, residual).bounded(*schemas), nodes, "join")
        else:
            join = MultiwayJoin(len(blocks), equalities, residual, region.purge).bounded(*schemas)
            node = Node(join, nodes, "multiway_join")
    except QueryError:
        return None
    return _judged(node, blocks, equalities)


def _between(region: JoinRegion, blocks: Sequence[JoinPlan]) -> Iterator[Equality]:
    """The equalities between blocks; equalities within a block are part of its own plan."""
    block_of = {i: number for number, block in enumerate(blocks) for i in block.inputs}
    for places in region.classes:
        one_each: dict[int, InputAttribute] = {}
        for i, name in sorted(places.items()):
            if i in block_of:
                one_each.setdefault(block_of[i], (block_of[i], name))
        met = [one_each[number] for number in sorted(one_each)]
        yield from pairwise(met)


def _judged(node: Node, blocks: Sequence[JoinPlan], equalities: Sequence[Equality]) -> JoinPlan:
    """The plan of a join of blocks, with the number of tuples that it keeps."""
    promises = [(block.node.schema, block.node.schemes) for block in blocks]
    kept = sum(block.kept for block in blocks)
    purged = {model.input for model in node.state_schema.models if model.until.holds(promises)}
    graph = node.operator.graph if isinstance(node.operator, MultiwayJoin) else None
    graph = graph or PunctuationGraph(len(blocks), tuple(equalities))
    reachability = promised_shapes_of(graph, [schemes for _, schemes in promises])
    for i, block in enumerate(blocks):
        if i in purged:
            kept += block.rate * (reachability.rounds(i) if reachability.reaches_all(i) else 1)
        elif _END not in block.node.schemes:
            kept = math.inf
    text = f"{node.label}({', '.join(block.text for block in blocks)})"
    inputs = frozenset[int]().union(*(block.inputs for block in blocks))
    return JoinPlan(inputs, node, text, max(block.rate for block in blocks), kept)
