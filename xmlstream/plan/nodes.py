"""A query as a plan: operators over sources, a directed acyclic graph whose equal parts are one.

Plans are values. Two queries that mean the same by construction, from SQL or from the builder, have equal plans; a part
that a query uses twice runs once; and a checkpoint knows the plan it belongs to by what `plain` says of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from operators.describe import Describe
from operators.difference import Difference
from operators.distinct import Distinct
from operators.group_by import GroupBy
from operators.intersect import Intersect
from operators.join import Join
from operators.merge import Merge
from operators.multiway_join import MultiwayJoin
from operators.project import Column, Project
from operators.punctuate import Punctuate
from operators.select import Select
from operators.semi_join import SemiJoin
from operators.sort import Sort
from operators.top_n import TopN
from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from punct_ns.slices import is_own
from sources.xml.options.source import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Unary: TypeAlias = Select | Project | Distinct | GroupBy | TopN | Sort | Describe | Punctuate
Operator: TypeAlias = Unary | Merge | Join | SemiJoin | MultiwayJoin | Intersect | Difference


@dataclass(frozen=True, slots=True)
class Scan:
    """A source, where a plan begins.

    `options.columns` are the attributes whose values are read; punctuations speak of the whole schema.
    """

    name: str
    options: SourceOptions


@dataclass(frozen=True, slots=True)
class Static:
    """A static input, read once: files of one of Spark's formats, or a frame."""

    name: str
    schema: Schema
    format: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    frame: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """The end of a plan that has several results: its inputs, under these names."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One operator over its inputs, or a source without any; `label` is what metrics call it."""

    operator: Operator | Scan | Static | Results
    inputs: tuple[Node, ...]
    label: str
    schema: Schema = field(init=False, repr=False, compare=False)
    schemes: tuple[Scheme, ...] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Computed once: a part that is used twice would otherwise be walked twice at every level above it.
        if isinstance(self.operator, Scan):
            schema, schemes = self.operator.options.schema, self.operator.options.schemes
        elif isinstance(self.operator, Static):
            schema, schemes = self.operator.schema, ()
        elif isinstance(self.operator, Results):
            schema, schemes = Schema(()), ()
        else:
            schema = self.operator.schema(*(node.schema for node in self.inputs))
            schemes = self.operator.schemes(*(node.schemes for node in self.inputs))
        for name in schema.names:
            if is_own(name):
                what = f"the name {name} is taken: so begin columns that stand beside the attributes"
                raise QueryError(what, hint="give the attribute another one")
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "schemes", schemes)
        object.__setattr__(self, "_hash", hash((self.operator, self.inputs, self.label)))

    def __hash__(self) -> int:
        return self._hash


def projected(node: Node, columns: Sequence[Column]) -> Node:
    """The columns of each tuple of the node; the node itself where they are its attributes, each in its place."""
    operator = Project(tuple(columns))
    return node if operator.is_identity(node.schema) else Node(operator, (node,), "project")


def results(root: Node) -> tuple[Node, ...]:
    """The nodes whose tuples are a plan's results: several, or the root itself."""
    return root.inputs if isinstance(root.operator, Results) else (root,)


def together(roots: Sequence[Node], called: Sequence[str]) -> Node:
    """The plan with these results, under these names; the root itself where there is but one.

    What is equal in several of them becomes one object: to compare two parts that are equal, and not one, is to walk
    both as trees, and again at every level above.
    """
    if len(roots) == 1:
        return roots[0]
    made: dict[int, Node] = {}
    known: dict[Node, Node] = {}

    def one(node: Node) -> Node:
        if id(node) not in made:
            inputs = tuple(map(one, node.inputs))
            is_same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            again = node if is_same else Node(node.operator, inputs, node.label)
            made[id(node)] = known.setdefault(again, again)
        return made[id(node)]

    return Node(Results(tuple(called)), tuple(map(one, roots)), "results")


def topological(root: Node) -> list[Node]:
    """All nodes below the root and the root, each once, after its inputs; the same order for equal plans."""
    order: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if node not in order:
            for below in node.inputs:
                visit(below)
            order[node] = None

    visit(root)
    return list(order)


_LONGEST = 48
"""Characters of a label in a name, of up to four bytes each: a file system takes 255."""


def names(root: Node) -> dict[Node, str]:
    """A name for each node: its label, numbered from the second of that label on (`select`, `select-2`).

    Names of one plan differ by more than case, and can be names of directories, or of files with something behind it.
    """
    given: dict[Node, str] = {}
    seen: Counter[str] = Counter()
    taken: set[str] = set()
    for node in topological(root):
        label = re.sub(r"[^\w.-]+", "_", node.label.lower()).strip(".")[:_LONGEST] or "_"
        name = label
        while name in taken or seen[label] == 0:
            seen[label] += 1
            name = label if seen[label] == 1 else f"{label}-{seen[label]}"
        taken.add(name)
        given[node] = name
    return given


def plain(root: Node) -> list[dict[str, Any]]:
    """The plan as JSON has it, a part for each node, as far as kept state and output depend on it.

    How a source is sliced, and what is done about bad input, may change from run to run.
    """
    called = names(root)
    return [
        {
            "name": called[node],
            "operator": _plain(node.operator),
            "inputs": [called[below] for below in node.inputs],
            "schema": _plain(node.schema),
        }
        for node in topological(root)
    ]


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list():
            return [_plain(part) for part in value]
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case SourceOptions():
            return value.lasting
        case Schema():
            return [[a.name, a.domain.type, a.domain.nullable, str(a.domain.low), str(a.domain.high)] for a in value]
        case _ if is_dataclass(value):
            parts = {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.compare}
            return {"": type(value).__name__, **parts}
    return str(value)
