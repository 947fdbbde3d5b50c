"""What makes a plan cheaper without changing what it means: one rule, one function, from plan to plan.

No rule loses a punctuation. In this order a rule finds what those before it made of the plan: what a distinct held up
moves down, what only it needed is not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from sqlglot import exp

from operators.expressions.dialect import expression, render
from operators.merge import Merge
from operators.project import Column, Project
from punct_ns.schema import Schema
from xmlstream.optimizer.column_pruning import prune_columns
from xmlstream.optimizer.eliminate_distinct import leave_out_distinct
from xmlstream.optimizer.insert_describe import describe_keys
from xmlstream.optimizer.push_down_predicates import push_predicates
from xmlstream.plan.nodes import Node, topological


def collapse_projections(root: Node) -> Node:
    """Two projections, one on the other, are one, as long as nothing is computed twice."""

    def collapsed(node: Node) -> Node:
        match node:
            case Node(Project(columns), (Node(Project(below), inputs, _),), label) if _substitutable(columns, below):
                return Node(Project(_substituted(columns, below, inputs[0].schema)), inputs, label)
        return node

    return _rewritten(root, collapsed)


def flatten_merges(root: Node) -> Node:
    """A merge of merges is one merge, but for those that are used twice: they stay one part of the plan."""
    order = topological(root)
    uses = Counter(below for node in order for below in node.inputs)
    done: dict[Node, Node] = {}
    for node in order:
        inputs: list[Node] = []
        for below in node.inputs:
            is_spliced = isinstance(node.operator, Merge) and isinstance(below.operator, Merge) and uses[below] == 1
            inputs += done[below].inputs if is_spliced else (done[below],)
        done[node] = node if tuple(inputs) == node.inputs else Node(node.operator, tuple(inputs), node.label)
    return done[root]


RULES: tuple[Callable[[Node], Node], ...] = (
    leave_out_distinct,
    push_predicates,
    collapse_projections,
    flatten_merges,
    prune_columns,
    describe_keys,
)


def optimized(root: Node) -> Node:
    """The plan after all rules."""
    for rule in RULES:
        root = rule(root)
    return root


def _rewritten(root: Node, rewrite: Callable[[Node], Node]) -> Node:
    """The plan with every node rewritten, inputs first; parts that were one stay one."""
    done: dict[Node, Node] = {}
    for node in topological(root):
        inputs = tuple(done[below] for below in node.inputs)
        done[node] = rewrite(node if inputs == node.inputs else Node(node.operator, inputs, node.label))
    return done[root]


def _substitutable(columns: Iterable[Column], below: Iterable[Column]) -> bool:
    """Whether nothing that is computed below is used more than once."""
    computed = {column.attribute.name for column in below if column.copy_of is None}
    trees = [expression(column.expression) for column in columns]
    used = [column.name for tree in trees for column in tree.find_all(exp.Column) if column.name in computed]
    return len(used) == len(set(used))


def _substituted(columns: Iterable[Column], below: Iterable[Column], schema: Schema) -> tuple[Column, ...]:
    sources = {column.attribute.name: column for column in below}

    def substituted(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            tree = expression(sources[node.name].expression)
            return tree if isinstance(tree, exp.Column) or node.parent is None else exp.paren(tree, copy=False)
        return node

    result = []
    for column in columns:
        tree = expression(column.expression).transform(substituted, copy=False)
        copy_of = sources[column.copy_of].copy_of if column.copy_of else None
        attribute, text = column.attribute, render(tree)
        result.append(Column(attribute, text, copy_of) if copy_of else Column.computed(attribute, text, schema))
    return tuple(result)
