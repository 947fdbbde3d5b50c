"""Predicates as near to the sources as they come: what a select will not let through is not joined, merged or kept.

A predicate is taken apart at its ANDs. Each part goes below an operator if it selects there what it would select above:

    project                 in the terms of its input; what is computed, only as long as it cannot fail
    merge                   to every input, by position
    distinct, sort          to the input
    group_by, top_n         to the input, if it looks at nothing but what the groups are made by
    intersect, difference   to both inputs: a tuple that it does not select equals none that it does
    describe                to the input
    joins                   see `pushdown_joins`

What can fail (see `infallible`) goes no lower than where it is computed for those tuples for which it was computed
before: through selects, merges, describes and renamings. Nothing goes below `punctuate`, which judges the stream as it
comes, and nothing in front of a source's grammar check, which is the source's own. A node that two others use keeps its
tuples for both, and nothing goes below it.

No punctuation is lost by that: a select hands on all of them, and the fewer tuples an operator keeps, the more it lets
out. A select that punctuates what it never selects stays where it was put.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlglot import exp

from operators.describe import Describe
from operators.difference import Difference
from operators.distinct import Distinct
from operators.expressions.dialect import expression, named
from operators.expressions.references import conjuncts
from operators.expressions.throwable import cannot_fail
from operators.group_by import GroupBy
from operators.intersect import Intersect
from operators.join import Join
from operators.merge import Merge
from operators.multiway_join import MultiwayJoin
from operators.project import Column, Project
from operators.select import Select
from operators.semi_join import SemiJoin
from operators.sort import Sort
from operators.top_n import TopN
from punct_ns.schema import Schema
from xmlstream.optimizer.predicates import Parted, by_position, divided, in_terms, looks_at, selected
from xmlstream.optimizer.push_down_joins import at_join
from xmlstream.plan.nodes import Node, topological


def push_predicates(root: Node) -> Node:
    """The plan with each part of each predicate as low as it can be; one select above another becomes one."""
    order = topological(root)
    uses = Counter(below for node in order for below in node.inputs)
    asked: dict[Node, list[exp.Expr]] = {node: [] for node in order}
    found: dict[Node, Parted] = {}
    # From the root on, so that all is asked of a node before it is looked at; a node of two uses is asked nothing.
    for node in reversed(order):
        found[node] = _parted(node, asked[node])
        for below, parts in zip(node.inputs, found[node].below, strict=True):
            if uses[below] == 1:
                asked[below] += parts
    done: dict[Node, Node] = {}
    for node in order:
        operator = found[node].operator
        inputs = tuple(
            done[below] if uses[below] == 1 else selected(done[below], parts)
            for below, parts in zip(node.inputs, found[node].below, strict=True)
        )
        if operator is None:
            done[node] = inputs[0]
        else:
            same = operator == node.operator and inputs == node.inputs
            done[node] = selected(node if same else Node(operator, inputs, node.label), found[node].above)
    return done[root]


def _parted(node: Node, asked: Sequence[exp.Expr]) -> Parted:
    """What is asked of a node's tuples as what is asked of its inputs' tuples, as far as that comes to the same."""
    operator = node.operator
    match operator:
        case Select(predicate, punctuates=False):
            return Parted(None, [[*conjuncts(expression(predicate)), *asked]])
        case Join() | SemiJoin() | MultiwayJoin():
            return at_join(node, operator, asked)
        case Project(columns):
            below, above = _below_project(asked, columns, node.inputs[0].schema)
        case Merge() | Describe():
            # Its tuples are those of its inputs: what can fail fails there or here. But it may rely on what is before.
            all_go = all(map(looks_at, asked))
            below, above = divided(asked, by_position(node), lambda part: all_go or cannot_fail(part, node.schema))
        case Distinct() | Sort() | Intersect() | Difference() | Select():
            below, above = divided(asked, by_position(node), lambda part: cannot_fail(part, node.schema))
        case GroupBy(keys=keys) | TopN(groups=keys):
            made_by = {key.lower(): named(node.inputs[0].schema.attribute(key).name) for key in keys}
            below, above = divided(asked, [made_by], lambda part: cannot_fail(part, node.schema))
        case _:
            below, above = [[] for _ in node.inputs], list(asked)
    return Parted(operator, below, above)


def _below_project(
    asked: Sequence[exp.Expr], columns: Sequence[Column], schema: Schema
) -> tuple[list[list[exp.Expr]], list[exp.Expr]]:
    terms = {column.attribute.name.lower(): expression(column.expression) for column in columns}
    copies = {column.attribute.name.lower() for column in columns if column.copy_of is not None}

    def is_sure(part: exp.Expr) -> bool:
        # What is computed is then computed twice, which costs little where it cannot fail.
        translated = in_terms(part, terms)
        return translated is not None and cannot_fail(translated, schema)

    all_go = all(is_sure(part) or (looks_at(part) and looks_at(part) <= copies) for part in asked)
    return divided(asked, [terms], lambda part: all_go or is_sure(part))
