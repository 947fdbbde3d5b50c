"""What stands around the core, by name: a module is imported when its name is first used.

Nothing of the core imports a module that is named here: you can read, change and test the core without them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_PLACES = {
    "sink delta": "xmlstream.sink.databases.delta.DELTA",
    "sink iceberg": "xmlstream.sink.databases.iceberg.ICEBERG",
    "sink postgresql": "xmlstream.sink.databases.postgresql.POSTGRESQL",
    "sink catalog": "xmlstream.sink.databases.catalog_table.CATALOG",
    "rows of postgresql": "xmlstream.sink.databases.postgresql_rows.table_rows",
    "stream xmark": "xmlstream.sources.xmark.source_options",
    "inferred declaration": "xmlstream.sources.xml.inference.proposal.proposal",
    "reported windows": "xmlstream.secret.reported_windows.reported_windows",
    "windows of an engine": "xmlstream.secret.reported_windows.in_windows_of",
    "picture of a plan": "xmlstream.drawing.plan_picture.picture",
    "page of a plan": "xmlstream.drawing.plan_picture.plan_page",
    "picture of a run": "xmlstream.drawing.plan_picture.pictured",
    "senders behind": "xmlstream.diagnosis.inspection.senders_behind",
    "answers so far": "xmlstream.diagnosis.so_far.answers_so_far",
    "monitor": "xmlstream.monitor.monitor.Monitor",
}


def extension(name: str) -> Any:
    """The function, class or constant of a name.

    >>> extension("sink delta").name
    'delta'
    """
    module, _, attribute = _PLACES[name].rpartition(".")
    return getattr(import_module(module), attribute)


def extensions(kind: str) -> list[Any]:
    """All of a kind, such as each `sink`, in the order of this table."""
    return [extension(name) for name in _PLACES if name.startswith(f"{kind} ")]


def called_as(package: str, instead: str) -> None:
    """A package that is called, like `xs.sql(…)`, names the function that is meant."""

    def refuse(*_: object, **__: object) -> None:
        raise TypeError(f"{package} is a package; Hint: {instead}")

    sys.modules[package].__class__ = type("Package", (ModuleType,), {"__call__": refuse})
