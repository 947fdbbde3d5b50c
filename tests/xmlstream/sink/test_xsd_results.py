"""Results in XML that others define: prefixes, a root of one's own, paths, and punctuations beside the tuples.

Each document with tuples is valid by the XSD of the result, whatever runs were killed before.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lxml import etree

import xmlstream as xs
from tests.xmlstream.runtime.killed_run import AROUND_THE_COMMIT, POINTS, crash
from xmlstream.cli.concatenation import concatenate
from xmlstream.punct_ns.errors import QueryError, StateError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.directory_sink import DirectorySink, reported_parts
from xmlstream.sink.sink import ComputedSlice, Exactness, SinkHome
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import DocumentForm, Vocabulary
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

XSD = etree.XMLSchema(
    etree.XML(b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="urn:bills"
        targetNamespace="urn:bills" elementFormDefault="qualified">
      <xs:element name="Bills"><xs:complexType>
        <xs:sequence><xs:element name="Bill" type="b:Bill" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
        <xs:attribute name="version" type="xs:decimal" use="required"/>
      </xs:complexType></xs:element>
      <xs:complexType name="Bill"><xs:sequence>
        <xs:element name="Amount" minOccurs="0"><xs:complexType><xs:simpleContent><xs:extension base="xs:int">
          <xs:attribute name="currency" type="xs:string" use="required"/>
        </xs:extension></xs:simpleContent></xs:complexType></xs:element>
        <xs:element name="Party"><xs:complexType><xs:sequence>
          <xs:element name="Name" type="xs:string"/>
        </xs:sequence></xs:complexType></xs:element>
      </xs:sequence><xs:attribute name="id" type="xs:int" use="required"/></xs:complexType>
    </xs:schema>""")
)
SLICES = 5
SOURCE = """CREATE TABLE s (id INT NOT NULL, v INT, who STRING) USING punctuated_xml
  OPTIONS (path '{}', rowTag 'r', schemes 'id', maxFilesPerSlice '1');
"""
SINK = """CREATE TABLE bills USING punctuated_xml OPTIONS (path '{out}', rowTag 'b:Bill', {more},
  path.id '@id', path.v 'b:Amount', path.c 'b:Amount/@currency', path.who 'b:Party/b:Name');
INSERT INTO bills SELECT id, v, if(v IS NULL, NULL, 'EUR') AS c, who FROM s;
"""
PREFIXED = "namespaces 'b urn:bills', rootTag 'b:Bills version=\"2.1\"', punctuations '{}'"


def documents(directory: Path) -> Path:
    """A document a slice, with three tuples, and a punctuation on two of them."""
    (directory / "in").mkdir()
    for i in range(SLICES):
        rows = (
            f"<r><id>{i}</id><v>{i}</v><who>a &amp; b</who></r><r><id>{i}</id><who>c</who></r><r><id>9</id><who/></r>"
        )
        text = f'<rs xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">{rows}<punct:r><id>{i}</id></punct:r></rs>'
        (directory / "in" / f"{i}.xml").write_text(text, encoding="utf-8")
    return directory / "in"


def query(directory: Path, out: Path, more: str) -> str:
    return SOURCE.format(directory) + SINK.format(out=out, more=more)


def run(session: InProcessSession, text: str, checkpoint: Path | None, *, keep_open: bool = False) -> None:
    xs.run(xs.inserts_from_sql(session, text), checkpoint, keep_open=keep_open)


def tuples(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.xml"))


@pytest.fixture(scope="module")
def whole(in_process: InProcessSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of a run that nothing killed, with punctuations beside."""
    home = tmp_path_factory.mktemp("whole")
    run(in_process, query(documents(home), home / "out", PREFIXED.format("beside")), None)
    return home / "out"


@pytest.mark.parametrize("punctuations", ["beside", "none"])
def test_each_document_with_tuples_is_valid_by_an_xsd(
    in_process: InProcessSession, tmp_path: Path, punctuations: str
) -> None:
    run(in_process, query(documents(tmp_path), tmp_path / "out", PREFIXED.format(punctuations)), None)
    found = [etree.parse(path) for path in tuples(tmp_path / "out")]
    assert len(found) == SLICES
    for document in found:
        XSD.assertValid(document)
    assert len(list((tmp_path / "out").glob("*.punct"))) == (SLICES if punctuations == "beside" else 0)
    bill = found[0].getroot()[0]
    assert etree.tostring(bill, with_tail=False).decode().partition(" id=")[2] == (
        '"0"><b:Amount currency="EUR">0</b:Amount><b:Party><b:Name>a &amp; b</b:Name></b:Party></b:Bill>'
    )


def test_an_xsd_refuses_what_has_punctuations_inline(in_process: InProcessSession, tmp_path: Path) -> None:
    run(in_process, query(documents(tmp_path), tmp_path / "out", PREFIXED.format("inline")), None)
    assert not any(XSD.validate(etree.parse(path)) for path in tuples(tmp_path / "out"))


def test_the_root_may_declare_the_default_namespace_for_all_names(in_process: InProcessSession, tmp_path: Path) -> None:
    more = "rootTag 'Bills version=\"1\" xmlns=\"urn:bills\"', punctuations 'beside'"
    text = query(documents(tmp_path), tmp_path / "out", more).replace("b:", "")
    run(in_process, text, None)
    for path in tuples(tmp_path / "out"):
        XSD.assertValid(etree.parse(path))
    (punctuation,) = etree.parse(tmp_path / "out" / "slice-000000001.xml.punct").getroot()
    assert punctuation[0].tag == "{urn:bills}Amount"


READ = """CREATE TABLE t (id INT NOT NULL, v INT, c STRING, who STRING) USING punctuated_xml OPTIONS (path '{}',
  rowTag 'b:Bill', namespaces 'b urn:bills', schemes 'id', path.id '@id', path.v 'b:Amount',
  path.c 'b:Amount/@currency', path.who 'b:Party/b:Name', maxFilesPerSlice '1');
SELECT id, count(*) AS n, max(c) AS c, max(who) AS who FROM t GROUP BY id"""


def test_the_next_query_reads_the_documents_beside_as_punctuations(
    in_process: InProcessSession, whole: Path, tmp_path: Path
) -> None:
    asked = xs.from_sql(in_process, READ.format(whole))
    parts = list(asked.slices(checkpoint=tmp_path / "state", keep_open=True))
    rows = [
        (part.number, row["id"], row["n"], row["c"], row["who"]) for part in parts for row in part.tuples.to_pylist()
    ]
    # A slice reads one document: the tuples of slice 0, then its punctuations, which close id 0 at once.
    closed = [(2 * i + 1, i, 2, "EUR", "c") for i in range(SLICES)]
    assert rows[:-1] == closed
    assert rows[-1] == (2 * SLICES - 1, 9, SLICES, None, "")


def test_a_query_reads_the_tuples_alone_by_a_glob(in_process: InProcessSession, whole: Path) -> None:
    found = xs.from_sql(in_process, READ.format(whole / "*.xml")).to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in found) == [*((i, 2) for i in range(SLICES)), (9, SLICES)]


def test_cat_prints_the_tuples_as_one_valid_document(whole: Path) -> None:
    printed = BytesIO()
    assert concatenate(whole, printed) == SLICES
    XSD.assertValid(document := etree.fromstring(printed.getvalue()))
    assert len(document) == 3 * SLICES


def test_killed_around_the_commit_no_document_beside_is_lost_or_written_twice(
    in_process: InProcessSession, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POINTS, "between the two documents", (DocumentForm, "items"))
    text = query(documents(tmp_path), tmp_path / "out", PREFIXED.format("beside"))
    state = tmp_path / "state"
    for slice_id, point in enumerate([*AROUND_THE_COMMIT, "between the two documents"], start=1):
        crash(lambda: run(in_process, text, state, keep_open=True), point, slice_id)
    run(in_process, text, state)
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == [p.name for p in sorted(whole.iterdir())]
    assert all((tmp_path / "out" / p.name).read_bytes() == p.read_bytes() for p in whole.iterdir())
    (tmp_path / "out" / "slice-000000002.xml.punct").unlink()
    with pytest.raises(StateError, match="1 document that this query has published is gone"):
        run(in_process, text, state)


def test_a_checkpoint_goes_on_with_the_same_names_only(in_process: InProcessSession, tmp_path: Path) -> None:
    source, state = documents(tmp_path), tmp_path / "state"
    run(in_process, query(source, tmp_path / "out", PREFIXED.format("beside")), state, keep_open=True)
    with pytest.raises(StateError, match=r"the punctuations in .* is beside, not none"):
        run(in_process, query(source, tmp_path / "out", PREFIXED.format("none")), state)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (Vocabulary("b:Bill", "Bills"), "row tag 'b:Bill' is not an XML name"),
        (Vocabulary("b:Bill", "c:Bill", "b urn:b, c urn:c"), "a reader could not distinguish them"),
        (Vocabulary(paths=(("v", "x"), ("who", "x"))), "columns v and who are both written at x"),
        (Vocabulary(paths=(("v", "x/@a"), ("id", "x/@a"))), "columns id and v are both written at @a"),
        (Vocabulary(paths=(("v", "@who"), ("who", "@who"))), "both written at @who"),
        (Vocabulary(paths=(("a", "x"), ("id", "x/@id"))), "both written at x"),
        (Vocabulary(paths=(("v", "x"), ("id", "x/y"))), "columns id and v are both written at x"),
        (Vocabulary(paths=(("nothing", "x"),)), "there is no attribute nothing"),
    ],
)
def test_names_that_cannot_be_written_are_refused(names: Vocabulary, reason: str) -> None:
    with pytest.raises((UsageError, QueryError), match=reason):
        DocumentForm(Schema.parse("id INT, v INT, who STRING, a ARRAY<INT>"), names)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("rootTag 'b:Bills'", "'b:Bills' is not well-formed: Namespace prefix b on Bills is not defined"),
        ("rootTag 'Bills a=\">\"'", "is not well-formed: it has < or >"),
        ("rootTag 'Bills version=2'", "is not well-formed: AttValue"),
        ("punctuations 'aside'", "the option punctuations is 'aside'"),
        ("namespaces 'b'", "declares no prefix"),
        *((f"path.v '{p}'", "cannot be written") for p in ("../x", "//x", "a|b", "*", "{urn:x}a", 'x[@k="1"]', ".")),
        ("path.v 'b:x'", "uses the prefix b, which is not declared"),
    ],
)
def test_a_table_with_such_names_is_refused_where_it_is_declared(option: str, reason: str) -> None:
    declared = f"CREATE TABLE o USING punctuated_xml OPTIONS (path 'out', {option});"
    with pytest.raises(QueryError, match=reason):
        read(SOURCE.format("in.xml") + declared + "INSERT INTO o SELECT v FROM s;")


def test_what_has_no_elements_and_no_document_beside_is_refused() -> None:
    schema, home = Schema.parse("v INT"), SinkHome(Path("drafts"), "q")
    for names in (Vocabulary(namespaces="b urn:b"), Vocabulary(paths=(("v", "x"),)), Vocabulary(punctuations="none")):
        with pytest.raises(UsageError, match=r"the output out.parquet is parquet, which has no (names|paths|punct)"):
            Target("out.parquet", names).sink(schema, (), home)
    with pytest.raises(UsageError, match="standard output is one document"):
        Target("-", Vocabulary(punctuations="beside")).sink(schema, (), home)


def test_the_parts_that_tasks_write_are_valid_too_and_the_document_beside_follows_them(tmp_path: Path) -> None:
    schema = Schema.parse("id INT, v INT, c STRING, who STRING")
    paths = {"id": "@id", "v": "b:Amount", "c": "b:Amount/@currency", "who": "b:Party/b:Name"}
    root = 'b:Bills version="1"'
    names = Vocabulary("b:Bill", root, "b urn:bills", tuple(paths.items()), punctuations="beside")
    forms = pickle.loads(pickle.dumps([DocumentForm(schema, names), DocumentForm(schema, names, is_beside=True)]))
    sink = DirectorySink(tmp_path, *forms)
    writer = sink.part_writer(3, Exactness.EXACT)
    assert writer is not None
    columns = {
        "id": pa.array([1, 2], pa.int32()),
        "v": pa.array([5, None], pa.int32()),
        "c": ["EUR", None],
        "who": ["a", "b"],
    }
    batches = pa.table(columns).to_batches() * 2
    parts, _, rows = reported_parts(pa.Table.from_batches([*replace(writer, few=0, many=2)(batches)]))
    assert rows == 4
    punctuation = Punctuation.parse("<[,2], *, *, *>", schema)
    sink.publish(sink.draft(ComputedSlice(3, [(None, [punctuation])], Exactness.LOST, before=parts)))
    documents_ = sorted(path.name for path in tmp_path.iterdir())
    assert documents_ == ["slice-000000003-00001.xml", "slice-000000003.xml", "slice-000000003.xml.punct"]
    for path in tuples(tmp_path):
        XSD.assertValid(etree.parse(path))
    assert b'exact="false"' in (tmp_path / documents_[-1]).read_bytes()


def test_a_null_string_that_would_come_back_empty_is_refused(in_process: InProcessSession, tmp_path: Path) -> None:
    text = query(documents(tmp_path), tmp_path / "out", PREFIXED.format("none"))
    with pytest.raises(QueryError, match="column c is null where b:Amount has other contents"):
        run(
            in_process,
            text.replace("path.c 'b:Amount/@currency'", "path.c 'b:Amount'")
            .replace("path.v 'b:Amount'", "path.v 'b:Amount/@v'")
            .replace("if(v IS NULL, NULL, 'EUR')", "if(v > 0, NULL, 'EUR')"),
            None,
        )


def test_a_result_beside_is_printed_without_its_punctuations_in_python(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    asked = xs.from_sql(in_process, SOURCE.format(documents(tmp_path)) + "SELECT id, v FROM s")
    paths = {"id": "b:Id", "v": "b:Sum/b:Amount"}
    root = 'b:Bills xmlns:b="urn:bills"'
    xs.run([asked.insert_into(tmp_path / "out", "b:Bill", root, paths=paths, punctuations="beside")])
    first = (tmp_path / "out" / "slice-000000000.xml").read_text().splitlines()
    assert first[1:3] == [f"<{root}>", "<b:Bill><b:Id>0</b:Id><b:Sum><b:Amount>0</b:Amount></b:Sum></b:Bill>"]
