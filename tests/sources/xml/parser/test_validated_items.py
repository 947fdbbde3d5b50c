"""Items that an XML Schema checks: its words are those of the dead letter, and nothing is fetched for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from xmlstream.punct_ns.errors import MalformedInput, UsageError
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.malformed import set_aside
from xmlstream.sources.xml.parser.range_parser import read_through

HEAD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:b="urn:b" xmlns:t="urn:t" {}>'
QUALIFIED = 'targetNamespace="urn:b" elementFormDefault="qualified"'
TYPES = HEAD.format('targetNamespace="urn:t"') + (
    '<xs:simpleType name="Positive"><xs:restriction base="xs:int"><xs:minInclusive value="1"/></xs:restriction>'
    "</xs:simpleType></xs:schema>"
)
LOCAL = (
    '<xs:import namespace="urn:t" schemaLocation="{}"/><xs:element name="Bills"><xs:complexType><xs:sequence>'
    '<xs:element name="Bill" maxOccurs="unbounded"><xs:complexType><xs:sequence>'
    '<xs:element name="No" type="t:Positive"/><xs:element name="For" type="xs:QName" minOccurs="0"/>'
    "</xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>"
)
ROWS = "\n".join(
    f"<b:Bill><b:No>{no}</b:No>{more}</b:Bill>" for no, more in ((1, ""), (0, ""), (2, "<b:For>b:x</b:For>"))
)
DOCUMENT = f'<b:Bills xmlns:b="urn:b" xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">\n{ROWS}\n' + (
    "<punct:Bill><b:No>[,1]</b:No></punct:Bill></b:Bills>"
)


def source(home: Path, schema: str, document: str = DOCUMENT, **options: str) -> SourceOptions:
    (home / "bills.xsd").write_text(schema)
    (home / "in.xml").write_text(document)
    given = {"path": str(home / "in.xml"), "rowTag": "Bill", "validate": str(home / "bills.xsd")}
    return SourceOptions.parse(given | options, "No INT", "user")


def numbers(options: SourceOptions) -> tuple[list[int], list[str]]:
    """The numbers of the valid tuples, and the reasons for the others, each with its line."""
    parsed = list(read_through(options))
    bad = set_aside([one for piece in parsed for one in piece.malformed])
    rows = [row["No"] for piece in parsed for row in piece.tuples.to_pylist()]
    return rows, [f"{one.line}: {one.kind}: {one.reason}" for one in bad]


IMPORTED = HEAD.format(QUALIFIED) + LOCAL.format("types/t.xsd")
WORDS = "Element '{urn:b}No': [facet 'minInclusive'] The value '0' is less than the minimum value allowed ('1')."


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "xsd" / "types").mkdir(parents=True)
    (tmp_path / "xsd" / "types" / "t.xsd").write_text(TYPES)
    return tmp_path / "xsd"


def test_an_invalid_item_is_malformed_in_the_words_of_the_schema(home: Path) -> None:
    assert numbers(source(home, IMPORTED, mode="PERMISSIVE")) == ([1, 2], [f"3: tuple: {WORDS}"])
    with pytest.raises(MalformedInput, match="less than the minimum value") as failed:
        numbers(source(home, IMPORTED))
    assert failed.value.line == 3


def test_sparks_name_of_the_option_is_another(home: Path) -> None:
    given = dict(source(home, IMPORTED).given)
    sparks = {"rowValidationXSDPath" if name == "validate" else name: text for name, text in given.items()}
    assert SourceOptions.parse(sparks).given == tuple(sorted(given.items()))


def test_without_the_option_all_are_read(home: Path) -> None:
    options = source(home, IMPORTED).replace(validate=None)
    assert numbers(options) == ([1, 0, 2], [])


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (IMPORTED.replace("qualified", "unqualified"), DOCUMENT.replace("b:No", "No").replace("b:For", "For")),
        (
            HEAD.format("") + LOCAL.format("types/t.xsd"),
            DOCUMENT.replace("b:Bill", "Bill").replace("b:No", "No").replace("b:For", "For"),
        ),
    ],
    ids=["locals without a namespace", "no namespace at all"],
)
def test_a_local_declaration_checks_its_elements_in_whatever_namespace(home: Path, schema: str, document: str) -> None:
    if "unqualified" in schema:
        document = document.replace("<b:Bill>", "<Bill>").replace("</b:Bill>", "</Bill>")
    found, bad = numbers(source(home, schema, document, mode="PERMISSIVE"))
    assert (found, len(bad)) == ([1, 2], 1)
    assert "minInclusive" in bad[0]


def test_a_row_that_an_included_document_declares_is_checked(home: Path) -> None:
    (home / "all.xsd").write_text(IMPORTED.replace("urn:b", "urn:c").replace('targetNamespace="urn:c"', ""))
    including = HEAD.format(QUALIFIED) + '<xs:include schemaLocation="all.xsd"/></xs:schema>'
    assert numbers(source(home, including, mode="PERMISSIVE")) == ([1, 2], [f"3: tuple: {WORDS}"])


def test_rows_of_several_names_and_of_all_children_are_checked(home: Path) -> None:
    schema = IMPORTED.replace("</xs:schema>", '<xs:element name="Note" type="xs:date"/></xs:schema>')
    document = DOCUMENT.replace("</b:Bills>", "<b:Note>soon</b:Note><b:Other/></b:Bills>")
    for tag, extra in (("Bill|Note", 1), ("Bills/*", 2)):
        found, bad = numbers(source(home, schema, document, rowTag=tag, mode="PERMISSIVE"))
        assert (found, len(bad)) == ([1, 2], 1 + extra), tag
        assert "'soon' is not a valid value of the atomic type 'xs:date'" in bad[1]
    assert bad[2].endswith("declares no element {urn:b}Other")


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:9/none.xsd", "../t.xsd", "/etc/t.xsd", "file:///etc/passwd", "ftp://127.0.0.1:9/x"]
)
def test_what_lies_elsewhere_is_neither_fetched_nor_read(home: Path, location: str) -> None:
    (home.parent / "t.xsd").write_text(TYPES)
    with pytest.raises(UsageError, match="which is not beside"):
        source(home, HEAD.format(QUALIFIED) + LOCAL.format(location))


def test_a_link_that_leads_elsewhere_is_not_followed(home: Path) -> None:
    (home.parent / "t.xsd").write_text(TYPES)
    (home / "t.xsd").symlink_to(home.parent / "t.xsd")
    with pytest.raises(UsageError, match="which is not beside"):
        source(home, HEAD.format(QUALIFIED) + LOCAL.format("t.xsd"))


def test_an_address_means_the_file_of_its_name_beside(home: Path) -> None:
    (home / "t.xsd").write_text(TYPES)
    address = HEAD.format(QUALIFIED) + LOCAL.format("http://127.0.0.1:9/schemas/t.xsd")
    assert numbers(source(home, address, mode="PERMISSIVE"))[0] == [1, 2]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("<x/>", "is not an XML Schema: its root is x"),
        ("<x", "cannot be read"),
        (IMPORTED.replace("t:Positive", "t:Missing"), "is not a valid schema"),
        (IMPORTED.replace('name="Bill"', 'name="Slip"'), "declares no element Bill"),
        (
            IMPORTED.replace("</xs:schema>", '<xs:group name="g"><xs:sequence><xs:element name="Bill" type="xs:int"/>')
            + "</xs:sequence></xs:group></xs:schema>",
            r"declares \{urn:b\}Bill in 2 ways",
        ),
    ],
)
def test_a_schema_that_cannot_check_is_refused_before_anything_is_read(home: Path, schema: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        source(home, schema)


def test_entities_of_a_schema_are_not_expanded(home: Path) -> None:
    stolen = f'<!DOCTYPE x [<!ENTITY t SYSTEM "{home / "types" / "t.xsd"}">]>' + IMPORTED.replace("t:Positive", "&t;")
    with pytest.raises(UsageError):
        source(home, stolen)
