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
    from xmlstream.builder.method_sql import session_window
    from xmlstream.builder.query import Groups, Query, multiway_join
    from xmlstream.builder.reading import (
        from_dataframe,
        from_sql,
        from_stream,
        read,
        read_column,
        read_parquet,
        read_xmark,
    )
    from xmlstream.builder.run_options import RunOptions
    from xmlstream.builder.runnable import Insert, inserts_from_sql, run, start
    from xmlstream.diagnosis.kept_state import kept
    from xmlstream.operators.punctuators.count import ByCount
    from xmlstream.operators.punctuators.order import ByClock, ByOrder
    from xmlstream.operators.punctuators.predicate import ByDomain, ByPredicate
    from xmlstream.operators.punctuators.roster import ByRoster
    from xmlstream.punct_ns.errors import (
        InputError,
        MalformedInput,
        QueryError,
        StateError,
        UngrammaticalStream,
        UnsafeQuery,
        UsageError,
        XmlStreamError,
    )
    from xmlstream.runtime.tally import Summary
    from xmlstream.session.engines import open_session
    from xmlstream.sink.closings import closed
    from xmlstream.sink.program_sink import Sink, TwoPhaseSink
    from xmlstream.sink.result_tables import ResultSlice
    from xmlstream.sources.receivers.receiving import Receiving, receive
    from xmlstream.sql.created_functions import function

    __version__: str

__all__ = [
    "ByClock",
    "ByCount",
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
    "RunOptions",
    "Sink",
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
    "from_stream",
    "function",
    "inserts_from_sql",
    "kept",
    "multiway_join",
    "open_session",
    "read",
    "read_column",
    "read_parquet",
    "read_xmark",
    "receive",
    "run",
    "session_window",
    "start",
]

_MODULES = {
    "xmlstream.operators.punctuators.count": ("ByCount",),
    "xmlstream.operators.punctuators.order": ("ByClock", "ByOrder"),
    "xmlstream.operators.punctuators.roster": ("ByRoster",),
    "xmlstream.operators.punctuators.predicate": ("ByDomain", "ByPredicate"),
    "xmlstream.sources.receivers.receiving": ("Receiving", "receive"),
    "xmlstream.builder.method_sql": ("session_window",),
    "xmlstream.builder.notebook": ("load_ipython_extension",),
    "xmlstream.builder.query": ("Groups", "multiway_join", "Query"),
    "xmlstream.builder.run_options": ("RunOptions",),
    "xmlstream.builder.runnable": ("Insert", "inserts_from_sql", "run", "start"),
    "xmlstream.builder.reading": (
        "from_dataframe",
        "from_sql",
        "from_stream",
        "read",
        "read_column",
        "read_parquet",
        "read_xmark",
    ),
    "xmlstream.diagnosis.kept_state": ("kept",),
    "xmlstream.runtime.tally": ("Summary",),
    "xmlstream.sql.created_functions": ("function",),
    "xmlstream.session.engines": ("open_session",),
    "xmlstream.sink.closings": ("closed",),
    "xmlstream.sink.program_sink": ("Sink", "TwoPhaseSink"),
    "xmlstream.sink.result_tables": ("ResultSlice",),
}


def __getattr__(name: str) -> Any:
    # Imports a module when its name is first used, so that the command line starts fast.
    if name == "__version__":
        installed = import_module("importlib.metadata")
        try:
            return installed.version(import_module("xmlstream.punct_ns.errors").DISTRIBUTION)
        except installed.PackageNotFoundError:
            return "0+unknown"
    if name in __all__ or name == "load_ipython_extension":  # which IPython asks for
        module = next((module for module, names in _MODULES.items() if name in names), "xmlstream.punct_ns.errors")
        return getattr(import_module(module), name)
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    words = import_module("xmlstream.builder.run_options")
    raise AttributeError(words.no_such_name(name, "xmlstream", words.OF_PACKAGE, __all__))


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
