"""Punctuated Parquet: `CREATE TABLE hottest USING punctuated_parquet OPTIONS (path 'hottest.parquet')`.

What another query writes `USING parquet` is a source: its files in the order of their commits, each with its tuples
and then the punctuations that its metadata has; of a partitioned one those of each slice, with what it has closed, and
the columns that are in names of directories. Columns and schemes are those of the result, unless they are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from punct_ns.errors import InputError, UsageError
from sources.xml.options.local_paths import glob_of, local_path
from sources.xml.splits.parquet_footer import parquet_footer
from sources.xml.splits.partitions import CLOSED, CLOSED_SUFFIX

_KNOWN = (
    "path",
    "schema",
    "schemes",
    "domains",
    "documents",
    "cleanSource",
    "sourceArchiveDir",
    "ungrammatical",
    "unfinished",
    "unfinishedAge",
    "maxBytesPerSlice",
    "maxFilesPerSlice",
    "rate",
)
"""Options of a source that mean something to Parquet."""


def parquet_options(given: Mapping[str, str], columns: str | None = None) -> dict[str, str]:
    """The options of the source that such a table is.

    Args:
        given: Options of any source that are not about XML.
        columns: Spark DDL of its columns, if they are declared.

    Raises:
        UsageError: An option is one of XML, there is no path, or nothing tells the columns.
    """
    proper = {name.lower(): name for name in _KNOWN}
    for key in given:
        if key.lower() not in proper:
            raise UsageError(f"punctuated Parquet has no option {key}", hint=f"it has {', '.join(_KNOWN)}")
    options = {proper[key.lower()]: value for key, value in given.items()}
    if not options.get("path"):
        raise UsageError("the source has no path", hint="path names a file, a directory or a glob")
    if columns is not None:
        options["schema"] = columns
    if "schema" not in options or "schemes" not in options:
        footer = next(filter(None, map(parquet_footer, _documents(options["path"]))), None)
        if footer is not None:
            told = {"schema": footer.schema, "schemes": footer.schemes}
            options = {**{name: text for name, text in told.items() if text is not None}, **options}
    if "schema" not in options:
        hint = "declare them, as in CREATE TABLE t (hour INT, maxtemp DOUBLE) USING punctuated_parquet …"
        raise UsageError(f"nothing at {options['path']} tells the columns", hint=hint)
    return {"rowTag": "row", "format": "parquet", **options}


def _documents(path: str) -> list[str]:
    """Documents of which one may say what all are: the first of a directory, or what is beside its partitions."""
    place = local_path(path)
    if glob_of(place) is not None:
        raise UsageError(f"the columns of {path} are not known", hint="declare them where the path is a glob")
    try:
        found = sorted(Path(place).iterdir()) if Path(place).is_dir() else [Path(place)]
        closings = sorted(Path(place).glob(f"{CLOSED}/slice-*{CLOSED_SUFFIX}"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if closings:
        return [str(closings[0])]
    return [str(file) for file in found if not file.name.startswith((".", "_")) and file.suffix == ".parquet"][:1]
