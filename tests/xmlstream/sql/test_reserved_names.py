"""Columns of the operators' own beside attributes that are called as those once were, or might be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.running import view
from tests.harness.walking import Walk
from tests.properties.test_contract import force_large_state
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.spark

NAMES = [
    "_leaving",
    "_p0",
    "_p1",
    "_a0",
    "_a1",
    "_n0",
    "_n1",
    "_n2",
    "_n3",
    "_n4",
    "_kept0",
    "_kept1",
    "_k0",
    "_k1",
    "_reached",
    "_covered",
    "_there",
    "_position",
    "_punctuation",
    "_rank",
    "position",
    "aside",
    "number",
    "image",
    "far",
    "value",
]
COLUMNS = ", ".join(f"`{name}` INT" for name in NAMES)
SCHEMA = Schema.parse(COLUMNS)
TABLES = "".join(
    f"CREATE TABLE {name} ({COLUMNS}) USING punctuated_xml"
    f" OPTIONS (path '{name}.xml', rowTag 'r', schemes '_leaving; _p0');\n"
    for name in "rst"
)
ROWS = [tuple((row * place + row) % 5 if row % 3 else None for place in range(len(NAMES))) for row in range(1, 9)]

OTHERS = ", ".join(NAMES[2:])
QUERIES = [
    "SELECT * FROM r WHERE _kept0 > 1",
    "SELECT DISTINCT * FROM r",
    "SELECT * FROM r UNION ALL SELECT * FROM s",
    "SELECT * FROM r INTERSECT SELECT * FROM s",
    "SELECT * FROM r EXCEPT SELECT * FROM s",
    "SELECT _leaving, count(_a0) AS _a0, sum(_a1) AS _n0, avg(_n0) AS _a1, max(_n1) AS _n2 FROM r GROUP BY _leaving",
    "SELECT _leaving, _a0, count(DISTINCT _kept0) AS _a1, median(_n0) AS _n0 FROM r GROUP BY _leaving, _a0",
    f"SELECT _leaving, _p0, {OTHERS} FROM (SELECT *, rank() OVER (PARTITION BY _leaving ORDER BY _n0) AS q FROM r) AS w"
    " WHERE q <= 1",
    "SELECT * FROM r ORDER BY _leaving, _position",
    "SELECT r._position, r._kept0, s._p0, s._n0 FROM r JOIN s ON r._leaving = s._leaving AND r._a0 <= s._a0",
    "SELECT r._position, r._kept0, s._p0, s._n0 FROM r FULL JOIN s ON r._leaving = s._leaving AND r._p0 = s._p0",
    "SELECT * FROM r LEFT SEMI JOIN s ON r._leaving = s._leaving",
    "SELECT * FROM r LEFT ANTI JOIN s ON r._p0 = s._p0",
    "SELECT r._k0, s._k1, t._there, r._reached FROM r, s, t WHERE r._leaving = s._leaving AND s._p0 = t._p0",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("query", QUERIES)
def test_a_users_column_may_have_any_name(
    query: str, spark: SparkSession, in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark walks by night, and one query of three by day; the others are walked in process."""
    walker = spark if AT_NIGHT or QUERIES.index(query) % 3 == 1 else in_process
    force_large_state(monkeypatch)
    whole = {"r": ROWS, "s": ROWS[::-1][:6], "t": ROWS[2:]}
    for name, rows in whole.items():
        view(spark, name, rows, SCHEMA)
    walk = Walk(walker, tmp_path, optimized(read(TABLES + query).plan(spark)))
    read_by = {walk._name(scan) for scan in walk.scans}
    some = [Punctuation.of(SCHEMA, {"_leaving": "[9,20]"}), Punctuation.of(SCHEMA, {"_p0": "[9,20]"})]
    first = walk.slice({name: (rows[:4], some) for name, rows in whole.items() if name in read_by})
    last = walk.slice({n: (rows[4:], [Punctuation.all(SCHEMA)]) for n, rows in whole.items() if n in read_by})
    found = Counter([*first.tuples, *last.tuples])
    assert found == Counter(tuple(row) for row in spark.sql(query).collect())
    assert last.kept == 0


def test_an_xml_attribute_may_be_called_position(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.xml").write_text('<l><r position="3" leaving="1"/><r position="4" leaving="1"/></l>')
    table = (
        f"CREATE TABLE l (_position INT, _leaving INT) USING punctuated_xml OPTIONS (path '{tmp_path / 'in.xml'}',"
        " rowTag 'r');"
    )
    query = f"{table} SELECT _leaving, max(_position) AS p FROM l GROUP BY _leaving"
    xs.from_sql(spark, query).run(output=tmp_path / "out")
    (document,) = (tmp_path / "out").glob("*.xml")
    assert "<p>4</p>" in document.read_text()
