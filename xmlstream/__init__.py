"""Punctuated XML streams, queried for ever: Niagara-style stream processing on Apache Spark.

import xmlstream as xs

s1 = xs.read(spark, "sensor1.xml", schema="sid STRING, hour INT, min INT, currtmp DOUBLE",
             rowTag="tempdata", schemes="hour")
s1.group_by("hour").agg("max(currtmp) AS maxtemp").run(output="out")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xmlstream.session.own_packages import find_beside

if TYPE_CHECKING:
    from operators.punctuators.clock import ByClock
    from operators.punctuators.domain import ByDomain
    from operators.punctuators.order import ByOrder
    from operators.punctuators.predicate import ByPredicate
    from operators.punctuators.roster import ByRoster
    from punct_ns.errors import (
        InputError,
        MalformedInput,
        QueryError,
        StateError,
        UngrammaticalStream,
        UnsafeQuery,
        UsageError,
        XmlStreamError,
    )
    from sources.receivers.receiving import Receiving, receive
    from xmlstream.builder.groups import Groups
    from xmlstream.builder.inserts import Insert, inserts_from_sql, run, start
    from xmlstream.builder.multiway import multiway_join
    from xmlstream.builder.query import Query
    from xmlstream.builder.reading import from_dataframe, from_sql, read, read_parquet, read_xmark
    from xmlstream.builder.windows import session_window
    from xmlstream.runtime.tally import Summary
    from xmlstream.session.spark_session import open_session
    from xmlstream.sink.closed_table import closed
    from xmlstream.sink.program_sink import TwoPhaseSink
    from xmlstream.sink.result_slice import ResultSlice

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
    "Receiving",
    "ResultSlice",
    "StateError",
    "Summary",
    "TwoPhaseSink",
    "UngrammaticalStream",
    "UnsafeQuery",
    "UsageError",
    "XmlStreamError",
    "closed",
    "from_dataframe",
    "from_sql",
    "inserts_from_sql",
    "multiway_join",
    "open_session",
    "read",
    "read_parquet",
    "read_xmark",
    "receive",
    "run",
    "session_window",
    "start",
]

_MODULES = {
    "operators.punctuators.clock": ("ByClock",),
    "operators.punctuators.domain": ("ByDomain",),
    "operators.punctuators.order": ("ByOrder",),
    "operators.punctuators.predicate": ("ByPredicate",),
    "operators.punctuators.roster": ("ByRoster",),
    "sources.receivers.receiving": ("Receiving", "receive"),
    "xmlstream.builder.groups": ("Groups",),
    "xmlstream.builder.multiway": ("multiway_join",),
    "xmlstream.builder.inserts": ("Insert", "inserts_from_sql", "run", "start"),
    "xmlstream.builder.query": ("Query",),
    "xmlstream.builder.reading": ("from_dataframe", "from_sql", "read", "read_parquet", "read_xmark"),
    "xmlstream.builder.windows": ("session_window",),
    "xmlstream.runtime.tally": ("Summary",),
    "xmlstream.session.spark_session": ("open_session",),
    "xmlstream.sink.closed_table": ("closed",),
    "xmlstream.sink.program_sink": ("TwoPhaseSink",),
    "xmlstream.sink.result_slice": ("ResultSlice",),
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
