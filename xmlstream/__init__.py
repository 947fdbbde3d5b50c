"""Punctuated XML streams, queried for ever: Niagara-style stream processing on Apache Spark.

import xmlstream as xs

s1 = xs.read(spark, "sensor1.xml", schema="sid STRING, hour INT, min INT, currtmp DOUBLE",
             rowTag="tempdata", schemes="hour")
s1.group_by("hour").agg("max(currtmp) AS maxtemp").run(output="out")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xmlstream.own_packages import find_beside

if TYPE_CHECKING:
    from operators.punctuate_clock import ByClock
    from operators.punctuate_domain import ByDomain
    from operators.punctuate_order import ByOrder
    from operators.punctuate_predicate import ByPredicate
    from operators.punctuate_roster import ByRoster
    from punct_ns.errors import (
        InputError,
        MalformedInput,
        QueryError,
        StateError,
        UngrammaticalStream,
        UsageError,
        XmlStreamError,
    )
    from xmlstream.inserts import Insert, inserts_from_sql, run, start
    from xmlstream.multiway import multiway_join
    from xmlstream.query import Groups, Query
    from xmlstream.reading import from_dataframe, from_sql, read, read_xmark
    from xmlstream.runner import Summary
    from xmlstream.session import open_session

    __version__: str

__all__ = [
    "ByClock",
    "ByDomain",
    "ByOrder",
    "ByPredicate",
    "ByRoster",
    "Groups",
    "InputError",
    "Insert",
    "MalformedInput",
    "Query",
    "QueryError",
    "StateError",
    "Summary",
    "UngrammaticalStream",
    "UsageError",
    "XmlStreamError",
    "from_dataframe",
    "from_sql",
    "inserts_from_sql",
    "multiway_join",
    "open_session",
    "read",
    "read_xmark",
    "run",
    "start",
]

_MODULES = {
    "operators.punctuate_clock": ("ByClock",),
    "operators.punctuate_domain": ("ByDomain",),
    "operators.punctuate_order": ("ByOrder",),
    "operators.punctuate_predicate": ("ByPredicate",),
    "operators.punctuate_roster": ("ByRoster",),
    "xmlstream.multiway": ("multiway_join",),
    "xmlstream.inserts": ("Insert", "inserts_from_sql", "run", "start"),
    "xmlstream.query": ("Groups", "Query"),
    "xmlstream.reading": ("from_dataframe", "from_sql", "read", "read_xmark"),
    "xmlstream.runner": ("Summary",),
    "xmlstream.session": ("open_session",),
}

find_beside()


def __getattr__(name: str) -> Any:
    # Looked up when it is first used, so that the command line starts without what it does not need.
    if name == "__version__":
        return import_module("xmlstream.version").version()
    if name in __all__:
        module = next((module for module, names in _MODULES.items() if name in names), "punct_ns.errors")
        return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *globals()})
