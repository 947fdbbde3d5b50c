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

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from operator import or_

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.operators.behaviour import is_identity
from xmlstream.operators.expressions.dialect import expression, in_terms, render
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.project import Project
from xmlstream.optimizer.rewrite import bottom_up, readers, rebuilt, top_down
from xmlstream.plan.nodes import Node, narrowed
from xmlstream.punct_ns.schema import Schema


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
    """Collapses adjacent projections, unless an expression would be computed twice."""

    def collapsed(node: Node, inputs: tuple[Node, ...]) -> Node:
        match rebuilt(node, inputs):
            case Node(Project(columns), (Node(Project(below), inputs, _),), label) if _substitutable(columns, below):
                return Node(Project(_substituted(columns, below, inputs[0].schema)), inputs, label)
            case same:
                return same

    return bottom_up(root, collapsed)


def _substitutable(columns: Iterable[Column], below: Iterable[Column]) -> bool:
    """Whether each attribute that the lower projection computes is used at most once."""
    computed = {column.attribute.name for column in below if column.copy_of is None}
    trees = [expression(column.expression) for column in columns]
    used = [column.name for tree in trees for column in tree.find_all(exp.Column) if column.name in computed]
    return len(used) == len(set(used))


def _substituted(columns: Iterable[Column], below: Iterable[Column], schema: Schema) -> tuple[Column, ...]:
    sources = {column.attribute.name: column for column in below}
    terms = {name.lower(): column.expression for name, column in sources.items()}
    result = []
    for column in columns:
        copy_of = sources[column.copy_of].copy_of if column.copy_of else None
        attribute, text = column.attribute, render(in_terms(expression(column.expression), terms))
        result.append(Column(attribute, text, copy_of) if copy_of else Column.computed(attribute, text, schema))
    return tuple(result)


def flatten_merges(root: Node) -> Node:
    """Replaces a merge of merges by one merge; a merge with two readers stays, so that it runs once."""
    uses = readers(root)

    def flattened(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not node.operator.is_associative:
            return rebuilt(node, inputs)
        spliced: list[Node] = []
        for below, new in zip(node.inputs, inputs, strict=True):
            is_one_of_its_kind = isinstance(below.operator, type(node.operator)) and uses[below] == 1
            spliced += new.inputs if is_one_of_its_kind else (new,)
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
