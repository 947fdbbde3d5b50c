"""What goes out as XML comes back the same, tuples and punctuations, or is refused by name before it goes out."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from lxml import etree

import xmlstream as xs
from tests.samples.strategies import Tuple, domains, punctuations, values
from xmlstream.cli.concatenation import concatenate
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.sink import AT_ONCE, ComputedSlice
from xmlstream.sink.xml_documents import DocumentForm, Vocabulary
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [
    "a",
    "b",
    "rows",
    "punct",
    "_id",
    "__",
    "_a",
    "_punct",
    "_xml",
    "xml",
    "x.y",
    "x-y",
    "é",
    "名",
    "_É",
    "a·b",
    "null",
]
STRINGS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="".join(map(chr, [*range(9), 11, 12, *range(14, 32)]))
                  + "\ufffe\uffff"), max_size=6,
)  # fmt: skip


@st.composite
def results(draw: st.DrawFn) -> tuple[Schema, list[tuple[list[Tuple], list[Punctuation]]]]:
    """A schema, and slices over it of which each keeps the word of those before."""
    name = st.sampled_from(NAMES) | st.text(st.characters(categories=["L", "Nd", "Mn", "Pc"]), min_size=1, max_size=3)
    names = draw(st.lists(name, min_size=1, max_size=4, unique_by=str.lower))
    schema = Schema(tuple(Attribute(n, draw(domains())) for n in names))
    columns: list[st.SearchStrategy[Any]] = []
    for attribute in schema:
        some = values(attribute.domain)
        some = some | STRINGS if attribute.domain.type == "STRING" else some
        columns.append(some | st.none() if attribute.domain.nullable else some)
    told: list[Punctuation] = []
    slices = []
    for _ in range(draw(st.integers(1, 2))):
        rows = [row for row in draw(st.lists(st.tuples(*columns), max_size=5)) if not any(p.matches(row) for p in told)]
        told += (said := draw(st.lists(punctuations(schema), max_size=2)))
        slices.append((rows, said))
    return schema, slices


def table(rows: list[Tuple], schema: Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(c), arrow_type(a.domain)) for c, a in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def normal(row: Any, schema: Schema) -> Tuple:
    return tuple(None if v is None else a.domain.normal(v) for v, a in zip(row, schema, strict=True))


def read(options: SourceOptions) -> tuple[list[Tuple], list[Punctuation]]:
    """The tuples and punctuations of a source, without the end of a single file."""
    parser, planner = RangeParser(options), Planner(options, Documents(options, log=False))
    rows: list[Tuple] = []
    said: list[Punctuation] = []
    for range_ in planner.advance(Offset(), planner.sizes(Offset()), None)[1]:
        for parsed in parser.parse(range_):
            assert not parsed.malformed, parsed.malformed
            assert not parsed.void.total()
            rows += [normal(list(row.values())[:-1], options.schema) for row in parsed.tuples.to_pylist()]
            texts = [list(found.values())[1:] for found in parsed.punctuations.to_pylist()]
            said += [punctuation_from_texts(each, options.schema) for each in texts]
    return rows, said[:-1]


@given(results(), st.sampled_from(["row", "r", "a", "é"]))
@example(
    (
        Schema.parse("_id INT, n INT"),
        [([(1, 2)], [Punctuation.parse("<[1000,1039], *>", Schema.parse("_id INT, n INT"))])],
    ),
    "r",
)
def test_a_result_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    result: tuple[Schema, list[tuple[list[Tuple], list[Punctuation]]]],
    row_tag: str,
) -> None:
    schema, slices = result
    assume(any(rows or said for rows, said in slices))
    try:
        form = DocumentForm(schema, Vocabulary(row_tag, "rows"))
    except QueryError:
        assume(False)
    directory = tmp_path_factory.mktemp("out")
    sink = DirectorySink(directory, form)
    for slice_id, (rows, said) in enumerate(slices):
        sink.publish(sink.draft(ComputedSlice(slice_id, [(table(rows, schema), said)])))
    whole = io.BytesIO()
    concatenate(directory, whole)
    etree.fromstring(whole.getvalue())
    expat.ParserCreate().Parse(whole.getvalue(), True)
    (directory / "whole").write_bytes(whole.getvalue())
    given = {"path": str(directory / "whole"), "rowTag": row_tag, "ignoreSurroundingSpaces": "false", "follow": "false"}
    options = SourceOptions.parse(given, schema.ddl())
    assert check_grammar(options).violation is None
    rows, said = read(options)
    assert Counter(rows) == Counter(normal(row, schema) for slice_, _ in slices for row in slice_)
    assert said == [p for _, each in slices for p in each]


def test_what_is_computed_without_as_has_a_name_of_its_words(tmp_path: Path) -> None:
    schema = Schema.parse("a INT, `count(1)` INT, `max(p)` INT, `(a + 1)` INT, `count(1)_2` INT")
    sink = DirectorySink(tmp_path, DocumentForm(schema))
    sink.publish(sink.draft(ComputedSlice(0, [(table([(1, 2, 3, 4, 5)], schema), [])])))
    (written,) = tmp_path.glob("*.xml")
    assert "<a>1</a><count>2</count><max_p>3</max_p><a_1>4</a_1><count_2>5</count_2>" in written.read_text(
        encoding="utf-8"
    )
    with pytest.raises(UsageError, match=r"max\(p\) and max_p are both written at max_p"):
        DocumentForm(Schema.parse("`max(p)` INT, max_p INT"))


PATHS = ("@p", "p", "p/@q", "p/q", "b:o", "b:o/@q", "b:o/@b:s", "n/b:q/@r", "n/b:q", "n/m/l", "n/m/@k")


@given(results(), st.permutations(PATHS), st.sampled_from(["inline", "beside"]))
def test_a_result_comes_back_by_the_paths_of_its_columns(
    tmp_path_factory: pytest.TempPathFactory,
    result: tuple[Schema, list[tuple[list[Tuple], list[Punctuation]]]],
    drawn: list[str],
    punctuations: str,
) -> None:
    schema, slices = result
    paths = tuple(zip(schema.names, drawn, strict=False))
    names = Vocabulary("b:row", "b:rows", "b urn:b", paths, punctuations=punctuations)
    directory = tmp_path_factory.mktemp("out")
    try:
        beside = DocumentForm(schema, names, is_beside=True) if punctuations == "beside" else None
        sink = DirectorySink(directory, DocumentForm(schema, names), beside)
        for slice_id, (rows, said) in enumerate(slices):
            sink.publish(sink.draft(ComputedSlice(slice_id, [(table(rows, schema), said)])))
    except (QueryError, UsageError):
        assume(False)  # two columns in one place, a null beside other contents, or a name that XML cannot hold
    assume(any(directory.iterdir()))
    given_ = {"path": str(directory), "rowTag": "b:row", "namespaces": "b urn:b", "follow": "false"}
    given_ |= {f"path.{name}": path for name, path in paths} | {"ignoreSurroundingSpaces": "false", "close": "true"}
    options = SourceOptions.parse(given_, schema.ddl())
    assert check_grammar(options).violation is None
    rows, said = read(options)
    assert Counter(rows) == Counter(normal(row, schema) for slice_, _ in slices for row in slice_)
    assert said == [p for _, each in slices for p in each]


REFUSED = [
    ("`_VALUE` STRING", "'_VALUE' cannot be written"),
    ("`a b` INT", "'a b' cannot be an XML element"),
    ("`_a b` INT", "'_a b' cannot be an XML attribute"),
    ("`ª` INT", "'ª' cannot be an XML element"),
    ("`_` INT", "'_' cannot be an XML attribute"),
    ("_xmlns INT", "xmlns declares a namespace"),
    ("`p:a` INT", "'p:a' cannot be an XML element"),
    ("`2nd` INT", "'2nd' cannot be an XML element"),
    ("a MAP<INT, INT>", r"of type MAP<INT,INT> cannot be written as text.*\n.*write to_json\(a\) AS a"),
    ("a BINARY", r"of type BINARY cannot be written as text.*\n.*write base64\(a\) AS a"),
    ("a VOID", r"of type VOID cannot be written as text.*\n.*write CAST\(a AS STRING\) AS a"),
]


@pytest.mark.parametrize(("ddl", "reason"), REFUSED)
def test_what_cannot_come_back_is_refused_with_what_to_write(ddl: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason) as refused:
        DocumentForm(Schema.parse(f"n INT, {ddl}"))
    assert "AS" in (refused.value.hint or "")


@pytest.mark.parametrize(("row_tag", "root_tag"), [("row", "row"), ("ª", "rows"), ("row", "p:rows"), ("", "rows")])
def test_tags_are_two_names(row_tag: str, root_tag: str) -> None:
    with pytest.raises(UsageError, match="tag"):
        DocumentForm(Schema.parse("n INT"), Vocabulary(row_tag, root_tag))


DAYS: list[tuple[str, pa.DataType, list[int], list[int]]] = [
    ("DATE", pa.date32(), [-719162, 2932896], [-719163, 2932897]),
    ("TIMESTAMP", pa.timestamp("us", "UTC"), [-62135596800000000, 253402300799999999], [-62135596800000001]),
    ("TIMESTAMP", pa.timestamp("us", "UTC"), [], [253402300800000000]),
    ("TIMESTAMP_NTZ", pa.timestamp("us"), [-62135596800000000, 253402300799999999], [253402300800000000]),
]


@pytest.mark.parametrize(("kind", "type_", "within", "beyond"), DAYS)
@pytest.mark.parametrize("others", [0, 60], ids=["many values", "few values"])
def test_years_that_nothing_reads_are_refused(
    kind: str, type_: pa.DataType, within: list[int], beyond: list[int], others: int
) -> None:
    form = DocumentForm(Schema.parse(f"t {kind}"))
    counted = pa.int32() if kind == "DATE" else pa.int64()
    for value in within:
        written = form.items(
            [(pa.table({"t": pa.array([value, *[0] * others, None], counted).cast(type_)}), [])], AT_ONCE
        )
        leaves = etree.fromstring(b"".join([b"<r>", *written, b"</r>"])).iter("t")
        read = pa.array([Domain(kind).read(str(leaf.text)) for leaf in leaves], type_).cast(counted)
        assert Counter(read.to_pylist()) == Counter([value, *[0] * others])
    for value in beyond:
        with pytest.raises(QueryError, match="column t lies beyond the years 1 to 9999"):
            form.items([(pa.table({"t": pa.array([value, *[0] * others], counted).cast(type_)}), [])], AT_ONCE)


def test_bytes_that_are_no_text_are_refused() -> None:
    form = DocumentForm(Schema.parse("t STRING"))
    for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80"):
        texts = pa.array([b"a", bad]).cast(pa.binary()).view(pa.string())
        with pytest.raises(QueryError, match="column t is not UTF-8 text"):
            form.items([(pa.table({"t": texts}), [])], AT_ONCE)


def test_a_punctuation_that_xml_cannot_carry_is_refused() -> None:
    schema = Schema.parse("t STRING")
    with pytest.raises(QueryError, match="a punctuation of the result cannot be written"):
        DocumentForm(schema).items([(None, [Punctuation.parse("<\x01>", schema)])], AT_ONCE)


ASKED = """
CREATE TABLE r (_id INT, `_kind` STRING, a STRING, n INT)
USING punctuated_xml OPTIONS (path '{}', rowTag 'r', schemes '_id; n', ignoreSurroundingSpaces 'false');
SELECT _id, _kind, a, n, CAST(n AS DECIMAL(9,2)) / 3 AS third, n * 0.1D AS tenth, CAST(_id AS FLOAT) AS f,
  n > 3 AS more,
  timestamp_micros(n * 86400000001) AS t, CAST(timestamp_micros(n * 86400000001) AS TIMESTAMP_NTZ) AS z,
  date_add(DATE '9999-12-20', n) AS day, CASE WHEN n = 5 THEN double('NaN') ELSE double('-Infinity') END AS nan
FROM r;
"""


@pytest.mark.spark
def test_the_result_of_a_query_is_the_source_of_the_next(spark: SparkSession, tmp_path: Path) -> None:
    strings = ["", " ", " x ", "*", "null", "[1,2)", "a&amp;&lt;b", "&#13;&#10;", "(,5]", "{}", "&quot;"]
    rows = "".join(f'<r id="{n}" kind="{text}"><a>{text}</a><n>{n}</n></r>' for n, text in enumerate(strings))
    said = "<p:r id='[0,4]'/><p:r><n>[0,99]</n></p:r>"
    document = f"<all xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>{rows}<r/>{said}</all>"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "r.xml").write_text(document, encoding="utf-8")
    first = xs.from_sql(spark, ASKED.format(tmp_path / "in"))
    first.run(tmp_path / "once", tmp_path / "state", keep_open=True)
    again = xs.read(spark, tmp_path / "once", first.schema.ddl(), rowTag="row", ignoreSurroundingSpaces=False)
    again.run(tmp_path / "twice", tmp_path / "state-2", keep_open=True)
    once, twice = io.BytesIO(), io.BytesIO()
    assert concatenate(tmp_path / "once", once) == concatenate(tmp_path / "twice", twice) == 1
    assert once.getvalue() == twice.getvalue()
    assert b'<punct:row id="[0,4]" kind="*">' in once.getvalue()
    assert once.getvalue().count(b"<row ") == len(strings)
