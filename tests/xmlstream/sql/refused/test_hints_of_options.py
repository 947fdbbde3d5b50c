"""Each hint on an option leads where it says: what it proposes is written, and the table is taken."""

from __future__ import annotations

import re

import pytest

from xmlstream.punct_ns.errors import QueryError, XmlStreamError
from xmlstream.sources.xml.options import option_table
from xmlstream.sql.script import read

COLUMNS = "id INT, ts TIMESTAMP, name STRING"
GIVEN = {"path": "in.xml", "rowTag": "r"}


def _error(options: dict[str, str], columns: str) -> XmlStreamError | None:
    given = ", ".join(f"`{name}` {_quoted(value)}" for name, value in options.items())
    try:
        read(f"CREATE TABLE t ({columns}) USING punctuated_xml OPTIONS ({given}); SELECT id FROM t").sketch()
    except XmlStreamError as error:
        return error
    return None


def _quoted(value: str) -> str:
    return '"' + value + '"' if "'" in value else f"'{value}'"


def _named(hint: str) -> dict[str, str]:
    """The options that a hint names with their values."""
    return {name: text[1:-1] for name, text in re.findall(r"\b((?:path\.)?[a-z]\w*) ('[^']*'|\"[^\"]*\")", hint)}


LEFT_OUT = ("ignorenamespace", "excludeattribute", "samplingratio", "inferschema")
WITH_A_PATH = ("pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore")


@pytest.mark.parametrize("name", option_table._SPARKS)
def test_what_is_proposed_for_an_option_of_sparks_is_taken(name: str) -> None:
    error = _error({**GIVEN, name: "x"}, COLUMNS)
    assert error is not None
    hint = error.hint or ""
    named, columns = _named(hint), COLUMNS
    if "leave it out" in hint or "declare the columns" in hint:
        named = {}
    if "with path '.'" in hint:
        named, columns = {"path.all": "."}, f"{COLUMNS}, `all` STRING"
    elif written := re.search(r"into the path: '([^']+)'", hint):
        named = {"path": written[1]}
    assert named or name in LEFT_OUT
    assert _error({**GIVEN, **named}, columns) is None


WRONG: list[tuple[str, str, str]] = [
    ("mode", "PERMISIVE", "PERMISSIVE"),
    ("documents", "all", "files"),
    ("unfinished", "ignore", "skip"),
    ("onReplaced", "again", "new"),
    ("ungrammatical", "skip", "drop"),
    ("doctype", "read", "refuse"),
    ("encoding", "latin-nine", "ISO-8859-1"),
    ("maxBytesPerSlice", "many", "512k"),
    ("unfinishedAge", "soon", "10m"),
    ("unfinishedAge", "soon", "2 hours"),
    ("timestampFormat", "YYYY", "EEE, dd MMM yyyy HH:mm:ss Z"),
    ("timestampFormat", "HH:mm", "EEE, dd MMM yyyy HH:mm:ss Z"),
    ("namespaces", "dc", "dc http://purl.org/dc/elements/1.1/, atom http://www.w3.org/2005/Atom"),
    ("path.id", "a//", "//title"),
    ("path.id", "a//", "//*/@id"),
    ("path.id", "..", "../@id"),
    ("path.id", "..", "name(..)"),
    ("path.id", "a[1]", "string[@key='name']/@value"),
    ("path.id", "dc:id", "id"),
    ("rowTag", "a/b/c d", "open_auction|closed_auction"),
    ("rowTag", "a/b/c d", "Samples/*"),
]
"""An option, a value that is refused, and one that the hint names."""


@pytest.mark.parametrize(("name", "wrong", "written"), WRONG)
def test_the_values_that_a_hint_names_are_taken(name: str, wrong: str, written: str) -> None:
    error = _error({**GIVEN, name: wrong}, COLUMNS)
    assert isinstance(error, QueryError)
    assert written in (error.hint or "")
    assert _error({**GIVEN, name: written}, COLUMNS) is None


TOGETHER: list[tuple[dict[str, str], str, dict[str, str]]] = [
    ({"rowtg": "r"}, "did you mean rowTag", {}),
    ({"path": "in/*.xml", "cleanSource": "archive"}, "sourceArchiveDir", {"sourceArchiveDir": "old"}),
    ({"partitionedBy": "id"}, "documents 'directories' or 'files'", {"documents": "directories"}),
    ({"partitionedBy": "id"}, "documents 'directories' or 'files'", {"documents": "files"}),
    ({"path.id": "position()"}, "unitTag 'open_auction'", {"unitTag": "open_auction"}),
    ({"path.name": "../title"}, "it names the element with the leaf", {"unitTag": "book"}),
    ({"sectionEnds": "open_auction id"}, "path.id '../@id'", {"path.id": "../@id"}),
    ({"sectionEnds": "document() id"}, "path.id 'document(…)'", {"path.id": "document([0-9]+)"}),
    ({"sectionEnds": "id"}, "open_auction id", {"sectionEnds": "open_auction id", "path.id": "../@id"}),
    ({"path.id": "dc:id"}, "namespaces 'dc http://…'", {"namespaces": "dc http://purl.org/dc/elements/1.1/"}),
    ({"path.id": "xml(a)"}, "declare a STRING", {"path.id": "id", "path.name": "xml(a)"}),
    ({"unitTag": "x:a"}, "leave the prefix out", {"unitTag": "a"}),
]
"""Options that are refused, words of the hint, and what is written by it."""


@pytest.mark.parametrize(("given", "words", "written"), TOGETHER)
def test_options_that_a_hint_names_together_are_taken(
    given: dict[str, str], words: str, written: dict[str, str]
) -> None:
    error = _error({**GIVEN, **given}, COLUMNS)
    assert isinstance(error, QueryError)
    assert words in (error.hint or "")
    known = {name: value for name, value in given.items() if name != "rowtg"}
    assert _error({**GIVEN, **known, **written}, COLUMNS) is None
