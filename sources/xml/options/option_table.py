"""The table of a source's options: of each its name, how it is read, what holds without it, and who may give it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from punct_ns.errors import UsageError
from punct_ns.xml_form import PUNCT_NS
from sources.xml.options.formats import choice, count, date_pattern, flag, name_list, rate, seconds, size, text
from sources.xml.options.qualified_names import XML_PREFIXES, namespace_prefixes

Mode = Literal["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]
OnUngrammatical = Literal["fail", "drop", "divert"]
ManyDocuments = Literal["sequence", "merge", "directories", "one"]
CleanSource = Literal["off", "delete", "archive"]
Format = Literal["xml", "parquet"]
WhenDoctype = Literal["skip", "refuse"]
WhenUnfinished = Literal["wait", "fail", "skip"]
WhenReplaced = Literal["fail", "new"]

Giver = Literal["user", "reader", "query"]
"""Who gives options: the user of a table, the user of Spark's reader as well, or a query that reads the source."""

_GIVERS = get_args(Giver)


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a source.

    Attributes:
        name: As it is documented; given names are compared without case.
        read: How its text is read; UsageError, naming the option, if it cannot be.
        default: What holds where it is not given.
        giver: Who may give it; whoever comes later in `Giver` may, too.
        instead: If that is not every user, what a user does instead.
        may_change: Whether it may change from one run of a query to the next.
        is_promise: Whether it says what the source's punctuations restrict.
    """

    name: str
    read: Callable[[str, str], Any] = text
    default: Any = None
    giver: Giver = "user"
    instead: str = "leave it out"
    may_change: bool = False
    is_promise: bool = False

    @property
    def attribute(self) -> str:
        """Its name as that of an attribute.

        >>> OPTIONS["maxBytesPerSlice"].attribute
        'max_bytes_per_slice'
        """
        return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", self.name)


def _sources(name: str, given: str) -> tuple[Mapping[str, str], ...]:
    """The options of several sources, as JSON."""
    try:
        read = tuple(dict(options) for options in json.loads(given))
    except (ValueError, TypeError):
        raise UsageError(
            f"{name} is no list of sources", hint="a query says it where it reads several in one pass"
        ) from None
    return read


_TABLE = (
    Option("path"),
    Option("rowTag"),
    Option("schema"),
    Option("domains", default=""),
    Option("schemes", default="", is_promise=True),
    Option("uniqueIds", default="", is_promise=True),
    Option("sectionEnds", default="", is_promise=True),
    Option("namespaces", namespace_prefixes, default=XML_PREFIXES),
    Option("attributePrefix", default="_"),
    Option("valueTag", default="_VALUE"),
    Option("unitTag", default=""),
    Option("punctuationNamespace", default=PUNCT_NS),
    Option("nullValue"),
    Option("format", choice(*get_args(Format)), default="xml"),
    Option("encoding"),
    Option("doctype", choice(*get_args(WhenDoctype)), default="skip", may_change=True),
    Option("dateFormat", date_pattern),
    Option("timestampFormat", date_pattern),
    Option("ignoreSurroundingSpaces", flag, default=True),
    Option("documents", choice(*get_args(ManyDocuments)), default="sequence"),
    Option("partitionedBy", name_list, ()),
    Option("cleanSource", choice(*get_args(CleanSource)), default="off", may_change=True),
    Option("sourceArchiveDir", default="", may_change=True),
    Option("mode", choice(*get_args(Mode)), default="FAILFAST", may_change=True),
    Option("ungrammatical", choice(*get_args(OnUngrammatical)), default="fail", may_change=True),
    Option("unfinished", choice(*get_args(WhenUnfinished)), default="wait", may_change=True),
    Option("unfinishedAge", seconds, default=600.0, may_change=True),
    Option("onReplaced", choice(*get_args(WhenReplaced)), default="fail", may_change=True),
    Option("maxBytesPerSlice", size, may_change=True),
    Option("maxBytesPerPartition", size, default=16 << 20, may_change=True),
    Option("maxFilesPerSlice", count, may_change=True),
    Option("maxItemBytes", size, default=64 << 20, may_change=True),
    Option("rate", rate, default=1.0, may_change=True),
    Option("follow", flag, True, "reader", "run the query with --follow, or by start", may_change=True),
    Option("keepOpen", flag, False, "reader", "run the query with --keep-open, or keep_open=True", may_change=True),
    Option("close", flag, False, "reader", may_change=True),
    Option("documentLog", giver="reader", may_change=True),
    Option("restricted", giver="query", may_change=True),
    Option("clock", giver="query", may_change=True),
    Option("stage", giver="query", may_change=True),
    Option("source", default="source", giver="query", may_change=True),
    Option("partitionOf", default="", giver="query"),
    Option("columns", name_list, (), "query"),
    Option("beside", _sources, (), "query"),
)

OPTIONS: Mapping[str, Option] = {option.name: option for option in _TABLE}
"""The options by their names."""

SET_BY_QUERIES = {option.name: option.instead for option in _TABLE if option.giver != "user"}
"""Options that a query sets for its sources, and what a user does instead."""

_BY_COLUMN = {name.lower(): name for name in ("path", "prefix", "dateFormat", "timestampFormat")}
"""What may be said of a column: `path.price` is an option, too."""

_ALSO = {"charset": "encoding"}
"""What Spark's XML has two names for."""

_SPARKS = {
    "locale": "leave it out: numbers and dates are read as XML Schema writes them, or by dateFormat in English",
    "timezone": "leave it out: a time without a zone is in UTC; others bear their offset, as 09:39:21-04:00 does",
    "samplingratio": "xmlstream infer looks at the beginning of the documents; declare the columns",
}
"""Options of Spark's XML that there are not here, with what to do instead."""

_NAMES = {name.lower(): name for name in OPTIONS}


def by_proper_names(options: Mapping[str, str], giver: Giver) -> dict[str, str]:
    """Options under the names that the table has them by; names are compared without case, as Spark does.

    Raises:
        UsageError: There is no option of a name, or it is not for the giver to give.

    >>> by_proper_names({"ROWTAG": "bid", "Path.price": "@price"}, "user")
    {'rowTag': 'bid', 'path.price': '@price'}
    """
    proper: dict[str, str] = {}
    for name, value in options.items():
        if (called := _proper_name(name, giver)) in proper:
            raise UsageError(f"the option {called} is given twice", hint=f"leave {name} out")
        proper[called] = value
    return proper


def may_change(name: str) -> bool:
    """Whether an option, by its proper name, may change from one run of a query to the next.

    >>> may_change("maxItemBytes"), may_change("path.price")
    (True, False)
    """
    return name in OPTIONS and OPTIONS[name].may_change


def _proper_name(name: str, giver: Giver) -> str:
    group, dot, column = name.partition(".")
    if dot and group.lower() in _BY_COLUMN:
        return f"{_BY_COLUMN[group.lower()]}.{column}"
    proper = _NAMES.get(_ALSO.get(name.lower(), name.lower()))
    if proper is None:
        users = {known.lower(): known for known in OPTIONS if known not in SET_BY_QUERIES}
        near = difflib.get_close_matches(name.lower(), users, n=1, cutoff=0.75)
        hint = f"did you mean {users[near[0]]}?" if near else f"the options are {', '.join(users.values())}"
        hint = _SPARKS.get(name.lower(), hint)
        raise UsageError(f"a punctuated XML source has no option {name}", hint=hint)
    option = OPTIONS[proper]
    if _GIVERS.index(option.giver) > _GIVERS.index(giver):
        raise UsageError(f"{proper} is set by the query that reads the source", hint=option.instead)
    return proper
