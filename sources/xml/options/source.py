"""What is known of a source before it is read: where it is, what a tuple of it looks like, how it is cut.

One `SourceOptions` serves the data source, the planner of a query and `xmlstream check` alike. Its names are those of
Spark's own XML source where the meaning is the same.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from punct_ns.errors import UsageError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, implied, parse_schemes
from punct_ns.xml_form import PUNCT_NS
from sources.xml.options.arrays import element_of
from sources.xml.options.local_paths import local_path, pattern_of
from sources.xml.options.paths import LeafPath, default_path
from sources.xml.options.structural import Closings
from sources.xml.options.values import choice, count, date_pattern, flag, names, seconds, size, text

Mode = Literal["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]
Ungrammatical = Literal["fail", "drop", "divert"]
Many = Literal["sequence", "merge", "one"]
WhenUnfinished = Literal["wait", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A punctuated XML source; made by `parse`.

    Attributes:
        path: A file, a directory or a glob, on a file system that the driver and all executors see. What exists under
            the very name is that, and no glob.
        row_tag: Local name of the tuples' elements, in any namespace but the punctuations'; `{uri}name` names one.
        schema: The attributes, with the declared bounds of their domains and what the schemes imply.
        paths: For each attribute, the path from the row element to the leaf that holds it.
        prefixes: For each attribute, what its texts begin with and its values do not; empty for nothing.
        schemes: What the source promises to punctuate, its closings included.
        closings: What a document closes by its structure.
        unit_tag: Local name of elements that are never cut, so that a row in one can be numbered; empty for none.
        namespace: The namespace URI that makes an element a punctuation.
        null_value: Text of a leaf that stands for null, beside `xsi:nil`; none by default.
        mode: What bad input does: stop the query, divert it, or leave it out and count it.
        ungrammatical: The same for a tuple that an earlier punctuation matches.
        encoding: Of the documents, whatever they say, unless they begin with a byte order mark.
        ignore_surrounding_spaces: Whether blanks around a string are no part of it.
        max_bytes_per_slice: About how much of the source one slice takes.
        max_bytes_per_partition: About how much of it one task parses.
        max_files_per_slice: How many documents of a directory may end in one slice; any number if None.
        max_item_bytes: The longest item; a longer one is malformed.
        follow: Whether more may come: an unfinished document is waited for.
        keep_open: Not following, whether an unfinished document is no error.
        close: Not following, whether the end of what was found closes the source (all wildcards).
        unfinished: What a document does that has no end yet, and has not been written to for `unfinished_age` seconds:
            it is waited for, stops the query, or is passed over for those behind it.
        unfinished_age: In seconds.
        document_log: Directory of the record in which order a directory's documents were found.
        restricted: File of the names of the attributes that its punctuations have restricted so far (`restricted`).
        stage: Directory in which parsed slices are written; None to hand the tuples to Spark.
        source: The source's name in staged rows.
        columns: The attributes whose values are wanted; punctuations are always read whole.
        beside: Other streams of the same documents, which are read along in one pass.
        documents: What many documents are: one stream, `sequence`; or an input each, `merge`, and what goes out are the
            meets; `one`: the path is that of one document, whatever characters it has.
        given: The options as they were given, under their proper names: `parse(dict(given))` is this source again.
    """

    path: str
    row_tag: str
    schema: Schema
    paths: tuple[LeafPath, ...]
    prefixes: tuple[str, ...]
    schemes: tuple[Scheme, ...] = ()
    closings: Closings = field(default_factory=Closings)
    unit_tag: str = ""
    namespace: str = PUNCT_NS
    null_value: str | None = None
    mode: Mode = "FAILFAST"
    ungrammatical: Ungrammatical = "fail"
    encoding: str | None = None
    timestamp_format: str | None = None
    date_format: str | None = None
    ignore_surrounding_spaces: bool = True
    max_bytes_per_slice: int = 64 << 20
    max_bytes_per_partition: int = 16 << 20
    max_files_per_slice: int | None = None
    max_item_bytes: int = 64 << 20
    follow: bool = True
    keep_open: bool = False
    close: bool = False
    unfinished: WhenUnfinished = "wait"
    unfinished_age: float = 600.0
    document_log: str | None = None
    restricted: str | None = None
    stage: str | None = None
    source: str = "source"
    columns: tuple[str, ...] = ()
    beside: tuple[SourceOptions, ...] = ()
    documents: Many = "sequence"
    given: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @staticmethod
    def parse(options: Mapping[str, str], schema: str | None = None) -> SourceOptions:
        """The source that options describe; names are compared without case, as Spark does.

        Args:
            options: As in `CREATE TABLE … OPTIONS (…)`.
            schema: Spark DDL of the attributes, if it is not among the options.

        Raises:
            UsageError: An unknown option, a missing one, or a value that cannot be read.
        """
        given = _named(options)
        if schema is not None:
            given["schema"] = schema
        for needed in ("path", "rowTag", "schema"):
            if not given.get(needed):
                raise UsageError(f"the source has no {needed}", hint=_HINTS[needed])
        declared = Schema.parse(given["schema"], given.get("domains", ""))
        for attribute in declared:
            if attribute.domain.opaque and element_of(attribute.domain) is None:
                raise UsageError(
                    f"{attribute.name} is of the type {attribute.domain.type}, which is not read from XML",
                    hint="a string, a number, a boolean, a date, a timestamp, or an array of those is",
                )
        paths = _paths(given, declared)
        closings = Closings.parse(given.get("uniqueIds", ""), given.get("sectionEnds", ""), declared, paths)
        schemes = tuple(
            dict.fromkeys([*parse_schemes(given.get("schemes", ""), declared), *closings.schemes(declared)])
        )
        read = {spec.attribute: spec.read(name, given[name]) for name, spec in _SPECS.items() if name in given}
        columns = tuple(declared.attribute(name).name for name in read.pop("columns", ()))
        source = SourceOptions(
            path=given["path"],
            row_tag=given["rowTag"],
            schema=implied(declared, schemes),
            paths=paths,
            prefixes=_prefixes(given, declared),
            schemes=schemes,
            closings=closings,
            columns=columns or declared.names,
            given=tuple(sorted(given.items())),
            **read,
        )
        source._require_sense()
        return source

    @property
    def uncut(self) -> frozenset[bytes]:
        """Local names of the elements that no cut lies in."""
        names = {self.row_tag.rpartition("}")[2].encode(), self.unit_tag.encode()} - {b""}
        return frozenset(names).union(*(other.uncut for other in self.beside))

    @property
    def is_merged(self) -> bool:
        """Whether each of its documents is to be an input of its own."""
        return self.documents == "merge"

    def _require_sense(self) -> None:
        if not self.unit_tag and (numbers := [path for path in self.paths if path.function == "position"]):
            raise UsageError(
                f"{numbers[0]} needs the option unitTag",
                hint="it names the elements within which rows are numbered, such as unitTag 'open_auction'",
            )
        if self.closings and self.documents == "sequence" and pattern_of(local_path(self.path)) is not None:
            raise UsageError(MANY, hint=ONE)

    def replace(self, **options: str | None) -> SourceOptions:
        """The same source with other options, under their proper names; None takes one away."""
        given: dict[str, str] = dict(self.given)
        for name, value in options.items():
            given.pop(name, None)
            if value is not None:
                given[name] = value
        return SourceOptions.parse(given)


def _prefixes(given: Mapping[str, str], schema: Schema) -> tuple[str, ...]:
    found = [""] * len(schema)
    for name, prefix in given.items():
        if name.startswith("prefix."):
            place = _place(name, schema)
            if (element_of(schema[place].domain) or schema[place].domain).type == "STRING":
                raise UsageError(f"{name} of a STRING", hint="a prefix is taken off what is no string, as in person17")
            found[place] = prefix
    return tuple(found)


def _place(option: str, schema: Schema) -> int:
    """The attribute that an option is for."""
    column = option.partition(".")[2]
    if column.lower() not in [known.lower() for known in schema.names]:
        raise UsageError(f"{option} names no attribute", hint=f"the attributes are {', '.join(schema.names)}")
    return schema.index(column)


def _paths(given: Mapping[str, str], schema: Schema) -> tuple[LeafPath, ...]:
    prefix, value_tag = given.get("attributePrefix", "_"), given.get("valueTag", "_VALUE")
    paths = [default_path(name, prefix, value_tag) for name in schema.names]
    for name, path in given.items():
        if name.startswith("path."):
            paths[_place(name, schema)] = LeafPath.parse(path)
    return tuple(paths)


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """The options under their proper names."""
    given = {}
    for name, value in options.items():
        proper = _NAMES.get(name.lower())
        group, dot, column = name.partition(".")
        if proper is None and dot and group.lower() in ("path", "prefix"):
            proper = f"{group.lower()}.{column}"
        if proper is None:
            near = difflib.get_close_matches(name.lower(), _NAMES, n=1, cutoff=0.5)
            known = ", ".join(known for known in _NAMES.values() if known not in SET_BY_QUERIES)
            hint = f"did you mean {_NAMES[near[0]]}?" if near else f"the options are {known}"
            raise UsageError(f"a punctuated XML source has no option {name}", hint=hint)
        given[proper] = value
    return given


@dataclass(frozen=True, slots=True)
class _Spec:
    """The attribute that an option sets, and how its text is read."""

    attribute: str
    read: Callable[[str, str], Any]


def _beside(name: str, given: str) -> tuple[SourceOptions, ...]:
    try:
        return tuple(SourceOptions.parse(options) for options in json.loads(given))
    except (ValueError, TypeError, AttributeError):
        raise UsageError(
            f"{name} is no list of sources", hint="a query says it where it reads several in one pass"
        ) from None


_SPECS = {
    "punctuationNamespace": _Spec("namespace", text),
    "nullValue": _Spec("null_value", text),
    "unitTag": _Spec("unit_tag", text),
    "mode": _Spec("mode", choice(*get_args(Mode))),
    "ungrammatical": _Spec("ungrammatical", choice(*get_args(Ungrammatical))),
    "encoding": _Spec("encoding", text),
    "timestampFormat": _Spec("timestamp_format", date_pattern),
    "dateFormat": _Spec("date_format", date_pattern),
    "ignoreSurroundingSpaces": _Spec("ignore_surrounding_spaces", flag),
    "maxBytesPerSlice": _Spec("max_bytes_per_slice", size),
    "maxBytesPerPartition": _Spec("max_bytes_per_partition", size),
    "maxFilesPerSlice": _Spec("max_files_per_slice", count),
    "maxItemBytes": _Spec("max_item_bytes", size),
    "documents": _Spec("documents", choice(*get_args(Many))),
    "unfinished": _Spec("unfinished", choice(*get_args(WhenUnfinished))),
    "unfinishedAge": _Spec("unfinished_age", seconds),
    "follow": _Spec("follow", flag),
    "keepOpen": _Spec("keep_open", flag),
    "close": _Spec("close", flag),
    "documentLog": _Spec("document_log", text),
    "restricted": _Spec("restricted", text),
    "stage": _Spec("stage", text),
    "source": _Spec("source", text),
    "columns": _Spec("columns", names),
    "beside": _Spec("beside", _beside),
}
assert {spec.attribute for spec in _SPECS.values()} <= {known.name for known in fields(SourceOptions)}

_OTHERS = ("path", "rowTag", "schema", "schemes", "domains", "attributePrefix", "valueTag", "uniqueIds", "sectionEnds")
_NAMES = {name.lower(): name for name in (*_OTHERS, *_SPECS)}

SET_BY_QUERIES = {
    "follow": "run the query with --follow, or by start",
    "keepOpen": "run the query with --keep-open, or keep_open=True",
    **dict.fromkeys(("close", "documentLog", "restricted", "stage", "source", "columns", "beside"), "leave it out"),
}
"""Options that a query sets for its sources, and what a user does instead."""

MANY = "what one document closes, another may bring again: uniqueIds and sectionEnds are of a single document"
"""Why a source of many documents cannot be closed by their structure."""

ONE = "say documents 'merge': each document is an input of its own, and what goes out is closed in all of them"
"""What can be done about it."""

_HINTS = {
    "path": "path names a file, a directory or a glob",
    "rowTag": "rowTag names the elements that are tuples",
    "schema": "schema lists the attributes, as in 'sid STRING, hour INT'",
}
