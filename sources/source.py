"""What is known of a source before it is read: where it is, what a tuple of it looks like, how it is cut.

One `SourceOptions` serves the data source, the planner of a query and `xmlstream check` alike. Its names are those of
Spark's own XML source where the meaning is the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from punct_ns.errors import UsageError
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, implied, parse_schemes
from punct_ns.xml_form import PUNCT_NS
from sources.formats import IsoRewriting
from sources.leaf_path import LeafPath, default_path

Mode = Literal["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]
Ungrammatical = Literal["fail", "drop", "divert"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A punctuated XML source; made by `parse`.

    Attributes:
        path: A file, a directory or a glob, on a file system that the driver and all executors see.
        row_tag: Local name of the tuples' elements, in any namespace but the punctuations'; `{uri}name` names one.
        schema: The attributes, with the declared bounds of their domains and what the schemes imply.
        paths: For each attribute, the path from the row element to the leaf that holds it.
        schemes: What the source promises to punctuate.
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
        document_log: Directory of the record in which order a directory's documents were found.
        stage: Directory in which parsed slices are written; None to hand the tuples to Spark.
        source: The source's name in staged rows.
        columns: The attributes whose values are wanted; punctuations are always read whole.
        given: The options as they were given, under their proper names: `parse(dict(given))` is this source again.
    """

    path: str
    row_tag: str
    schema: Schema
    paths: tuple[LeafPath, ...]
    schemes: tuple[Scheme, ...] = ()
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
    document_log: str | None = None
    stage: str | None = None
    source: str = "source"
    columns: tuple[str, ...] = ()
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
        if "documents" in given:
            raise UsageError(
                f"documents '{given['documents']}' is not supported",
                hint="a source of many documents is their sequence",
            )
        declared = Schema.parse(given["schema"], given.get("domains", ""))
        for attribute in declared:
            if attribute.domain.opaque:
                raise UsageError(
                    f"{attribute.name} is of the type {attribute.domain.type}, which is not read from XML",
                    hint="a string, a number, a boolean, a date or a timestamp is",
                )
        schemes = parse_schemes(given.get("schemes", ""), declared)
        read = {spec.attribute: spec.read(name, given[name]) for name, spec in _SPECS.items() if name in given}
        columns = tuple(declared.attribute(name).name for name in read.pop("columns", ()))
        return SourceOptions(
            path=given["path"],
            row_tag=given["rowTag"],
            schema=implied(declared, schemes),
            paths=_paths(given, declared),
            schemes=schemes,
            columns=columns or declared.names,
            given=tuple(sorted(given.items())),
            **read,
        )

    def replace(self, **options: str | None) -> SourceOptions:
        """The same source with other options, under their proper names; None takes one away."""
        given: dict[str, str] = dict(self.given)
        for name, value in options.items():
            given.pop(name, None)
            if value is not None:
                given[name] = value
        return SourceOptions.parse(given)


def _paths(given: Mapping[str, str], schema: Schema) -> tuple[LeafPath, ...]:
    prefix, value_tag = given.get("attributePrefix", "_"), given.get("valueTag", "_VALUE")
    paths = [default_path(name, prefix, value_tag) for name in schema.names]
    for name, text in given.items():
        if name.startswith("path."):
            column = name.removeprefix("path.")
            if column.lower() not in [known.lower() for known in schema.names]:
                raise UsageError(f"{name} names no attribute", hint=f"the attributes are {', '.join(schema.names)}")
            paths[schema.index(column)] = LeafPath.parse(text)
    return tuple(paths)


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """The options under their proper names."""
    given = {}
    for name, value in options.items():
        proper = _NAMES.get(name.lower())
        if proper is None and name.lower().startswith("path."):
            proper = "path." + name[len("path.") :]
        if proper is None:
            near = difflib.get_close_matches(name.lower(), _NAMES, n=1, cutoff=0.5)
            hint = f"did you mean {_NAMES[near[0]]}?" if near else f"the options are {', '.join(_NAMES.values())}"
            raise UsageError(f"a punctuated XML source has no option {name}", hint=hint)
        given[proper] = value
    return given


@dataclass(frozen=True, slots=True)
class _Spec:
    """The attribute that an option sets, and how its text is read."""

    attribute: str
    read: Callable[[str, str], Any]


def _text(name: str, text: str) -> str:
    return text


def _choice(*choices: str) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        for choice in choices:
            if choice.lower() == text.strip().lower():
                return choice
        raise UsageError(f"{name} '{text}'", hint=f"one of {', '.join(choices)}")

    return read


def _bool(name: str, text: str) -> bool:
    return _choice("true", "false")(name, text) == "true"


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _size(name: str, text: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*([kmg]?)b?\s*", text, re.IGNORECASE | re.ASCII)
    if not match or int(match[1]) == 0:
        raise UsageError(f"{name} '{text}' is no size", hint="a number of bytes such as 100000, 512k or 64m")
    return int(match[1]) * _UNITS[match[2].lower()]


def _count(name: str, text: str) -> int:
    if not re.fullmatch(r"\s*0*[1-9]\d*\s*", text, re.ASCII):
        raise UsageError(f"{name} '{text}' is no number above 0")
    return int(text)


def _format(name: str, text: str) -> str:
    IsoRewriting.of(text)
    return text


def _list(name: str, text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_SPECS = {
    "punctuationNamespace": _Spec("namespace", _text),
    "nullValue": _Spec("null_value", _text),
    "mode": _Spec("mode", _choice(*get_args(Mode))),
    "ungrammatical": _Spec("ungrammatical", _choice(*get_args(Ungrammatical))),
    "encoding": _Spec("encoding", _text),
    "timestampFormat": _Spec("timestamp_format", _format),
    "dateFormat": _Spec("date_format", _format),
    "ignoreSurroundingSpaces": _Spec("ignore_surrounding_spaces", _bool),
    "maxBytesPerSlice": _Spec("max_bytes_per_slice", _size),
    "maxBytesPerPartition": _Spec("max_bytes_per_partition", _size),
    "maxFilesPerSlice": _Spec("max_files_per_slice", _count),
    "maxItemBytes": _Spec("max_item_bytes", _size),
    "follow": _Spec("follow", _bool),
    "keepOpen": _Spec("keep_open", _bool),
    "close": _Spec("close", _bool),
    "documentLog": _Spec("document_log", _text),
    "stage": _Spec("stage", _text),
    "source": _Spec("source", _text),
    "columns": _Spec("columns", _list),
}
assert {spec.attribute for spec in _SPECS.values()} <= {known.name for known in fields(SourceOptions)}

_OTHERS = ("path", "rowTag", "schema", "schemes", "domains", "attributePrefix", "valueTag", "documents")
_NAMES = {name.lower(): name for name in (*_OTHERS, *_SPECS)}

_HINTS = {
    "path": "path names a file, a directory or a glob",
    "rowTag": "rowTag names the elements that are tuples",
    "schema": "schema lists the attributes, as in 'sid STRING, hour INT'",
}
