"""A plan as text, for people: what `explain` prints."""

from __future__ import annotations

from collections.abc import Sequence

from operators.describe import Describe
from operators.group_by import GroupBy
from operators.join import Join
from operators.multiway_join import MultiwayJoin
from operators.project import Project
from operators.punctuate import Punctuate
from operators.select import Select
from operators.semi_join import SemiJoin
from operators.sort import Sort
from operators.state.sort_key import SortKey
from operators.top_n import TopN
from xmlstream.plan.nodes import Node, Results, Scan, Static, names


def tree(root: Node) -> str:
    """The plan as text, a node a line, its inputs below it and indented."""
    called = names(root)
    lines: list[str] = []

    def write(node: Node, depth: int) -> None:
        lines.append(f"{'  ' * depth}{called[node]}: {described(node)}")
        for below in node.inputs:
            write(below, depth + 1)

    write(root, 0)
    return "\n".join(lines)


def described(node: Node) -> str:
    """An operator's parameters in a line."""
    match node.operator:
        case Scan() | Static() | Results() as end:
            text = _end(end, node)
        case Select(predicate=predicate):
            text = predicate
        case Project(columns=columns):
            text = ", ".join(f"{c.expression} AS `{c.attribute.name}`" for c in columns)
        case GroupBy(keys=keys, aggregates=aggregates):
            answers = [f"{a.expression} AS `{a.attribute.name}`" for a in aggregates]
            text = f"({', '.join(keys)}) {', '.join(answers)}"
        case Join(kind=kind):
            text = f"{kind}: {node.operator.equal.condition}"
        case SemiJoin(anti=anti):
            text = f"{'anti' if anti else 'semi'}: {node.operator.equal.condition}"
        case MultiwayJoin(equalities=equalities, purge=purge):
            text = f"{purge}: {' AND '.join(f'`{a}` = `{b}`' for (_, a), (_, b) in equalities)}"
        case Sort(keys=keys):
            text = _ordered(keys)
        case TopN(n, keys, groups, rank):
            text = f"({', '.join(groups)}) {rank} <= {n} by {_ordered(keys)}"
        case Describe(attributes=attributes, watch=watch):
            text = ", ".join(attributes) + (f" watching {', '.join(watch)}" if watch else "")
        case Punctuate(rule=rule):
            text = str(rule)
        case _:
            text = ", ".join(node.schema.names)
    return text


def _end(operator: Scan | Static | Results, node: Node) -> str:
    """Where tuples come from or go to."""
    match operator:
        case Scan(options=options):
            return f"{options.path} ({', '.join(options.columns)})"
        case Static(options=options):
            where = dict(options).get("path", "a DataFrame")
            return f"{where} ({', '.join(node.schema.names)})"
        case Results(names=names_):
            return ", ".join(names_)


def _ordered(keys: Sequence[SortKey]) -> str:
    return ", ".join(f"{key.attribute}{' DESC' if key.descending else ''}" for key in keys)
