"""Files that are no XML: what they are, by their first bytes, and what reads them."""

from __future__ import annotations

import codecs
import re

_MAGIC = (
    (b"PK\x03\x04", "the document is a ZIP archive: unpack it"),
    (b"PAR1", "the document is Parquet"),
    (b"ORC", "the document is ORC"),
    (b"Obj\x01", "the document is Avro"),
    (b"%PDF-", "the document is a PDF"),
    (codecs.BOM_UTF8, "the document begins with two byte order marks: take one of them away"),
)
"""First bytes of files that are not XML as they are, and the words for them."""

_TAR = slice(257, 262)
"""Where a tar archive has its mark."""

_JSON = re.compile(rb'[ \t\r\n]*(?:\{\s*(?:"|\}|$)|\[\s*(?:[\[{"\d\]-]|$))')
_JSON_LINES = re.compile(rb"[ \t]*\{[^\n]*\}[ \t]*\r?\n[ \t]*\{")
_SEPARATORS = b";\t|,"
_LINES = 5
"""The lines at the beginning of a text that tell whether it is CSV: two of them at least."""


def other_format(start: bytes) -> str | None:
    r"""Returns what a file is that begins so, and is not XML; None if that is not known.

    >>> other_format(b'{"a": 1}\n{"a": 2}\n'), other_format(b"id;name\n1;x\n2;y\n"), other_format(b"hello, world")
    ('the document is JSON, an object a line', "the document is CSV, with ';' between id, name", None)
    """
    if start[_TAR] == b"ustar":
        return "the document is a tar archive: unpack it"
    if known := next((what for opening, what in _MAGIC if start.startswith(opening)), None):
        return known
    if _JSON.match(start):
        return f"the document is JSON{', an object a line' if _JSON_LINES.match(start) else ''}"
    # The last line may be cut off.
    *whole, last = start.splitlines() if start and b"\0" not in start else [b""]
    lines = [line for line in (*whole, last if start.endswith(b"\n") else b"")[:_LINES] if line]
    for separator in _SEPARATORS:
        counts = {line.count(separator) for line in lines}
        if len(lines) > 1 and len(counts) == 1 and counts != {0}:
            names = [each.strip().strip('"') for each in lines[0].decode("utf-8", "replace").split(chr(separator))]
            shown = "\\t" if separator == ord("\t") else chr(separator)
            return f"the document is CSV, with '{shown}' between {', '.join(names)}"
    return None


def instead_of(reason: str, document: str) -> str | None:
    """Returns what reads a file that is no XML, by the words of `other_format`; None for other words.

    >>> instead_of("the document is a ZIP archive: unpack it", "in/a.zip")
    "`mkdir -p DIR; unzip -d DIR in/a.zip`, and name the directory: path 'DIR'"
    """
    where = document.replace("\\", "\\\\").replace("'", "\\'")
    for archive, unpack in (("a ZIP", "unzip -d DIR"), ("a tar", "tar -C DIR -xf")):
        if reason.startswith(f"the document is {archive}"):
            return f"`mkdir -p DIR; {unpack} {document}`, and name the directory: path 'DIR'"
    if reason.startswith("the document is Parquet"):
        return "a table USING punctuated_parquet reads what a query has written, a static one USING parquet any"
    if reason.startswith("the document is ORC"):
        return _static("…", "orc", where)
    if reason.startswith("the document is Avro"):
        return "Spark reads it: xs.from_stream(spark.readStream.format('avro')…)"
    if reason.startswith("the document is JSON"):
        return _static("…", "json", where, "" if "an object a line" in reason else ", multiLine 'true'")
    if (csv := re.match(r"the document is CSV, with '(.+?)' between (.*)", reason)) is None:
        return None
    names = csv[2].split(", ")
    has_header = all(re.fullmatch(r"[^\W\d][\w .-]*", name) for name in names) and len({*names}) == len(names)
    columns = names if has_header else [f"c{at}" for at in range(1, len(names) + 1)]
    options = ", header 'true'" if has_header else ""
    options += "" if csv[1] == "," else f", sep '{csv[1]}'"
    return _static(", ".join(f"`{each}` STRING" for each in columns), "csv", where, options)


def _static(columns: str, using: str, path: str, options: str = "") -> str:
    table = f"CREATE TABLE t ({columns}) USING {using} OPTIONS (path '{path}'{options})"
    return f"a static table reads it once: {table}; a stream of such files is Spark's, xs.from_stream"
