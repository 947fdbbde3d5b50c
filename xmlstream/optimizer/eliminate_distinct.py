"""A distinct whose duplicates nothing above it can tell is left out: with it go its state, and columns only it needed.

Operators that answer the same of R and of δ(R), since their meaning speaks of t ∈ R alone:

    distinct                δ(δ(R)) = δ(R)
    group_by                γ_{A; f}(δ(R)) = γ_{A; f}(R), where each f that is asked for is MIN, MAX or DISTINCT, or
                            there is none
    intersect, difference   δ(R) ∩ S = R ∩ S, δ(R) − S = R − S, and so for S
    semi and anti join      R ⋉ δ(S) = R ⋉ S, R ▷ δ(S) = R ▷ S: of S it is asked whether there is a partner

Operators that hand on the tuples of δ(R), only some of them more often, σ(R), π(R), R ⊎ S, describe: what is below them
is for those above them to tell. A distinct that two operators read stays unless neither can tell.

The punctuations that come out are the same: distinct propagates all and adds none (Tucker et al. 2003, Table 3), those
above it judge what they may propagate by the tuples that they keep (Table 4), and all of the first list keep each tuple
once whatever comes. Nor do they keep more than before. A join hands tuples on, too, but it keeps every duplicate, and
pairs each with each; so do sort and top_n. Below those a distinct stays, as below all that counts.

Values that compare as equal are one to distinct, 0.0 and -0.0 among them. It stays below what might tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from sqlglot import exp

from operators.describe import Describe
from operators.difference import Difference
from operators.distinct import Distinct
from operators.expressions.decomposition import ignores_duplicates, operands
from operators.expressions.dialect import expression
from operators.expressions.throwable import cannot_fail
from operators.group_by import GroupBy
from operators.intersect import Intersect
from operators.merge import Merge
from operators.project import Project
from operators.select import Select
from operators.semi_join import SemiJoin
from punct_ns.schema import Schema
from xmlstream.optimizer.column_pruning import wanted
from xmlstream.optimizer.predicates import looks_at
from xmlstream.plan.nodes import Node, topological


def leave_out_distinct(root: Node) -> Node:
    """The plan without the distincts that change nothing of its results.

    What counts duplicates, but is itself not asked for, may count others then; `prune_columns` takes it out.
    """
    superfluous = _superfluous(root)
    done: dict[Node, Node] = {}
    for node in topological(root):
        inputs = tuple(done[below] for below in node.inputs)
        if node in superfluous:
            done[node] = inputs[0]
        else:
            done[node] = node if inputs == node.inputs else Node(node.operator, inputs, node.label)
    return done[root]


def _superfluous(root: Node) -> set[Node]:
    """The distincts whose duplicates no reader of theirs can tell."""
    order = topological(root)
    # Who reads a node comes after it in the order: from the root on, all readers are known before what they read.
    needed: dict[Node, set[str]] = {node: set() for node in order}
    needed[root] = set(root.schema.names)
    told, found = {root}, set[Node]()
    for node in reversed(order):
        if isinstance(node.operator, Distinct) and node not in told:
            found.add(node)
        for i, below in enumerate(node.inputs):
            needed[below] |= needed[node] if node in found else wanted(node, needed[node], below)
            if not _ignores(node, i, needed[node]) and (node in told or not _hands_on(node, needed[node])):
                told.add(below)
    return found


def _ignores(node: Node, side: int, needed: AbstractSet[str]) -> bool:
    """Whether what is needed of the node is the same however often a tuple of that input comes."""
    schema = node.inputs[side].schema
    match node.operator:
        case Distinct() | Intersect() | Difference():
            return True
        case GroupBy(aggregates=aggregates):
            asked = [answer for answer in aggregates if answer.attribute.name in needed]
            return all(ignores_duplicates(a) and _takes_equals_alike(operands(a), schema) for a in asked)
        case SemiJoin(residual=residual) if side == 1:
            both = Schema((*node.inputs[0].schema, *schema))
            return residual is None or _takes_equals_alike([expression(residual)], both)
    return False


def _hands_on(node: Node, needed: AbstractSet[str]) -> bool:
    """Whether of duplicates of an input nothing comes but duplicates, and no state."""
    schema = node.inputs[0].schema if node.inputs else Schema(())
    match node.operator:
        case Merge() | Describe():
            return True
        case Select(predicate):
            return _takes_equals_alike([expression(predicate)], schema)
        case Project(columns):
            asked = [expression(column.expression) for column in columns if column.attribute.name in needed]
            return _takes_equals_alike(asked, schema)
    return False


def _takes_equals_alike(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    """Whether the expressions have equal values for values that compare as equal, as far as that is known."""
    return all(
        cannot_fail(tree, schema) or not any(schema.attribute(name).domain.type in _FLOATING for name in looks_at(tree))
        for tree in trees
    )


_FLOATING = frozenset(("FLOAT", "DOUBLE"))
"""Types of which two values that differ compare as equal."""
