"""The table of a source's options: for each its name, parser, default, and who may set it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError, did_you_mean
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.xml.options.formats import (
    choice,
    codec,
    count,
    date_pattern,
    flag,
    name_list,
    rate,
    seconds,
    size,
    text,
    time_zone,
)
from xmlstream.sources.xml.options.locales import locale
from xmlstream.sources.xml.options.qualified_names import XML_PREFIXES, namespace_prefixes

Mode = Literal["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]
OnUngrammatical = Literal["fail", "drop", "divert"]
ManyDocuments = Literal["sequence", "files", "directories", "one"]
CleanSource = Literal["off", "delete", "archive"]
Format = Literal["xml", "parquet", "stream"]
WhenDoctype = Literal["skip", "refuse"]
WhenUnfinished = Literal["wait", "fail", "skip"]
WhenReplaced = Literal["fail", "new"]
WhenBad = Literal["fail", "skip"]

Giver = Literal["user", "reader", "query"]
"""Who sets options: the user of a table, the user of Spark's reader, or a query that reads the source."""

_GIVERS = get_args(Giver)


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a source.

    Attributes:
        name: The documented name; options are compared without regard to case.
        read: The parser of its text; raises a UsageError that names the option.
        default: The value if it is not set.
        giver: Who may set it; later values of `Giver` may set it, too.
        instead: If not every user may set it, what a user does instead.
        may_change: Whether it may change from one run of a query to the next.
        is_promise: Whether it declares what the source's punctuations restrict.
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
        """The option's name as a Python attribute.

        >>> OPTIONS["maxBytesPerSlice"].attribute
        'max_bytes_per_slice'
        """
        return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", self.name)


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
    Option("encoding", codec),
    Option("doctype", choice(*get_args(WhenDoctype)), default="skip", may_change=True),
    Option("dateFormat", date_pattern),
    Option("timestampFormat", date_pattern),
    Option("timeZone", time_zone, default="UTC"),
    Option("locale", locale),
    Option("ignoreSurroundingSpaces", flag, default=True),
    Option("documents", choice(*get_args(ManyDocuments), merge="files"), default="sequence"),
    Option("partitionedBy", name_list, ()),
    Option("cleanSource", choice(*get_args(CleanSource)), default="off", may_change=True),
    Option("sourceArchiveDir", default="", may_change=True),
    Option("validate", default="", may_change=True),
    Option("mode", choice(*get_args(Mode)), default="FAILFAST", may_change=True),
    Option("ungrammatical", choice(*get_args(OnUngrammatical)), default="fail", may_change=True),
    Option("unfinished", choice(*get_args(WhenUnfinished)), default="wait", may_change=True),
    Option("unfinishedAge", seconds, default=600.0, may_change=True),
    Option("onReplaced", choice(*get_args(WhenReplaced)), default="fail", may_change=True),
    Option("badDocuments", choice(*get_args(WhenBad), true="skip", false="fail"), default="fail", may_change=True),
    Option("maxBytesPerSlice", size, may_change=True),
    Option("maxBytesPerPartition", size, default=16 << 20, may_change=True),
    Option("maxFilesPerSlice", count, may_change=True),
    Option("maxItemBytes", size, default=64 << 20, may_change=True),
    Option("rate", rate, default=1.0, may_change=True),
    Option("follow", flag, True, "reader", "run the query with --follow", may_change=True),
    Option("keepOpen", flag, False, "reader", "run the query with --keep-open", may_change=True),
    Option("close", flag, False, "reader", may_change=True),
    Option("documentLog", giver="reader", may_change=True),
    Option("columns", name_list, (), "query"),
)

OPTIONS: Mapping[str, Option] = {option.name: option for option in _TABLE}
"""The options by name."""

SET_BY_QUERIES = {option.name: option.instead for option in _TABLE if option.giver != "user"}
"""The options that only a query sets for its sources, and what a user does instead."""

_BY_COLUMN = {name.lower(): name for name in ("path", "prefix", "dateFormat", "timestampFormat")}
"""The options that can be set for a single column: `path.price` is an option, too."""

_ALSO = {"charset": "encoding", "rowvalidationxsdpath": "validate", "ignorecorruptfiles": "baddocuments"}
"""Second names that Spark's XML source has for some options."""

_SPARKS = {
    "samplingratio": "xmlstream infer reads the beginning of the documents; declare the columns",
    "inferschema": "xmlstream infer reads the beginning of the documents; declare the columns",
    "ignorenamespace": "leave it out: a plain name means elements of any namespace, prefix:name those of namespaces",
    "columnnameofcorruptrecord": "mode 'PERMISSIVE' sets malformed items aside, in the dead letters",
    "pathglobfilter": "write the pattern into the path: 'in/*.xml'",
    "recursivefilelookup": "write it into the path: 'in/**/*.xml'",
    "modifiedafter": "write the wanted names into the path: 'in/2026-11-*.xml'",
    "modifiedbefore": "write the wanted names into the path: 'in/2026-11-*.xml'",
    "watermark": "write punctuate 'order of ts, slack 5s'",
    "excludeattribute": "leave it out: only the columns that are declared are read",
    "wildcardcolname": "declare the columns, or a STRING with path '.', which has all text of an element",
}
"""Options of Spark's XML source that do not exist here, with what to do instead."""

_NAMES = {name.lower(): name for name in OPTIONS}


def by_proper_names(options: Mapping[str, str], giver: Giver) -> dict[str, str]:
    """Renames options to their documented names; like Spark, names are compared without regard to case.

    Raises:
        UsageError: There is no such option, `giver` may not set it, or it is set twice.

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
    """Whether an option, by its documented name, may change from one run of a query to the next.

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
        users = [known for known in OPTIONS if known not in SET_BY_QUERIES]
        others = f"the options are punctuate, {', '.join(users)}"
        hint = _SPARKS.get(name.lower()) or did_you_mean(name, ["punctuate", *users], others, 0.75)
        raise UsageError(f"a punctuated XML source has no option {name}", hint=hint)
    option = OPTIONS[proper]
    if _GIVERS.index(option.giver) > _GIVERS.index(giver):
        what = f"the option '{proper}' cannot be given: the query that reads the source sets it"
        raise UsageError(what, hint=option.instead)
    return proper
