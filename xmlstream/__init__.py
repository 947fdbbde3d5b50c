"""Punctuated XML streams, queried for ever: Niagara-style stream processing on Apache Spark.

import xmlstream as xs

s1 = xs.read(spark, "sensor1.xml", schema="sid STRING, hour INT, min INT, currtmp DOUBLE",
             rowTag="tempdata", schemes="hour")
s1.group_by("hour").agg("max(currtmp) AS maxtemp").run(output="out")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from punct_ns.errors import (
        InputError,
        MalformedInput,
        QueryError,
        StateError,
        UngrammaticalStream,
        UsageError,
        XmlStreamError,
    )
    from xmlstream.query import Groups, Query, from_sql, read
    from xmlstream.runner import Summary
    from xmlstream.session import open_session

__all__ = [
    "Groups",
    "InputError",
    "MalformedInput",
    "Query",
    "QueryError",
    "StateError",
    "Summary",
    "UngrammaticalStream",
    "UsageError",
    "XmlStreamError",
    "from_sql",
    "open_session",
    "read",
]

_MODULES = {
    "xmlstream.query": ("Groups", "Query", "from_sql", "read"),
    "xmlstream.runner": ("Summary",),
    "xmlstream.session": ("open_session",),
}


def __getattr__(name: str) -> Any:
    # Looked up when it is first used, so that the command line starts without what it does not need.
    if name in __all__:
        module = next((module for module, names in _MODULES.items() if name in names), "punct_ns.errors")
        return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
