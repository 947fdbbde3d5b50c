"""Static tables of plain XML, read in process: what is read is what Spark's XML source reads; else it is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.sources.xml.parser.plain_tables import plain_rows
from xmlstream.sql import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession, Session

DDL = "_id INT, name STRING, price DOUBLE, ok BOOLEAN, day DATE, n BIGINT"
TYPES = {"name": "STRING", "price": "DOUBLE", "ok": "BOOLEAN", "day": "DATE", "n": "BIGINT"}
TEXTS = {
    "name": [
        "a",
        "",
        "a b",
        "&lt;x&gt;",
        "é",
        " a",
        "a ",
        " ",
        "\n",
        "<![CDATA[ x ]]>",
        "<b>x</b>",
        "null",
        "a<!-- c -->b",
    ],
    "price": ["1.5", "-2", "0", "", "1e3", " 1.5", "NaN", "1,5", "+1.5", "007.50"],
    "ok": ["true", "false", "TRUE", "1", "", "yes"],
    "day": ["2026-01-31", "2026-1-31", "2026-02-30", "", "20260131", "2026-01-31Z"],
    "n": ["1", "-7", "007", "+7", "", "1.0", "9223372036854775807", "99999999999999999999", " 7 "],
}


def document(drawn: random.Random, strange: float) -> str:
    """Rows, of which some have what is not plain."""
    rows = []
    for number in range(drawn.randint(0, 4)):
        leaves = []
        for name, texts in TEXTS.items():
            text = drawn.choice(texts[:2] if drawn.random() > strange else texts)
            if drawn.random() < 0.8:
                tag = name if drawn.random() > strange / 4 else name.upper()
                leaves += [f"<{tag}>{text}</{tag}>"] * (2 if drawn.random() < strange / 8 else 1)
        drawn.shuffle(leaves)
        leaves += ["<other><x>1</x></other>"] * (drawn.random() < 0.2)
        leaves += ["text"] * (drawn.random() < strange / 8) + ["<!-- c -->"] * (drawn.random() < strange / 8)
        rows.append(
            f"<row id='{number}'>{''.join(leaves)}</row>" if drawn.random() < 0.8 else f"<row>{''.join(leaves)}</row>"
        )
    space = " xmlns:p='urn:p'" * (drawn.random() < strange / 8)
    return f"<rows{space}>\n" + "\n".join(rows) + "\n</rows>"


@pytest.mark.spark
@pytest.mark.parametrize("strange", [0.0, 0.15, 0.6])
def test_what_is_read_is_what_spark_reads(spark: SparkSession, tmp_path: Path, strange: float) -> None:
    read = 0
    for seed in range(SEED, SEED + (150 if AT_NIGHT else 12)):
        path = tmp_path / f"{seed}.xml"
        path.write_text(document(random.Random(f"{seed} {strange}"), strange))
        found = plain_rows([path], Schema.parse(DDL), {"rowtag": "row"})
        if isinstance(found, str):
            continue
        read += 1
        rows = spark.read.schema(DDL).options(rowTag="row", mode="FAILFAST").xml(str(path)).collect()
        assert [tuple(row.values()) for row in found.to_pylist()] == [tuple(row) for row in rows], path.read_text()
    assert read or strange > 0.5


PLACES = """
CREATE TABLE place (_id INT, town STRING) USING xml OPTIONS (path '{home}/place.xml', rowTag 'place');
CREATE TABLE report (place INT, t INT) USING punctuated_xml OPTIONS (path '{home}/in.xml', rowTag 'report');
SELECT town, t FROM report JOIN place ON place = _id;
"""


def written(home: Path, places: str) -> str:
    (home / "place.xml").write_text(f"<places>{places}</places>")
    (home / "in.xml").write_text("<all><report><place>1</place><t>7</t></report></all>")
    return PLACES.format(home=home)


def test_a_static_table_of_xml_is_looked_up_on_both_engines(session: Session, tmp_path: Path) -> None:
    text = written(tmp_path, "<place id='1'><town>Bonn</town></place><place id='2'/>")
    assert xs.from_sql(session, text).to_arrow().to_pylist() == [{"town": "Bonn", "t": 7}]


@pytest.mark.parametrize(
    ("places", "what"),
    [
        ("<place id='1'><town>Bonn<b/></town></place>", "town twice in a row, or with elements or attributes"),
        ("<place id='1'><town>a</town><town>b</town></place>", "town twice in a row"),
        ("<place id='one'/>", "XML with the INT 'one'"),
        ("<p:place xmlns:p='urn:p'/><place id='1' xmlns:p='urn:p'/>", "XML with namespaces"),
        ("<place xmlns='urn:p' id='1'/>", "XML with namespaces"),
        ("<place id='1' xml:lang='de'/>", "XML with namespaces"),
        ("<place id='1'>x</place>", "XML with text beside elements"),
        ("<place/>", "XML with an empty row"),
    ],
)
def test_what_is_not_plain_is_left_to_spark(
    in_process: InProcessSession, tmp_path: Path, places: str, what: str
) -> None:
    query: Any = xs.from_sql(in_process, written(tmp_path, places))
    with pytest.raises(QueryError, match=what) as raised:
        query.to_arrow()
    assert "Spark" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("option", "what"),
    [("nullValue 'x'", "the option nullvalue 'x' of XML"), ("rowTag 'p:place'", "a row tag with a prefix")],
)
def test_what_is_declared_otherwise_is_left_to_spark(in_process: InProcessSession, option: str, what: str) -> None:
    text = PLACES.format(home=".").replace(
        "rowTag 'place'", option if "rowTag" in option else f"rowTag 'place', {option}"
    )
    with pytest.raises(QueryError, match=what):
        script.read(text).plan(in_process)
