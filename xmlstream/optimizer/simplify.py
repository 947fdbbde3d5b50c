"""Removes from a plan what no operator above needs: distincts, projections and merges over others, attributes.

**Distincts** only cost state if no operator above depends on duplicates. Some operators have the same result for R and
δ(R), since their meaning uses only t ∈ R; they declare this (`ignores_duplicates`). Others pass duplicates on
(`passes_duplicates`): then the operators above them decide. A distinct with two readers stays unless neither depends on
duplicates. The emitted punctuations are the same. Distinct propagates all and adds none (Tucker et al. 2003, Table 3).
Operators above decide by their kept tuples what they propagate (Table 4), and those that ignore duplicates keep each
tuple once in any case, so they also keep no more than before. A join passes tuples on, too, but it keeps every
duplicate, and pairs each with each; so do sort and top_n. Below these, and below all operators that count, a distinct
stays. Values that compare as equal are one value for distinct, for example 0.0 and -0.0. So a distinct also stays below
operators that might distinguish them.

**Attributes** are read, passed and kept only if an operator above requires them. Those in a source's schemes are always
read, since the grammar check needs the attributes that punctuations restrict. If punctuations restrict further ones,
these are read for that check only (`xmlstream.sources.xml.grammar.grammar_filter`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import or_

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import is_identity
from xmlstream.operators.expressions.dialect import expression, render, with_terms
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.project import Project
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt, top_down
from xmlstream.plan.nodes import Node, narrowed, topological


@dataclass(frozen=True, slots=True)
class _Need:
    """The attributes that readers need of a node, and whether they depend on its duplicates."""

    needed: AbstractSet[str]
    counts: bool

    def __or__(self, other: _Need) -> _Need:
        return _Need(self.needed | other.needed, self.counts or other.counts)

    def superfluous(self, node: Node) -> bool:
        """Whether the node is a distinct, and no reader depends on duplicates."""
        return node.operator.eliminates_duplicates and not self.counts


def eliminate_distinct(root: Node) -> Node:
    """Removes the distincts that do not change the results.

    A count of duplicates that no operator needs may change; `prune_columns` removes it.
    """
    need = top_down(root, _Need(frozenset(root.schema.names), counts=True), _needs_of_inputs, _Need.__or__)
    return bottom_up(root, lambda node, inputs: inputs[0] if need[node].superfluous(node) else rebuilt(node, inputs))


def _needs_of_inputs(node: Node, need: _Need) -> list[_Need]:
    operator, needed, schemas = node.operator, need.needed, node.input_schemas
    if need.superfluous(node):
        return [_Need(needed, counts=False)]
    counted = [not operator.ignores_duplicates(side, needed, *schemas) for side in range(len(schemas))]
    counts_any = any(counted) and (need.counts or not operator.passes_duplicates(needed, *schemas))
    return [
        _Need(required, counts=counts_any and counts_side)
        for required, counts_side in zip(operator.required(needed, *schemas), counted, strict=True)
    ]


def collapse_projections(root: Node) -> Node:
    """Collapses adjacent projections, unless an expression would be computed twice.

    A chain of them is collapsed at its top: at each of its nodes, an expression would be printed and read as often as
    there are nodes above.
    """
    uses = readers(root)
    others = {below for node in topological(root) if not isinstance(node.operator, Project) for below in node.inputs}

    def collapsed(node: Node, inputs: tuple[Node, ...]) -> Node:
        same = rebuilt(node, inputs)
        is_top = isinstance(node.operator, Project) and (uses[node] != 1 or node in others)
        return _collapsed(same) if is_top else same

    return bottom_up(root, collapsed)


def _collapsed(top: Node) -> Node:
    chain = []
    while isinstance(top.operator, Project):
        chain.append(top)
        (top,) = top.inputs
    below, merged = top, None
    for node in reversed(chain):
        if merged is not None and merged.takes(node):
            merged = merged.below(node)
        else:
            below = below if merged is None else merged.over(below)
            merged = _Merged.of(node)
    return below if merged is None else merged.over(below)


@dataclass(frozen=True, slots=True)
class _Merged:
    """Adjacent projections as one.

    Attributes:
        top: The uppermost of them.
        trees: The expressions of its columns over the input of the lowest; None if there is but one projection.
        copies: The attribute of that input that each column copies; None if it is computed.
    """

    top: Node
    trees: Mapping[str, exp.Expr] | None
    copies: Mapping[str, str | None]

    @staticmethod
    def of(node: Node) -> _Merged:
        return _Merged(node, None, {column.attribute.name: column.copy_of for column in _columns(node)})

    def takes(self, node: Node) -> bool:
        """Whether a projection above uses each attribute that these compute at most once, and none in a choice.

        Of `coalesce(a, b)` each attribute has punctuations of its own; of what computes b there they are lost.
        """
        trees = {column: expression(column.expression) for column in _columns(node)}
        used = [
            (name, bool(column.either))
            for column, tree in trees.items()
            for name in (each.name for each in tree.find_all(exp.Column))
            if self.copies.get(name, name) is None
        ]
        return len(used) == len(dict(used)) and not any(chosen for _, chosen in used)

    def below(self, node: Node) -> _Merged:
        """These and a projection above them; the trees move into it."""
        trees = self.trees or {each.attribute.name: expression(each.expression) for each in _columns(self.top)}
        folded = {name.lower(): name for name in trees}

        def term(name: str) -> exp.Expr:
            tree = trees[folded[name]]
            return tree if self.copies[folded[name]] is None else tree.copy()

        columns = _columns(node)
        copies = {each.attribute.name: self.copies[each.copy_of] if each.copy_of else None for each in columns}
        made = {each.attribute.name: with_terms(expression(each.expression), term) for each in columns}
        return _Merged(node, made, copies)

    def over(self, below: Node) -> Node:
        """The node of these over an input."""
        if self.trees is None:
            return rebuilt(self.top, (below,))
        found = []
        for column in _columns(self.top):
            attribute, text = column.attribute, render(self.trees[column.attribute.name])
            copy_of = self.copies[attribute.name]
            found.append(
                Column(attribute, text, copy_of) if copy_of else Column.computed(attribute, text, below.schema)
            )
        return Node(Project(tuple(found)), (below,), self.top.label)


def _columns(node: Node) -> Sequence[Column]:
    assert isinstance(node.operator, Project)
    return node.operator.columns


def flatten_merges(root: Node) -> Node:
    """Replaces a merge of merges by one merge; a merge with two readers stays, so that it runs once."""
    uses, rewritten = readers(root), dict[Node, tuple[Node, ...]]()
    inner = {
        below
        for node in topological(root)
        if node.operator.is_associative
        for below in node.inputs
        if isinstance(below.operator, type(node.operator)) and uses[below] == 1
    }

    def flattened(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node in inner:
            rewritten[node] = inputs  # it becomes a part of the one above, which is built at once
            return node
        waiting, spliced = [*zip(node.inputs, inputs, strict=True)][::-1], list[Node]()
        while waiting:
            below, new = waiting.pop()
            if below in rewritten:
                waiting += [*zip(below.inputs, rewritten[below], strict=True)][::-1]
            else:
                spliced.append(new)
        return rebuilt(node, spliced)

    return bottom_up(root, flattened)


def prune_columns(root: Node) -> Node:
    """Removes the attributes that no operator above needs; a source may keep some more."""
    whole: AbstractSet[str] = frozenset(root.schema.names)
    needed = top_down(root, whole, _required, or_)

    def pruned(node: Node, inputs: tuple[Node, ...]) -> Node:
        if (added := node.operator.adds(*node.input_schemas)) is not None and added.isdisjoint(needed[node]):
            return inputs[0]
        operator = node.operator.pruned(_at_least_one(node, needed[node]))
        if operator.exact_inputs:
            # An operator that keeps whole tuples must not keep attributes that only the source's check needs.
            edges = zip(inputs, node.inputs, _required(node, needed[node]), strict=True)
            inputs = tuple(narrowed(new, [n for n in below.schema.names if n in names]) for new, below, names in edges)
        if inputs and is_identity(operator, *(below.schema for below in inputs)):
            return inputs[0]
        return rebuilt(node, inputs, operator)

    return bottom_up(root, pruned)


def _required(node: Node, needed: AbstractSet[str]) -> Sequence[AbstractSet[str]]:
    """The attributes that a node needs of each input to compute those that are needed of it."""
    return node.operator.required(_at_least_one(node, needed), *node.input_schemas)


def _at_least_one(node: Node, needed: AbstractSet[str]) -> AbstractSet[str]:
    """The needed attributes; if there are none, one attribute, preferably one that the node itself uses.

    Tuples without attributes could not be counted apart, or closed by a punctuation. A source ensures this itself.
    """
    if needed or not node.inputs or not node.schema.names:
        return needed
    used = () if node.operator.exact_inputs else node.operator.required(frozenset(), *node.input_schemas)
    own = node.schema.names
    return frozenset([next((name for name in own if any(name in names for names in used)), own[0])])
