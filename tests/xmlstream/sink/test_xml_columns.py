"""Columns of XML, written as the elements that they are, and read again by `xml(…)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.sink import Exactness, SinkHome
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import DocumentForm
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import WholeReading
from xmlstream.sql.script import read

NOW: Any = None  # no punctuation here has a lifespan
SCHEMA = Schema.parse("_id INT, d STRING, t STRING")


def written(form: DocumentForm, *texts: str | None) -> bytes:
    columns = [pa.array(range(len(texts)), pa.int32()), pa.array(texts, pa.string()), pa.array(texts, pa.string())]
    table = pa.table(columns, list(SCHEMA.names))
    return b"".join(map(bytes, form.document([(table, ())], Exactness.EXACT, NOW)))


_NAME = st.sampled_from(["b", "i", "d"])
_TEXT = st.sampled_from(["", "a", " b ", "&lt;&amp;", "é", "\n"])
_INSIDE = st.recursive(
    _TEXT, lambda more: st.builds("{0}<{1} x='1'>{2}</{1}>{0}".format, _TEXT, _NAME, more), max_leaves=5
)
_NAMESPACED = '<d xmlns:x="urn:x"><x:b x:y="1"/></d>'


@given(st.lists(st.none() | st.just(_NAMESPACED) | _INSIDE.map("<d>{}</d>".format), min_size=1, max_size=5))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, texts: list[str | None]) -> None:
    path = Path(tmp_path_factory.mktemp("xml") / "d.xml")
    path.write_bytes(written(DocumentForm(SCHEMA, "r", "rs", ("d",)), *texts))
    given_ = {"path": str(path), "rowTag": "r", "path.d": "xml(d)", "ignoreSurroundingSpaces": "false"}
    pieces = list(WholeReading(SourceOptions.parse(given_, "d STRING, t STRING")).pieces())
    rows = [row for piece in pieces for row in piece.tuples.to_pylist()]
    assert [row["t"] for row in rows] == texts
    assert [canonical(row["d"]) for row in rows] == [canonical(text) for text in texts]


def canonical(text: str | None) -> str | None:
    return None if text is None else etree.canonicalize(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("plain", "Start tag expected"),
        ("<d>", "Premature end"),
        ("<e/>", "tag is e, not d"),
        ("<d><r/></d>", "an element r in it would be read as a row"),
        ("<!DOCTYPE d [<!ENTITY x 'y'>]><d>&x;</d>", "document type declaration"),
        ("<d>&x;</d>", "Entity 'x' not defined"),
        ("<d/><d/>", "Extra content"),
    ],
)
def test_what_is_no_element_is_refused_in_words(text: str, reason: str) -> None:
    with pytest.raises(QueryError, match="column d is written as XML") as error:
        written(DocumentForm(SCHEMA, "r", "rs", ("D",)), "<d/>", text)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("column", "row_tag", "reason"),
    [("e", "r", "no column e"), ("_id", "r", "cannot be written as XML"), ("d", "d", "read as a row")],
)
def test_columns_that_cannot_be_elements_are_refused(column: str, row_tag: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        DocumentForm(SCHEMA, row_tag, "rs", (column,))


def test_a_table_has_texts() -> None:
    with pytest.raises(UsageError, match="other forms write the column as text"):
        Target("out.parquet", xml=("d",)).sink(SCHEMA, (), SinkHome(Path("drafts"), "q"))


SQL = """CREATE TABLE s (d STRING) USING punctuated_xml OPTIONS (path 'in.xml', rowTag 's', path.d 'xml(d)');
CREATE TABLE o USING punctuated_xml OPTIONS (path 'out', rowTag 's', path.d '{path}');
INSERT INTO o SELECT d FROM s;"""


def test_a_sink_declares_them_as_a_source_does() -> None:
    (answer,) = read(SQL.format(path="xml( d )")).answers
    assert answer.sink is not None
    assert answer.sink.target.xml == ("d",)
    with pytest.raises(QueryError, match=r"write .xml"):
        read(SQL.format(path="e/d"))
