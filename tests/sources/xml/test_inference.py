"""What a document looks like becomes a declaration that reads it, at the first attempt."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from sqlglot.dialects.spark import Spark

import xmlstream as xs
from tests.harness.pages import ROOT, section
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.punct_ns.xml_form import NAME
from xmlstream.sources.xml.inference.proposal import Proposal, _in_sql, proposal
from xmlstream.sources.xml.parser.range_parser import WholeReading
from xmlstream.sources.xml.splits.other_formats import other_format
from xmlstream.sql import script

FEEDS = sorted((ROOT / "tests" / "samples" / "feeds").glob("*.xml"))
DATA = sorted((ROOT / "data").glob("*.xml"))
FORMATS = sorted((ROOT / "tests" / "samples" / "formats").glob("*.xml"))
WANTED = {
    "aixm": "hasMember",
    "camt053": "Ntry",
    "ccda": "observation",
    "datex": "siteMeasurements",
    "docbook": "chapter",
    "hl7v2": "ORU_R01.OBSERVATION",
    "junit": "testcase",
    "maven": "dependency",
    "metrics": "metric",
    "mtconnect": "Samples/*",
    "musicxml": "measure",
    "netex": "StopPlace",
    "nmap": "host",
    "osm_change": "node",
    "pain001": "CdtTrfTxInf",
    "sdmx_structure": "Obs",
    "siri_et": "EstimatedVehicleJourney",
    "siri_vm": "VehicleActivity",
    "soap_log": "Envelope",
    "tei": "div",
    "ubl_invoices": "InvoiceLine",
    "windows_events": "Event",
    "witsml": "log",
    "xes": "event",
}
"""The row that one wants of each format."""

ON_SPARK = (pytest.mark.spark, pytest.mark.rest)

OTHERS = {"mtconnect": "Position", "netex": "Quay"}
"""The formats of which another row is proposed."""

PUNCT = "http://www.cse.ogi.edu/dot/niagara/punct"


def read_by(statement: str, tag: str) -> list[dict[str, object]]:
    """The tuples that a source declared so has."""
    (source,) = script.read(f"{statement}\nSELECT * FROM `{tag}`;").sources
    return [row for piece in WholeReading(source.options).pieces() for row in piece.tuples.to_pylist()]


def tuples(found: Proposal) -> list[dict[str, object]]:
    """The tuples of a proposal's statement."""
    name = found.options["rowTag"].rpartition(":")[2].rpartition("}")[2]
    return read_by(found.create_table(), re.sub(r"\W", "_", name))


def elements(path: Path, tag: str) -> list[etree._Element]:
    root = etree.parse(path, etree.XMLParser(load_dtd=False, no_network=True)).getroot()
    return [each for each in root.iter(f"{{*}}{tag}") if etree.QName(each).namespace != PUNCT]


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.stem)
def test_the_row_that_one_wants_is_proposed(path: Path) -> None:
    assert proposal(str(path)).options["rowTag"] == OTHERS.get(path.stem, WANTED[path.stem])


def test_keys_and_values_become_columns_of_their_keys() -> None:
    found = proposal(str(ROOT / "tests" / "samples" / "formats" / "xes.xml"))
    assert [column.name for column in found.columns][:4] == [
        "concept_name",
        "org_resource",
        "lifecycle_transition",
        "time_timestamp",
    ]
    assert found.options["path.concept_name"] == 'string[@key="concept:name"]/@value'
    assert [row["concept_name"] for row in tuples(found)] == ["Register", "Examine", "Register", "Decide"]
    assert {row["parent_concept_name"] for row in tuples(found)} == {"case-1", "case-2"}


@given(names=st.lists(st.from_regex(NAME, fullmatch=True), min_size=4, max_size=4, unique_by=str.lower))
@example(names=["น้ำ", "हिन्दी", "a\u0301", "ช่อง"])
@example(names=["row", "x-y", "x.y", "é·x"])
def test_names_of_any_script_are_inferred_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    row, *leaves = (name.replace("xml", "y").replace("XML", "y") for name in names)
    inside = "".join(f"<{leaf}>{number}</{leaf}>" for number, leaf in enumerate(leaves))
    rows = f"<{row} {row}='9'>{inside}</{row}>" * 3
    document = tmp_path_factory.mktemp("names") / "d.xml"
    document.write_text(f"<r>{rows}</r>", encoding="utf-8")
    found = proposal(str(document), row)
    statement = found.create_table()
    (table,) = re.findall(r"CREATE TABLE (\S+) \(", statement)
    (source,) = script.read(f"{statement}\nSELECT * FROM {table};").sources
    read = [row for piece in WholeReading(source.options).pieces() for row in piece.tuples.to_pylist()]
    columns = [column.name for column in found.columns]
    assert [sorted(str(each[name]) for name in columns) for each in read] == [["0", "1", "2", "9"]] * 3


def test_a_row_of_very_many_leaves_has_structures(path: Path) -> None:
    cash = "<cash><day>2026-01-01</day><amt ccy='EUR'>1.25</amt></cash>" * 2
    leg = f"<leg n='1'>{''.join(f'<f{n}>{n}</f{n}>' for n in range(30))}{cash}</leg>"
    party = f"<party>{''.join(f'<p{n}>x</p{n}>' for n in range(20))}</party>"
    found = inferred(path, f"<trade><id>1</id>{leg * 2}{party}</trade>" * 2, "trade")
    assert [column.name for column in found.columns][:2] == ["id", "leg"]
    assert len(found.columns) == 22
    (first, _) = tuples(found)
    assert first["leg"][1]["cash"][0]["amt"] == {"_ccy": "EUR", "_VALUE": 1.25}  # type: ignore[index]
    wide = party.replace("party", "b") + party.replace("party", "c") + party
    found = inferred(path, f"<trade><id>1</id>{leg * 2}{wide}</trade>" * 2, "trade")
    assert [column.name for column in found.columns] == ["id", "leg", "b", "c", "party"]
    assert tuples(found)[0]["c"]["p7"] == "x"  # type: ignore[index]
    flat = "".join(f"<f{n}>{n}</f{n}>" for n in range(80))
    assert inferred(path, f"<row>{flat}</row>" * 2).left_out == tuple(f"f{n}" for n in range(60, 80))


@pytest.mark.parametrize("path", [*FEEDS, *FORMATS, *DATA], ids=lambda path: path.stem)
def test_what_is_inferred_reads_every_row_and_every_text_of_it(path: Path) -> None:
    found = proposal(str(path))
    rows = elements(path, found.options["rowTag"])
    read = tuples(found)
    assert len(read) == len(rows) == found.rows
    for column in found.columns:
        assert any(row[column.name] is not None for row in read) or column.leaf.values.is_blank, column.name


@pytest.mark.parametrize("path", FEEDS, ids=lambda path: path.stem)
def test_every_other_element_that_repeats_can_be_asked_for(path: Path) -> None:
    for tag in proposal(str(path)).others:
        if "{" not in tag:
            found = proposal(str(path), tag)
            assert len(tuples(found)) == found.rows == len(elements(path, tag)), tag


def test_the_manual_lists_the_formats_that_were_tried_and_what_was_inferred_of_them() -> None:
    rows = [
        [cell.strip(" `") for cell in row.split("|")[1:-1]]
        for row in section("sources/README.md", "Inferring a declaration").splitlines()
        if row.startswith("| ") and "`" in row
    ]
    listed = {row[1]: row[2] for row in rows}
    assert listed == {path.name: proposal(str(path)).options["rowTag"] for path in FEEDS}
    assert len(listed) >= 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "d.xml"


def inferred(path: Path, body: str, row_tag: str | None = None, **given: str) -> Proposal:
    path.write_text(f"<r xmlns:p='{PUNCT}' xmlns:x='urn:x' xmlns:y='urn:y'>{body}</r>", encoding="utf-8")
    return proposal(str(path), row_tag, given)


@pytest.mark.parametrize(
    ("rows", "schema", "options"),
    [
        (["<a>1</a><b>x</b>", "<b/>"], "`a` BIGINT, `b` STRING", {}),
        (["<a>1</a>", "<a>2.5</a>", "<a>1e3</a>"], "`a` DOUBLE", {}),
        (["<a>01</a>"] * 2, "`a` STRING", {}),
        (["<a>1.9</a>", "<a>1.10</a>"], "`a` STRING", {}),
        (["<a>9.99</a>", "<a>1.10</a>"], "`a` DOUBLE", {}),
        (["<version>2.10</version>"] * 2, "`version` STRING", {}),
        (["<version>3</version>"] * 2, "`version` BIGINT", {}),
        (["<phone>4930123456</phone>"] * 2, "`phone` STRING", {}),
        (["<postcode>10117</postcode>", "<postcode>00123</postcode>"], "`postcode` STRING", {}),
        (["<PostalZone>10117</PostalZone>"] * 2, "`PostalZone` STRING", {}),
        (["<id>12345678901234567890</id>", "<id>7</id>"], "`id` STRING", {}),
        (["<a>1234567890123456.5</a>", "<a>7</a>"], "`a` DOUBLE", {}),
        (["<a>true</a>", "<a>false</a>"], "`a` BOOLEAN", {}),
        (["<a>true</a>", "<a>1</a>"], "`a` STRING", {}),
        (["<a>2024-01-01</a>", "<a>2024-01-01T10:00:00Z</a>"], "`a` TIMESTAMP", {}),
        (["<a>2024-01-01</a>", "<a> </a>"], "`a` DATE", {}),
        (["<a>Tue, 03 Jun 2003 09:39:21 GMT</a>", "<a/>"], "`a` TIMESTAMP", {}),
        (["<a>Tue, 3 Jun 2003 09:39:21 EST</a>", "<a>Tue, 03 Jun 2003 09:39:21 +0200</a>"], "`a` TIMESTAMP", {}),
        (["<a>20.11.2026</a>", "<a/>"], "`a` DATE", {}),
        (["<a>2026-01-02+02:00</a>", "<a>2026-01-03Z</a>"], "`a` DATE", {}),
        (["<a>2026-01-02+02:00</a>", "<a>2026-01-03</a>"], "`a` DATE", {}),
        (["<a>2026-01-02+02:00</a>", "<a>2026-01-03T10:00:00</a>"], "`a` STRING", {}),
        (["<a>05/07/2026</a>", "<a>06/07/2026</a>"], "`a` STRING", {}),
        (["<a>05/17/2026 10:00:00</a>", "<a>06/07/2026 10:00:00</a>"], "`a` TIMESTAMP", {}),
        (["<a>2026-11-20T08:00:00.1234567Z</a>"] * 2, "`a` TIMESTAMP", {}),
        (["<a>Tue, 33 Jun 2003 09:39:21 EST</a>"] * 2, "`a` STRING", {}),
        (["<a>1</a><a>2</a>", "<a>3</a>"], "`a` ARRAY<BIGINT>", {}),
        (["<b><c>1</c></b><b/>", ""], "`c` ARRAY<BIGINT>", {"path.c": "b/c"}),
        (["<b><c>1</c></b><c>2</c>", ""], "`b_c` BIGINT, `c` BIGINT", {"path.b_c": "b/c"}),
        (["<c>1</c><x:c>2</x:c>"] * 2, "`c` BIGINT, `x_c` BIGINT", {"path.c": "{}c", "path.x_c": "x:c"}),
        (["<a-b.c>1</a-b.c>"] * 2, "`a_b_c` BIGINT", {"path.a_b_c": "a-b.c"}),
        (["<A>1</A><a>1</a>"] * 2, "`A` BIGINT, `a_2` BIGINT", {"path.a_2": "a"}),
        (["<a>1<b>2</b></a>"] * 2, "`a` STRING", {}),
        (["<a>1</a>", "<a><b>2.5</b></a>"], "`a` STRING, `b` DOUBLE", {"path.b": "a/b"}),
        (["<row/>"] * 2, "`_VALUE` STRING", {}),
        (["1", "2"], "`_VALUE` BIGINT", {}),
    ],
)
def test_columns_types_and_paths(path: Path, rows: list[str], schema: str, options: dict[str, str]) -> None:
    found = inferred(path, "".join(f"<row>{row}</row>" for row in rows), "row")
    assert found.schema == schema
    assert {name: value for name, value in found.options.items() if name.startswith("path.")} == options
    assert len(tuples(found)) == found.rows


def test_a_single_row_that_a_punctuation_closes_is_the_row(path: Path) -> None:
    found = inferred(path, "<t><a>1</a></t><p:t><a>1</a></p:t>")
    assert (found.options["rowTag"], found.schema) == ("t", "`a` BIGINT")


def test_rows_of_several_namespaces_are_told_apart(path: Path) -> None:
    body = "<x:row><a>1</a></x:row><y:row><a>2</a></y:row>" * 2
    assert {inferred(path, body).options["rowTag"]} <= {"x:row", "y:row"}
    with pytest.raises(UsageError, match="row is an element of 2 namespaces"):
        inferred(path, body, "row")
    assert len(tuples(inferred(path, body, "z:row", namespaces="z urn:y"))) == 2
    both = "<row><a>1</a></row>" + body
    with pytest.raises(UsageError, match=r'rowTag="\{\}row" or rowTag="\{urn:x\}row"'):
        inferred(path, both, "row")
    assert len(tuples(inferred(path, both, "{}row"))) == 1


def test_what_would_be_true_is_a_guess(path: Path) -> None:
    rows = "".join(f"<row nr='{n}'><id>i{9 - n}</id><h>{n // 2}</h></row>" for n in range(6))
    found = inferred(path, rows)
    assert [(guess.option, guess.value) for guess in found.guesses] == [
        ("uniqueIds", "id"),
        ("punctuate", "order of _nr"),
    ]
    text = found.create_table()
    assert "a guess" in text
    taken = "\n".join(line.replace("  -- uniqueIds", "  uniqueIds") for line in text.splitlines())
    assert len(read_by(taken, "row")) == 6


@pytest.mark.parametrize(
    ("minutes", "rule"),
    [
        ((0, 1, 1, 5), "order of at"),
        ((0, 9, 5, 20, 30), "order of at, slack 240s"),
        ((0, 9, 5, 4, 30), None),
        ((0, 9, 1, 10, 11), None),
        ((3, 3, 3), None),
    ],
)
def test_a_time_that_seldom_falls_has_the_slack_that_was_seen(
    path: Path, minutes: tuple[int, ...], rule: str | None
) -> None:
    found = inferred(path, "".join(f"<row><at>2026-01-01T10:{minute:02}:00</at></row>" for minute in minutes))
    assert next((each.value for each in found.guesses if each.option == "punctuate"), None) == rule


def test_keywords_as_names_are_read_by_the_statement(path: Path) -> None:
    words = {phrase.split()[0].lower() for phrase in Spark.Tokenizer.KEYWORDS}
    found = inferred(path, "<row><x><leaf>2</leaf></x></row>" * 3).create_table()
    for word in filter(str.isidentifier, words):
        named = found.replace("TABLE row", f"TABLE {_in_sql(word)}").replace("`leaf`", f"`{word}`")
        named = named.replace("path.leaf", f"path.{_in_sql(word)}")
        (source,) = script.read(f"{named}\nSELECT * FROM `{word}`;").sources
        assert source.options.schema.names == (word,)
    for word in ("when", "select", "group"):
        path.write_text(f"<r>{f'<{word}><b>3</b></{word}>' * 3}</r>", encoding="utf-8")
        assert [row["b"] for row in read_by(proposal(str(path)).create_table(), word)] == [3] * 3


def test_each_row_of_a_growing_document_comes_before_its_root_ends(path: Path) -> None:
    found = inferred(path, "<head><by>A</by></head>" + "<day d='1'><row><a>1</a></row><row><a>2</a></row></day>" * 2)
    assert "unitTag" not in found.options
    more = path.with_name("more")
    more.mkdir()
    for name in "ab":
        (more / f"{name}.xml").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert "unitTag" not in proposal(str(more)).options


def test_a_statement_says_what_each_row_has_what_was_seen_once_and_what_is_joined(path: Path) -> None:
    xsi = "http://www.w3.org/2001/XMLSchema-instance"
    rows = "<row xmlns:xsi='{}' xsi:type='{}'><n>{}</n><t>a <b>c</b></t>{}</row>"
    rest = (("", "S", 1), ("<only>1</only>", "R", 2), ("<some>1</some>", "R", 3), ("<some>1</some>", "S", 4))
    found = inferred(path, "".join(rows.format(xsi, kind, n, more) for more, kind, n in rest), "row")
    assert found.create_table().split("\n")[2:7] == [
        "  `_xsi_type` STRING NOT NULL,",
        "  `n` BIGINT NOT NULL,",
        "  `t` STRING NOT NULL,  -- all text in the element, that of elements in it, too",
        "  `only` BIGINT,  -- seen once",
        "  `some` BIGINT",
    ]
    assert [row["_xsi_type"] for row in tuples(found)] == ["S", "R", "R", "S"]
    assert found.schema.startswith("`_xsi_type` STRING, "), "a later document may lack it"


def test_punctuations_are_read_as_promises_and_are_no_rows(path: Path) -> None:
    found = inferred(path, "".join(f"<row><h>{n}</h></row><p:row><h>{n}</h></p:row>" for n in range(4)))
    assert found.rows == 4
    assert ("schemes", "h") in [(guess.option, guess.value) for guess in found.guesses]
    assert "schemes" not in [g.option for g in inferred(path, "<row><h>1</h></row><p:row><h>1</h></p:row>" * 2).guesses]


def test_a_document_that_still_grows_is_inferred_from_what_is_there(path: Path) -> None:
    for tail in ("", "<row><a>3</a>", "<row><a"):
        path.write_text(f"<log><row><a>1</a></row><row><a>2</a></row>{tail}", encoding="utf-8")
        found = proposal(str(path))
        assert (found.schema, found.is_whole) == ("`a` BIGINT", False)


def test_what_cannot_be_inferred_is_said_in_words(path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        proposal(str(path))
    path.write_text("no xml", encoding="utf-8")
    with pytest.raises(InputError, match="is not a valid XML document"):
        proposal(str(path))
    with pytest.raises(InputError, match="is not well-formed"):
        inferred(path, "<row><a>1</b></row>")
    with pytest.raises(InputError, match="repeated elements are row"):
        inferred(path, "<row><a>1</a></row>" * 2, "rwo")
    with pytest.raises(UsageError, match="columns are inferred for one row tag"):
        inferred(path, "<row><a>1</a></row>" * 2, "row/*")
    with pytest.raises(UsageError, match="uses the prefix q"):
        inferred(path, "<row><a>1</a></row>" * 2, "q:row")
    with pytest.raises(UsageError, match="did you mean nullValue"):
        inferred(path, "<row/>", None, nulValue="x")


BROKEN = {
    "<r><row><a>x & y</a></row></r>": "XML writes a & of the text as &amp;",
    "<r><row><a>AT&T</a></row></r>": "XML writes a & of the text as &amp;",
    "<r><row><a>1 < 2</a></row></r>": "XML writes a < of the text as &lt;",
    "<r><row><a>M\xfcller</a></row></r>": "what is not in UTF-8 has an encoding: option encoding",
    "<row><a>1</a></row><row><a>2</a></row>": "a document has one root; `xmlstream receive -",
}


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_broken_gets_a_cure_whoever_reads_it(path: Path, text: str) -> None:
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as inferring:
        proposal(str(path))
    source = script.read(
        f"CREATE TABLE row (a STRING) USING punctuated_xml OPTIONS (path '{path}', rowTag 'row');SELECT * FROM row;"
    )
    (options,) = (each.options for each in source.sources)
    with pytest.raises(InputError) as reading:
        list(WholeReading(options).pieces())
    assert str(reading.value.hint).startswith(BROKEN[text])
    assert str(inferring.value.hint).startswith(BROKEN[text].replace(": option encoding", ": --option encoding="))


FLAWED = {
    "<r><row><a>M\xfcller</a></row></r>": "latin-1",
    "<?xml version='1.0' encoding='foo'?><r><row><a>M\xfcller</a></row></r>": "UTF-8",
    "<r><row><a>Miller</a></row></r>": "utf-16-le",
}


@pytest.mark.parametrize("text", FLAWED)
def test_the_encoding_that_the_hint_names_reads_it(path: Path, text: str) -> None:
    path.write_bytes(text.encode(FLAWED[text]))
    with pytest.raises(InputError) as raised:
        proposal(str(path), "row")
    ((name, value),) = re.findall(r"--option (\w+)=(\S+)", str(raised.value.hint))
    assert str(tuples(proposal(str(path), "row", {name: value}))[0]["a"]) in text


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("DATE", "20.11.2026", "2026-11-20"),
        ("TIMESTAMP", "20.11.2026 08:05", "2026-11-20T08:05:00"),
        ("TIMESTAMP", "2026-11-20T08:00:00.1234567Z", "2026-11-20T08:00:00.123456"),
        ("TIMESTAMP", "2026-11-20T08:00:00.123456789", "2026-11-20T08:00:00.123456"),
        ("DATE", "2026-01-02+02:00", "2026-01-02"),
        ("DATE", "2026-01-02Z", "2026-01-02"),
    ],
)
def test_the_format_that_the_hint_names_reads_the_text(path: Path, type_: str, text: str, value: str) -> None:
    path.write_text(f"<r><row><a>{text}</a></row></r>", encoding="utf-8")
    declared = "CREATE TABLE row (a {}) USING punctuated_xml OPTIONS (path '{}', rowTag 'row'{});"
    (source,) = script.read(declared.format(type_, path, "") + "SELECT * FROM row;").sources
    with pytest.raises(InputError) as raised:
        list(WholeReading(source.options).pieces())
    hint = re.search(r"declare (\w+) (['\"].*['\"])", str(raised.value.hint))
    assert hint is not None
    (row,) = read_by(declared.format(type_, path, f", {hint[1]} {hint[2]}"), "row")
    assert row["a"].isoformat().removesuffix("+00:00") == value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("yyyy-MM-ddXXX", "2026-01-02+02:00", "2026-01-02"),
        ("yyyy-MM-dd[XXX]", "2026-01-02", "2026-01-02"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-02T23:30:00-05:00", "2026-01-02"),
        ("EEE, dd MMM yyyy HH:mm:ss Z", "Fri, 02 Jan 2026 23:30:00 GMT", "2026-01-02"),
        ("dd.MM.yyyy HH:mm", "02.01.2026 24:00", None),
        ("yyyy-MM-ddXXX", "2026-01-02+19:00", None),
        ("dd.MM.yyyy", "31.02.2026", None),
    ],
)
def test_a_date_with_a_zone_or_a_time_is_the_date_as_it_is_written(
    path: Path, pattern: str, text: str, value: str | None
) -> None:
    path.write_text(f"<r><row><a>{text}</a><b><a>{text}</a></b></row></r>", encoding="utf-8")
    declared = f"a DATE, b STRUCT<a: DATE>) USING punctuated_xml OPTIONS (path '{path}', rowTag 'row', dateFormat "
    statement = f'CREATE TABLE row ({declared} "{pattern}");'
    if value is not None:
        (row,) = read_by(statement, "row")
        assert (str(row["a"]), str(row["b"]["a"])) == (value, value)  # type: ignore[index]
    else:
        with pytest.raises(InputError, match=re.escape(f"a: '{text}' is not a valid DATE")):
            read_by(statement, "row")


@pytest.mark.parametrize(
    ("text", "why", "value"),
    [
        ("2026-01-31T24:00:00", "hour must be in 0..23", "2026-02-01 00:00:00"),
        ("2016-12-31 23:59:60", "second must be in 0..59", "2016-12-31 23:59:59"),
        ("2016-12-31T23:59:60Z", "second must be in 0..59", "2016-12-31 23:59:59"),
        ("2016-02-30T10:24:00", "day is out of range for month", None),
    ],
)
def test_a_time_that_no_type_has_is_shown_and_read_by_what_the_hint_says(
    path: Path, text: str, why: str, value: str | None
) -> None:
    path.write_text(f"<r><row><a>{text}</a></row><row><a>2026-01-01T10:24:00</a></row></r>", encoding="utf-8")
    table = f"CREATE TABLE row (a {{}}) USING punctuated_xml OPTIONS (path '{path}', rowTag 'row');"
    with pytest.raises(InputError) as raised:
        read_by(table.format("TIMESTAMP"), "row")
    assert f"a: '{text}' is not a valid timestamp: {why}" in str(raised.value)
    hint = re.search(r"declare a STRING, and write (.*) in the query$", str(raised.value.hint))
    assert (hint is not None) is (value is not None)
    if hint is not None:
        query = f"{table.format('STRING')} SELECT {hint[1]} AS a FROM row;"
        rows = xs.from_sql(xs.open_session(engine="duckdb"), query).to_arrow().to_pylist()
        assert [str(row["a"])[:19] for row in rows] == [value, "2026-01-01 10:24:00"]


def test_a_leaf_that_two_names_mean_is_read_by_the_path_that_the_hint_names(path: Path) -> None:
    path.write_text("<r xmlns:x='urn:x'><row><a>1</a><x:a>2</x:a><b x:i='3' i='4'/></row></r>", encoding="utf-8")
    declared = "CREATE TABLE row (a STRING{}) USING punctuated_xml OPTIONS (path '{}', rowTag 'row'{});"
    with pytest.raises(InputError, match=re.escape("a occurs twice, as a and {urn:x}a")) as raised:
        read_by(declared.format("", path, ""), "row")
    hint = re.search(r"write (path.a '.*') or (path.a '.*') in its OPTIONS$", str(raised.value.hint))
    assert hint is not None
    assert [read_by(declared.format("", path, f", {way}"), "row")[0]["a"] for way in hint.groups()] == ["1", "2"]
    path.write_text("<r><row><a>1</a><a>2</a></row></r>", encoding="utf-8")
    with pytest.raises(InputError, match="a occurs twice") as raised:
        read_by(declared.format("", path, ""), "row")
    assert str(raised.value.hint).endswith("or declare a as an array of its type, as in ARRAY<STRING>")


def test_what_is_around_the_rows_and_in_no_column_is_named(path: Path) -> None:
    rows = "".join(f"<order id='{n}'><cust>A</cust></order>" for n in range(3))
    path.write_text(f"<orders day='2026-03-01'><from><city>Bonn</city></from>{rows}<end/></orders>", encoding="utf-8")
    found = proposal(str(path))
    assert found.outside == ("../@day", "../from/city", "../end")
    said = " ".join(line.removeprefix("-- ") for line in found.create_table().splitlines() if line.startswith("--"))
    assert (
        "Around the rows, in no column: ../@day, ../from/city, ../end; path.NAME '../@day' with unitTag makes a column."
        in said
    )
    declared = f"CREATE TABLE o (id INT, day DATE, city STRING) USING punctuated_xml OPTIONS (path '{path}',"
    declared += " rowTag 'order', path.id '@id', path.day '../@day', path.city '../from/city', unitTag 'orders');"
    (row, *_) = read_by(declared, "o")
    assert (str(row["day"]), row["city"]) == ("2026-03-01", "Bonn")


DOCUMENT = "<r><row><a>M\xfcller</a></row><row><a>2</a></row></r>"


@pytest.mark.parametrize("codec", ["utf-32-le", "utf-32-be", "utf-32", "utf-16", "shift_jis", "gb18030", "utf-8-sig"])
def test_an_encoding_that_shows_in_the_first_bytes_is_inferred_as_it_is_read(path: Path, codec: str) -> None:
    declared = codec in ("shift_jis", "gb18030")
    text = DOCUMENT.replace("\xfc", "u") if declared else DOCUMENT
    head = f"<?xml version='1.0' encoding='{codec}'?>" if declared else "<?xml version='1.0'?>"
    path.write_bytes((head + text).encode(codec))
    assert [row["a"] for row in tuples(proposal(str(path)))] == ["Muller" if declared else "M\xfcller", "2"]


NO_XML = {
    "two marks": ("\ufeff\ufeff" + DOCUMENT, "the document begins with two byte order marks: take one of them away"),
    "an archive": ("PK\x03\x04 and so on", "the document is a ZIP archive: unpack it"),
    "JSON": ('{"a": [1]}', "USING json OPTIONS (path"),
    "CSV": ("a;b\n1;2\n", "CREATE TABLE t (`a` STRING, `b` STRING) USING csv OPTIONS (path"),
    "Parquet": ("PAR1 and so on", "the document is Parquet"),
    "a document behind": (
        "<?xml version='1.0'?><r><row/></r>" * 2,
        "remove what stands before <?xml; if that is another document, write each into a file of its own",
    ),
    "a root behind": ("<r><row/></r>" * 2, "another document behind it belongs into a file of its own"),
}


@pytest.mark.parametrize("name", NO_XML)
def test_a_file_that_is_no_document_is_said_in_the_same_words_by_infer_and_by_a_run(path: Path, name: str) -> None:
    text, words = NO_XML[name]
    path.write_text(text, encoding="utf-8")
    for read in (
        lambda: proposal(str(path)),
        lambda: read_by(
            f"CREATE TABLE row (a STRING) USING punctuated_xml OPTIONS (path '{path}', rowTag 'row');", "row"
        ),
    ):
        with pytest.raises(InputError) as raised:
            read()
        assert words in str(raised.value)


def test_a_part_of_a_document_is_enough(path: Path) -> None:
    path.write_text(f"<r>{'<row><a>1</a></row>' * 1000}</r>", encoding="utf-8")
    found = proposal(str(path), size=500)
    assert (found.schema, found.is_whole) == ("`a` BIGINT", False)
    assert "where inference stopped" in found.create_table()


def test_reading_without_a_schema_infers_and_says_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = inferred(path, "<row><a>1</a></row>" * 3, "row")
    session = xs.open_session(engine="duckdb")
    query = xs.read(session, path, rowTag="row", punctuate="order of a", NullValue="-")  # type: ignore[call-arg]
    assert query.schema.ddl() == "`a` BIGINT"
    assert "rowTag 'row'" in (told := capsys.readouterr().err)
    assert "nullValue '-'" in told
    assert xs.read(session, path).schema == query.schema
    assert said.create_table() in capsys.readouterr().err


_TEXTS = st.sampled_from(["", "1", "-3", "2.5", "x", "true", "2024-01-01", "007", "2024-01-01T00:00:00Z"])
_ELEMENTS = st.recursive(
    st.builds(lambda name, text: f"<{name}>{text}</{name}>", st.sampled_from(["a", "b", "x:a", "C"]), _TEXTS),
    lambda inner: st.builds(
        lambda name, attribute, parts: f"<{name}{attribute}>{''.join(parts)}</{name}>",
        st.sampled_from(["a", "b", "c", "y:b", "row"]),
        st.sampled_from(["", " id='1'", " x:id='2'", " id='z' y:id='q'"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.lists(_ELEMENTS, min_size=1, max_size=5))
def test_whatever_the_document_what_is_inferred_reads_it(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str]
) -> None:
    path = tmp_path_factory.mktemp("any") / "d.xml"
    found = inferred(path, "".join(f"<row>{row}</row>" for row in rows))
    assert len(tuples(found)) == found.rows


def _inferred(home: Path, *values: str) -> str:
    document = home / "in.xml"
    document.write_text(f"<r>{''.join(f'<t><v>{value}</v><n>1</n></t>' for value in values)}</r>")
    return proposal(str(document), "t").create_table()


def test_a_day_that_could_be_a_month_is_a_string_with_both_readings(tmp_path: Path) -> None:
    made = _inferred(tmp_path, "02-02-2021", "02-01-2021", "12-01-2021")
    readings = "02-01-2021 is 2 January by dd-MM-yyyy, 1 February by MM-dd-yyyy"
    assert f"`v` STRING NOT NULL,  -- {readings}: declare a DATE, with one as dateFormat.v" in made
    assert "`v` DATE NOT NULL," in (made := _inferred(tmp_path, "02-01-2021", "13-01-2021"))
    assert "dateFormat.v 'dd-MM-yyyy'" in made
    assert "dateFormat.v 'MM-dd-yyyy'" in _inferred(tmp_path, "02-01-2021", "01-13-2021")
    assert "declare a TIMESTAMP, with one as timestampFormat.v" in _inferred(tmp_path, "02/01/2021 10:00")
    assert "by" not in _inferred(tmp_path, "02.01.2021")


def test_a_field_that_could_be_read_in_two_ways_is_named(tmp_path: Path) -> None:
    made = _inferred(tmp_path, *["<at>2026-07-01 10:00</at><d>02-01-2021</d></v><v><at>2026-07-01 10:00</at>"] * 2)
    assert "declare a DATE, with one as dateFormat.v.d" in made
    assert "times of v.at have no zone" in made


@pytest.mark.parametrize(
    ("time", "is_local"),
    [
        ("2026-10-25T02:30:00", True),
        ("20.11.2026 10:00", True),
        ("2026-10-25T02:30:00Z", False),
        ("2026-10-25T02:30:00+01:00", False),
        ("2026-10-25T02:30:00.1234567+01:00", False),
        ("2026-10-25", False),
        ("Tue, 3 Jun 2003 09:39:21 EDT", False),
    ],
)
def test_the_zone_is_asked_for_where_times_have_none(tmp_path: Path, time: str, is_local: bool) -> None:
    made = _inferred(tmp_path, time, time, time)
    assert ("-- timeZone 'Europe/Berlin'," in made) is is_local
    followed = made.replace("-- timeZone", "timeZone")
    (source,) = script.read(f"{followed}\nSELECT * FROM t;").sources
    assert (source.options.time_zone == "Europe/Berlin") is is_local


def test_numbers_with_a_decimal_comma_have_their_locale(tmp_path: Path) -> None:
    made = _inferred(tmp_path, "1.234,5", "17,25", "3")
    assert "`v` DECIMAL(18,2) NOT NULL,  -- 1.234,5 is 1234.5" in made
    assert "  locale 'de-DE'" in made
    assert [row["v"] for row in read_by(made, "t")] == [Decimal("1234.5"), Decimal("17.25"), Decimal(3)]
    assert "DECIMAL(38,20)" in _inferred(tmp_path, f"1.234,{'5' * 20}")


@pytest.mark.parametrize("values", ["1,5 1.5", "12.34,5", "1,2,3", "10.1.2", "007,5", "1.5 2", "x", "1" * 30])
def test_what_no_locale_reads_has_none(tmp_path: Path, values: str) -> None:
    assert "locale '" not in _inferred(tmp_path, *values.split())


def test_a_number_of_two_readings_is_a_string_with_both(tmp_path: Path) -> None:
    made = _inferred(tmp_path, "1,234", "5")
    remark = "1,234 is 1.234 in the locale de-DE, 1234 in the locale en-US: declare a DECIMAL, with one as locale"
    assert f"`v` STRING NOT NULL,  -- {remark}" in made
    made = _inferred(tmp_path, "1,234</v><w>1,5</w><v>", "5</v><w>1,5</w><v>").replace("<v></v>", "")
    assert "locale 'de-DE'" in made


def test_a_locale_that_is_given_reads_numbers(tmp_path: Path) -> None:
    document = tmp_path / "in.xml"
    document.write_text("<r><t><v>1,234</v></t><t><v>1,234.5</v></t></r>")
    made = proposal(str(document), "t", {"locale": "en-GB"}).create_table()
    assert "`v` DECIMAL(18,2) NOT NULL  -- 1,234 is 1234" in made
    assert "locale 'en-GB'" in made


def test_several_files_have_one_table_which_names_what_else_it_reads(tmp_path: Path) -> None:
    for name in ("s1", "s2", "s3"):
        (tmp_path / f"{name}.xml").write_text(f"<r><row><{name}>1</{name}></row><row/></r>", encoding="utf-8")
    files = [str(tmp_path / f"{name}.xml") for name in ("s1", "s3")]
    found = proposal(files)
    assert found.options["path"] == str(tmp_path / "s*.xml")
    assert [column.name for column in found.columns] == ["s1", "s3"]
    assert f"-- The path leads to 1 other document, too: {tmp_path}/s2.xml" in found.create_table()
    assert "other document" not in proposal([*files, str(tmp_path / "*2.xml")]).create_table()
    assert proposal(files[:1]).options["path"] == files[0]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "s9.xml").write_text("<r><row><s9>1</s9></row></r>", encoding="utf-8")
    deep = proposal([files[0], str(tmp_path / "deep")])
    assert deep.options["path"] == str(tmp_path / "**" / "s*.xml")
    assert len(read_by(deep.create_table(), "row")) == 7
    with pytest.raises(UsageError, match="several URLs have no path in common"):
        proposal(["s3://bucket/a.xml", "s3://bucket/b.xml"])


def test_each_of_several_documents_is_in_the_sample(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        rows = f"<row><{name}>1</{name}></row>" * 5_000
        (tmp_path / f"{name}.xml").write_text(f"<r>{rows}</r>", encoding="utf-8")
    found = proposal(str(tmp_path), size=1 << 17)
    assert ([column.name for column in found.columns], found.is_whole) == (["a", "b", "c"], False)


def test_a_document_that_is_not_well_formed_may_be_read_up_to_its_fault(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<r><row><a>1</a></row><row><a>2</a></row></x>", encoding="utf-8")
    (tmp_path / "b.xml").write_text("<r><row><a>x</a></row><row/></r>", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.xml is not well-formed") as raised:
        proposal(str(tmp_path))
    assert "--option badDocuments=skip" in (raised.value.hint or "")
    found = proposal(str(tmp_path), given={"badDocuments": "skip"})
    assert (found.rows, found.schema) == (4, "`a` STRING")
    assert len(read_by(found.create_table(), "row")) == 4


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        pytest.param("a.json", '{"id": 1, "name": "x"}\n{"id": 2, "name": "y"}\n', 2, marks=ON_SPARK),
        pytest.param("b.json", '[{"id": 1, "name": "x"},\n {"id": 2}]', 2, marks=ON_SPARK),
        ("a.csv", "id;name\n1;x\n2;y\n", 2),
        ("b.csv", "id\tname\n1\tx\n", 1),
        ("c.csv", "1,x\n2,y\n", 2),
        ("d.csv", "id,name\r\n1,x\r\n2,y\r\n", 2),
    ],
)
def test_what_is_no_xml_is_read_by_the_table_that_the_hint_writes(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, content: str, rows: int
) -> None:
    session = request.getfixturevalue("spark" if name.endswith(".json") else "in_process")
    stream = "<r><row><n>1</n></row><row><n>2</n></row></r>"
    (tmp_path / "s.xml").write_text(stream, encoding="utf-8")
    stream = f"CREATE TABLE s (n STRING) USING punctuated_xml OPTIONS (path '{tmp_path}/s.xml', rowTag 'row')"
    (tmp_path / name).write_bytes(content.encode())
    with pytest.raises(InputError) as raised:
        proposal(str(tmp_path / name))
    table = re.search(r"CREATE TABLE .*?\)(?=;)", raised.value.hint or "")
    assert table is not None, raised.value.hint
    columns = table[0].replace("(…)", "(id STRING, name STRING)")
    key = "c1" if "`c1`" in columns else "id"
    assert (
        xs.from_sql(session, f"{stream}; {columns}; SELECT t.* FROM s, t WHERE n = {key}").to_arrow().num_rows == rows
    )


@pytest.mark.parametrize("start", ["hello, world\n", "a, b and c\nd e\n", "no\nthing\n", "{no json", "1\n2\n", ""])
def test_a_text_that_is_nothing_known_is_not_named(start: str) -> None:
    assert other_format(start.encode()) is None
