"""A plan in written form: as text for people, and as JSON from which the plan can be read again.

`explain` prints the text. The checkpoint has the JSON, so that a program knows the plan without the query's text.
Operators and their parameters are dataclasses; each is written as its fields and the name of its class. Reading creates
only objects of this project's dataclasses, so a file cannot make it run other code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any

from xmlstream.operators.expressions.dialect import brief
from xmlstream.operators.expressions.operations.python_functions import as_written
from xmlstream.plan.nodes import Node, names, topological
from xmlstream.punct_ns.errors import StateError
from xmlstream.sources.xml.options.source import SourceOptions


def tree(root: Node) -> str:
    """The plan as text: one line per node, its inputs indented below it."""
    called = names(root)
    lines: list[str] = []

    def write(node: Node, depth: int) -> None:
        lines.append(f"{'  ' * depth}{called[node]}: {brief(described(node))}")
        for below in node.inputs:
            write(below, depth + 1)

    write(root, 0)
    return "\n".join(lines)


def described(node: Node) -> str:
    """The parameters of an operator in one line."""
    return as_written(node.operator.parameters(node.schema))


PLAN_FILE = "plan.json"
"""Name of the file with the plan in a checkpoint."""

_OURS = "xmlstream."
"""The package of all classes of a plan, which their written names lack."""

_CLASS, _VALUE = "class", "value"


def encoded(root: Node) -> dict[str, object]:
    """The plan as JSON; for a DataFrame it has no content."""
    order = topological(root)
    number = {node: i for i, node in enumerate(order)}
    nodes = [
        {"label": node.label, "operator": _encoded(node.operator), "inputs": [number[below] for below in node.inputs]}
        for node in order
    ]
    return {"nodes": nodes}


def decoded(plan: Mapping[str, Any]) -> Node:
    """The plan of a JSON object that `encoded` has written.

    Raises:
        StateError: Another version has written it.
    """
    try:
        nodes: list[Node] = []
        for part in plan["nodes"]:
            nodes.append(Node(_decoded(part["operator"]), tuple(nodes[i] for i in part["inputs"]), part["label"]))
        return nodes[-1]
    except (ValueError, KeyError, TypeError, AttributeError, ImportError, IndexError) as reason:
        what = f"the plan was written by another version of xmlstream: {reason}"
        raise StateError(what, hint="use the version of xmlstream that runs the query") from None


def _encoded(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list():
            return list(map(_encoded, value))
        case SourceOptions():
            return {_CLASS: "options", _VALUE: dict(value.given)}
        case timedelta():
            return {_CLASS: "timedelta", _VALUE: [value.days, value.seconds, value.microseconds]}
        case Decimal() | date():
            return {_CLASS: type(value).__name__, _VALUE: str(value)}
        case _ if is_dataclass(value):
            kind = type(value)
            name = f"{kind.__module__.removeprefix(_OURS)}:{kind.__qualname__}"
            return {_CLASS: name, **{f.name: _encoded(getattr(value, f.name)) for f in fields(value) if f.init}}
    return None


def _decoded(value: Any) -> Any:
    match value:
        case list():
            return tuple(map(_decoded, value))
        case {"class": "options", "value": given}:
            return SourceOptions.parse(given)
        case {"class": "timedelta", "value": [days, seconds, microseconds]}:
            return timedelta(days, seconds, microseconds)
        case {"class": "Decimal", "value": text}:
            return Decimal(text)
        case {"class": "datetime", "value": text}:
            return datetime.fromisoformat(text)
        case {"class": "date", "value": text}:
            return date.fromisoformat(text)
        case {"class": name, **parts}:
            return _class(str(name))(**{str(part): _decoded(inner) for part, inner in parts.items()})
    return value


_MOVED = {"operators.punctuators.order:ByRoster": "operators.punctuators.roster:ByRoster"}
"""The classes of earlier plans that have other names now."""


def _class(name: str) -> Any:
    module, _, called = _MOVED.get(name, name).partition(":")
    found = getattr(import_module(f"{_OURS}{module}"), called)
    if not is_dataclass(found):
        raise ValueError(f"{name} is not a part of a plan")
    return found
