"""Declarations from XML Schemas: what a schema says is in the columns, the options, or in words; never left out."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from typer.testing import CliRunner

import xmlstream as xs
import xmlstream.testing as xt
from tests.harness.nights import AT_NIGHT
from tests.harness.pages import ROOT
from xmlstream.cli.commands import app
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.xml.inference.proposal import Proposal, declared_proposal, proposal
from xmlstream.sources.xml.options.schema_documents import compiled, schema_documents
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import read_through

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

INVOICES = str(ROOT / "tests" / "samples" / "schemas" / "invoices.xsd")
HEAD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
STATEMENT = """CREATE TABLE Invoice (
  `_customer` INT NOT NULL,
  `_draft` BOOLEAN,
  `Number` BIGINT NOT NULL,
  `Issued` DATE NOT NULL,
  `currency` STRING NOT NULL,  -- one of EUR, USD
  `Total` DECIMAL(18,2) NOT NULL,
  `Discount` INT,
  `Line` ARRAY<STRUCT<`_quantity`: INT, `Item`: STRING, `Price`: DECIMAL(18,2)>>,  -- quantity: default 1;\
 quantity: 0..65535
  `Note` STRING,
  `Card` STRING,
  `iban` STRING,
  `Paid` TIMESTAMP,
  `Name` STRING,
  `Part` ARRAY<STRING>
) USING punctuated_xml OPTIONS ("""
REMARKS = """-- Declared by {}: its element Invoice.
-- Note has text among its elements: a path 'xml(Note)' keeps these
-- Means may be one of its substitution group: Card, Transfer
-- Invoice may have any other elements (xs:any)
-- Part contains itself: its column is the text in it; path 'xml(Part)' is all of it
-- invoiceCustomer (xs:keyref): _customer is the key of Customer at @no, which is there exactly once
-- Other elements that repeat, for --row-tag: Customer, Line, Part
"""
DOCUMENT = """<Invoices xmlns="urn:invoices" xmlns:t="urn:types">
<Customer no="7"><t:Name>Ann</t:Name><t:Country>NZ</t:Country></Customer>
<Invoice customer="7"><Number>1</Number><Issued>2026-01-02</Issued><Total currency="EUR">12.50</Total>
  <Line quantity="2"><Item>pen</Item><Price>6.25</Price></Line><Line><Item>ink</Item><Price>0.00</Price></Line>
  <Note>by <em>hand</em></Note><Transfer iban="NZ1"/><Part><Name>a</Name><Part><Name>b</Name></Part></Part></Invoice>
<Invoice customer="7" draft="true"><Number>2</Number><Issued>2026-01-03</Issued><Total currency="USD">1</Total>
  <Discount>100</Discount><Line><Item>pen</Item><Price>1</Price></Line><Paid>2026-01-03T10:00:00Z</Paid></Invoice>
</Invoices>
"""


def test_the_statement_has_types_what_is_required_bounds_keys_and_words_for_the_rest() -> None:
    found = declared_proposal(INVOICES, "in.xml").create_table()
    assert found.startswith(REMARKS.format(INVOICES) + STATEMENT)
    assert found.endswith("  uniqueIds 'Number',\n  domains 'Number 1.., Discount 0..100'\n);")
    assert (
        f"  -- checks each item by the schema, also what no column says; reads more slowly:\n"
        f"  -- validate '{INVOICES}'," in found
    )


@pytest.mark.parametrize("is_checked", [False, True])
def test_the_statement_reads_a_valid_document(in_process: InProcessSession, tmp_path: Path, is_checked: bool) -> None:
    compiled(schema_documents(INVOICES)).assertValid(etree.fromstring(DOCUMENT))
    (tmp_path / "in.xml").write_text(DOCUMENT)
    statement = declared_proposal(INVOICES, str(tmp_path / "in.xml")).create_table()
    statement = statement.replace("-- validate", "validate") if is_checked else statement
    one, two = xs.from_sql(in_process, f"{statement} SELECT * FROM Invoice").to_arrow().to_pylist()
    assert (one["_customer"], one["Number"], str(one["Issued"]), str(one["Total"]), one["currency"]) == (
        (7, 1, "2026-01-02", "12.50", "EUR")
    )
    lines = [(each["_quantity"], each["Item"]) for each in one["Line"]]
    assert (lines, one["Note"], one["iban"]) == ([(2, "pen"), (None, "ink")], "by hand", "NZ1")
    assert (two["_draft"], two["Discount"], two["Card"], str(two["Paid"])[:19]) == (
        True,
        100,
        None,
        "2026-01-03 10:00:00",
    )


def test_other_rows_are_chosen_by_name() -> None:
    found = declared_proposal(INVOICES, row_tag="Customer")
    assert found.schema == "`_no` INT NOT NULL, `Name` STRING NOT NULL, `Country` STRING"
    assert (found.options["uniqueIds"], found.options["path"]) == ("_no", "invoices.xml")
    line = declared_proposal(INVOICES, row_tag="Line")
    assert line.options["path.parent_customer"] == "../@customer"
    with pytest.raises(InputError, match=r"no element of .*invoices\.xsd is a Slip"):
        declared_proposal(INVOICES, row_tag="Slip")


def test_what_is_unique_in_one_document_is_not_in_a_directory(tmp_path: Path) -> None:
    found = declared_proposal(INVOICES, str(tmp_path))
    assert "uniqueIds" not in found.options
    assert "-- in one document, Number has each value once (xs:key, xs:unique): see uniqueIds" in found.create_table()


def declared(tmp_path: Path, row: str, globals_: str = "", identities: str = "") -> Proposal:
    """The proposal for rows `r` of that type, within a root `rs`."""
    rows = of_parts(f'<xs:element name="r" maxOccurs="9">{row}</xs:element>')
    schema = f'{HEAD}<xs:element name="rs">{rows}{identities}</xs:element>{globals_}</xs:schema>'
    (tmp_path / "s.xsd").write_text(schema)
    return declared_proposal(str(tmp_path / "s.xsd"), "in.xml", "r")


def of_parts(*parts: str) -> str:
    return f"<xs:complexType><xs:sequence>{''.join(parts)}</xs:sequence></xs:complexType>"


def part(name: str, type_: str, more: str = "") -> str:
    return f'<xs:element name="{name}" type="{type_}" {more}/>'


def restricted(base: str, *facets: str) -> str:
    inside = "".join(f'<xs:{name} value="{value}"/>' for name, value in (facet.split("=", 1) for facet in facets))
    type_ = simple(f'<xs:restriction base="xs:{base}">{inside}</xs:restriction>')
    return f'<xs:element name="a">{type_}</xs:element>'


def simple(inside: str) -> str:
    return f"<xs:simpleType>{inside}</xs:simpleType>"


@pytest.mark.parametrize(
    ("element", "column", "domain", "remark"),
    [
        (part("a", "xs:unsignedInt"), "BIGINT", "0..4294967295", ""),
        (part("a", "xs:unsignedLong"), "DECIMAL(20,0)", "0..18446744073709551615", ""),
        (part("a", "xs:negativeInteger"), "BIGINT", "..-1", ""),
        (part("a", "xs:decimal"), "DECIMAL(38,18)", "", ""),
        (part("a", "xs:NMTOKENS"), "STRING", "", "a list in one text"),
        (restricted("decimal", "fractionDigits=3"), "DECIMAL(38,3)", "", ""),
        (restricted("decimal", "totalDigits=5"), "DECIMAL(5,5)", "", ""),
        (restricted("integer", "totalDigits=25"), "DECIMAL(25,0)", "", ""),
        (restricted("integer", "totalDigits=5"), "BIGINT", "", "totalDigits 5"),
        (restricted("int", "minExclusive=0", "maxExclusive=10"), "INT", "1..9", ""),
        (restricted("decimal", "fractionDigits=2", "minExclusive=0"), "DECIMAL(38,2)", "0.01..", ""),
        (restricted("double", "minInclusive=0.5", "maxExclusive=1"), "DOUBLE", "0.5..", "maxExclusive 1"),
        (restricted("date", "minInclusive=2020-01-01Z"), "DATE", "", "2020-01-01Z.."),
        (restricted("decimal", "fractionDigits=2", "minInclusive=0.001"), "DECIMAL(38,2)", "", "0.001.."),
        (restricted("duration", "minInclusive=PT1H"), "STRING", "", "minInclusive PT1H"),
        (restricted("date", "minInclusive=2020-01-01"), "DATE", "2020-01-01..", ""),
        (
            restricted("dateTime", "maxExclusive=2020-01-01T00:00:00Z"),
            "TIMESTAMP",
            "",
            "maxExclusive 2020-01-01T00:00:00Z",
        ),
        (restricted("int", "enumeration=3", "enumeration=1", "enumeration=2"), "INT", "1..3", ""),
        (restricted("int", "enumeration=9", "enumeration=1"), "INT", "1..9", "one of 9, 1"),
        (restricted("string", "maxLength=9", "pattern=[a-z]+"), "STRING", "", "maxLength 9; pattern [a-z]+"),
        (
            '<xs:element name="a"><xs:simpleType><xs:union memberTypes="xs:int xs:date"/></xs:simpleType></xs:element>',
            "STRING",
            "",
            "one of several types",
        ),
        (
            '<xs:element name="a"><xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType></xs:element>',
            "STRING",
            "",
            "a list in one text",
        ),
    ],
)
def test_a_simple_type_is_a_type_a_domain_and_words_for_its_other_facets(
    tmp_path: Path, element: str, column: str, domain: str, remark: str
) -> None:
    found = declared(tmp_path, of_parts(element))
    assert (found.schema, found.columns[0].remark) == (f"`a` {column} NOT NULL", remark)
    assert found.options.get("domains", "") == (f"a {domain}" if domain else "")


MIXED = '<xs:element name="a"><xs:complexType mixed="true"><xs:sequence/></xs:complexType></xs:element>'
A_NUMBER = '<xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence>'
BASE = f'<xs:complexType name="B" abstract="true">{A_NUMBER}</xs:complexType>'
EXTENDED = '<xs:simpleContent><xs:extension base="xs:int"/></xs:simpleContent>'
NIL = f'<xs:element name="x" nillable="true"><xs:complexType>{A_NUMBER}</xs:complexType></xs:element>'
DERIVED = (
    '<xs:complexType name="D"><xs:complexContent><xs:extension base="B"><xs:attribute name="d" type="xs:int"/>'
    "</xs:extension></xs:complexContent></xs:complexType>"
)


@pytest.mark.parametrize(
    ("row", "globals_", "schema", "remark"),
    [
        (of_parts("<xs:any/>", part("a", "xs:int")), "", "`a` INT NOT NULL", "r may have any other elements (xs:any)"),
        (of_parts('<xs:element name="a"/>'), "", "`a` STRING NOT NULL", "a may have any contents (xs:anyType)"),
        (of_parts(MIXED), "", "`a` STRING NOT NULL", "a has text among its elements: a path 'xml(a)' keeps these"),
        (
            of_parts(part("x", "B")),
            BASE + DERIVED,
            "`a` INT NOT NULL",
            "x may be of a derived type (D), whose further parts",
        ),
        (of_parts(part("x", "D")), BASE + DERIVED, "`d` INT, `a` INT NOT NULL", ""),
        (
            of_parts(part("a", "xs:int"), part("b", "xs:int", 'minOccurs="0"'), part("a", "xs:int")),
            "",
            "`a` ARRAY<INT>, `b` INT",
            "a is declared twice in r: an array",
        ),
        (
            of_parts('<xs:element name="e"><xs:complexType/></xs:element>', part("a", "xs:int", 'nillable="true"')),
            "",
            "`a` INT",
            "e has no contents, so that it has no column",
        ),
        (
            of_parts(NIL),
            "",
            "`a` INT",
            "",
        ),
        (
            of_parts(part("x", "G")),
            '<xs:complexType name="G"><xs:complexContent mixed="true"><xs:extension base="B"/></xs:complexContent>'
            f"</xs:complexType>{BASE.replace('abstract', 'mixed')}",
            "`x` STRING NOT NULL",
            "x has text among its elements",
        ),
        (
            of_parts('<xs:choice maxOccurs="2">', part("a", "xs:int"), part("b", "xs:date"), "</xs:choice>"),
            "",
            "`a` ARRAY<INT>, `b` ARRAY<DATE>",
            "",
        ),
        (
            '<xs:complexType><xs:simpleContent><xs:extension base="M"><xs:attribute name="c" use="required"/>'
            "</xs:extension></xs:simpleContent></xs:complexType>",
            f'<xs:complexType name="M">{EXTENDED}</xs:complexType>',
            "`_c` STRING NOT NULL, `_VALUE` INT NOT NULL",
            "",
        ),
        (
            "<xs:complexType><xs:sequence/><xs:anyAttribute/></xs:complexType>",
            "",
            "`_VALUE` STRING",
            "r may have any XML attributes (xs:anyAttribute)",
        ),
    ],
)
def test_what_columns_cannot_express_is_said_in_words(
    tmp_path: Path, row: str, globals_: str, schema: str, remark: str
) -> None:
    found = declared(tmp_path, row, globals_)
    assert found.schema == schema
    assert remark in "\n".join(found.remarks[1:])


def test_many_leaves_become_structures_that_say_what_their_facets_are(tmp_path: Path) -> None:
    numbers = "".join(part(f"n{n}", "xs:unsignedByte") for n in range(50))
    found = declared(tmp_path, of_parts(f'<xs:element name="s" maxOccurs="3">{of_parts(numbers)}</xs:element>'))
    (column,) = found.columns
    assert column.ddl.startswith("`s` ARRAY<STRUCT<`n0`: SMALLINT, ")
    assert "n49: 0..255" in column.remark


def identity(kind: str, *fields: str, selector: str = "r", more: str = "") -> str:
    inside = "".join(f'<xs:field xpath="{path}"/>' for path in fields)
    return f'<xs:{kind} name="{kind}1" {more}><xs:selector xpath="{selector}"/>{inside}</xs:{kind}>'


def test_keys_of_several_columns_and_of_other_scopes_are_words(tmp_path: Path) -> None:
    row = of_parts(part("a", "xs:int"), part("b", "xs:int"))
    assert declared(tmp_path, row, identities=identity("key", "a")).options["uniqueIds"] == "a"
    found = declared(tmp_path, row, identities=identity("key", "a", "b"))
    assert "uniqueIds" not in found.options
    assert found.remarks[1] == "key1 (xs:key): a, b is unique; uniqueIds takes single columns"
    rows = of_parts(f'<xs:element name="r" maxOccurs="2">{row}</xs:element>')
    inner = f'<xs:element name="g" maxOccurs="2">{rows}{identity("unique", "a")}</xs:element>'
    (tmp_path / "s.xsd").write_text(f'{HEAD}<xs:element name="rs">{of_parts(inner)}</xs:element></xs:schema>')
    nested = declared_proposal(str(tmp_path / "s.xsd"), "in.xml", "r")
    assert "uniqueIds" not in nested.options
    assert nested.remarks[1].startswith("unique1 (xs:unique): a is unique, but only within one g")


def test_a_tuple_with_a_keyref_is_kept_until_its_one_partner_came(in_process: InProcessSession) -> None:
    both = "".join(declared_proposal(INVOICES, row_tag=tag).create_table() for tag in ("Customer", "Invoice"))
    query = f"{both} SELECT i.Number, c.Name FROM Invoice i JOIN Customer c ON i._customer = c._no"
    case = xt.case(query, session=in_process, allow_unsafe=True)

    def invoice(customer: int, number: int) -> dict[str, Any]:
        values = {"Issued": date(2026, 1, 2), "Total": Decimal(1), "currency": "EUR"}
        return {"_customer": customer, "Number": number, **values}

    waiting = case.slice(Invoice=[invoice(7, 1), invoice(8, 2), invoice(7, 3)])
    assert (waiting.tuples, waiting.kept) == ([], 3)
    # The customer's own punctuation, from uniqueIds, closes 7 for the invoices; the customer waits for more of them.
    matched = case.slice(Customer=[{"_no": 7, "Name": "Ann"}])
    assert (sorted(matched.tuples), matched.kept) == ([(1, "Ann"), (3, "Ann")], 2)
    later = case.slice(Invoice=[invoice(7, 4)])
    assert (later.tuples, later.kept) == ([(4, "Ann")], 2)


def test_a_schema_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no schema"):
        declared_proposal(str(tmp_path / "s.xsd"))


def test_a_schema_with_a_flaw_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    row = of_parts(part("a", "nothing"), '<xs:element ref="none"/>', part("b", "xs:int"))
    found = declared(tmp_path, row)
    assert found.schema == "`a` STRING NOT NULL, `b` INT NOT NULL"
    assert found.columns[0].remark == "its type nothing is not declared"
    assert found.remarks[1] == "none is not declared in the schema"
    assert "s.xsd is not a valid schema: " in found.remarks[2]


def test_no_text_of_a_schema_leaves_its_comment(tmp_path: Path) -> None:
    found = declared(
        tmp_path, of_parts(part("a", "xs:string", 'default="x&#10;DROP"'), restricted("int", "pattern=&#10;b"))
    )
    assert [line for line in found.create_table().splitlines() if line.strip().startswith(("DROP", "b"))] == []


def test_a_key_of_more_rows_than_are_kept_is_still_guessed(tmp_path: Path) -> None:
    rows = "".join(f"<r><id>a{n}</id></r>" for n in range(20_001))
    (tmp_path / "in.xml").write_text(f"<rs>{rows}</rs>")
    assert [guess.option for guess in proposal(str(tmp_path / "in.xml")).guesses] == ["uniqueIds"]


VALUES = {"xs:int": "-3", "xs:unsignedByte": "7", "xs:decimal": "1.25", "xs:date": "2026-01-02", "xs:string": "x"}
VALUES |= {"xs:boolean": "true", "xs:dateTime": "2026-01-02T03:04:05Z", "xs:double": "1.5E3", "xs:token": "t"}
LEAVES = st.tuples(st.sampled_from(sorted(VALUES)), st.booleans(), st.booleans())
"""A leaf: its type, whether it is optional, and whether it is repeated (an element) or absent (an XML attribute)."""


def drawn(depth: int) -> st.SearchStrategy[Any]:
    """The contents of an element: XML attributes, and leaves or elements with contents, all of them or one."""
    parts = LEAVES | st.tuples(drawn(depth - 1), st.booleans(), st.booleans()) if depth else LEAVES
    kinds = st.sampled_from(["sequence", "choice"])
    return st.tuples(st.lists(LEAVES, max_size=2), st.lists(parts, min_size=1, max_size=3), kinds)


def schema_and_element(contents: Any, names: Any) -> tuple[str, str, str]:
    """A complex type, and the XML attributes and the contents of an element of that type."""
    attributes, parts, kind = contents
    types, written, given, inside = "", "", "", ""
    for type_, is_optional, is_absent in attributes:
        name = f"a{next(names)}"
        types += f'<xs:attribute name="{name}" type="{type_}" use="{"optional" if is_optional else "required"}"/>'
        given += "" if is_optional and is_absent else f' {name}="{VALUES[type_]}"'
    for number, (type_, is_optional, is_repeated) in enumerate(parts):
        name = f"e{next(names)}"
        occurs = f'minOccurs="{1 - is_optional}" maxOccurs="{1 + is_repeated}"'
        if isinstance(type_, str):
            written += f'<xs:element name="{name}" type="{type_}" {occurs}/>'
            text = f"<{name}>{VALUES[type_]}</{name}>"
        else:
            inner, its, contents_ = schema_and_element(type_, names)
            written += f'<xs:element name="{name}" {occurs}>{inner}</xs:element>'
            text = f"<{name}{its}>{contents_}</{name}>"
        if kind == "sequence" or number == 0:
            inside += text * (1 + is_repeated)
    return f"<xs:complexType><xs:{kind}>{written}</xs:{kind}>{types}</xs:complexType>", given, inside


@given(drawn(3))
@settings(max_examples=400 if AT_NIGHT else 25, deadline=None)
def test_drawn_schemas_declare_tables_that_read_every_leaf_of_their_documents(
    tmp_path_factory: pytest.TempPathFactory, contents: Any
) -> None:
    home = tmp_path_factory.mktemp("drawn")
    row, given_, inside = schema_and_element(contents, count())
    declared(home, row)
    document = f"<rs><r{given_}>{inside}</r><r{given_}>{inside}</r></rs>"
    compiled(schema_documents(str(home / "s.xsd"))).assertValid(etree.fromstring(document))
    (home / "in.xml").write_text(document)
    found = declared_proposal(str(home / "s.xsd"), str(home / "in.xml"), "r")
    options = SourceOptions.parse({**found.options, "validate": str(home / "s.xsd")}, found.schema, "user")
    one, two = (row for parsed in read_through(options) for row in parsed.tuples.drop_columns(POSITION).to_pylist())
    assert one == two
    texts = [
        text for each in etree.fromstring(document)[0].iter() for text in (*each.attrib.values(), each.text) if text
    ]
    assert sum(map(_values, one.values())) == len(texts)


def _values(value: Any) -> int:
    """The number of values in one of a column."""
    if isinstance(value, list | dict):
        return sum(map(_values, value if isinstance(value, list) else value.values()))
    return value is not None


def test_the_command_takes_a_schema_in_place_of_documents(tmp_path: Path) -> None:
    runner = CliRunner()
    found = runner.invoke(
        app, ["infer", "--xsd", INVOICES, "--row-tag", "Customer", "in/*.xml", "--option", "mode=PERMISSIVE"]
    )
    assert found.exit_code == 0
    assert "  path 'in/*.xml',\n  rowTag 'Customer',\n  mode 'PERMISSIVE'" in found.stdout
    assert str(runner.invoke(app, ["infer"]).exception) == str(
        UsageError("there is nothing to infer from", hint="name a FILE of XML, or a schema by --xsd")
    )
