"""Streams beside a table whose key is two attributes: an operator closes few boxes beside many kept pairs.

Each punctuation that goes out is compared with all before it, so that their number, and not that of the tuples, is what
makes slices long.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

TABLES = """
CREATE TABLE a (h INT, k INT, v INT) USING punctuated_xml
OPTIONS (path '{path}/a.xml', rowTag 'row', schemes 'h', maxBytesPerSlice '16k');
CREATE TABLE b (h INT, k INT, v INT) USING punctuated_xml OPTIONS (path '{path}/b.xml', rowTag 'row', schemes 'h');
CREATE TABLE s (h INT, k INT, v INT) USING csv OPTIONS (path '{path}/s.csv', header 'true');
"""
MOST_PUNCTUATIONS = 300
"""Punctuations of an operator in a slice; 2,000 pairs have some 4,000 boxes beside them."""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams by the hour, each hour closed; a table of 2,000 pairs."""
    path, drawn = tmp_path_factory.mktemp("pairs"), Random(1)
    for name in ("a", "b"):
        lines = ["<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"]
        for hour in range(100):
            lines += (f"<row><h>{hour}</h><k>{drawn.randrange(100)}</k><v>{v}</v></row>" for v in range(20))
            lines.append(f"<p:row><h>{hour}</h></p:row>")
        (path / f"{name}.xml").write_text("\n".join([*lines, "</r>"]), encoding="utf-8")
    pairs = [f"{hour},{drawn.randrange(100)},{v}" for hour in range(100) for v in range(20)]
    (path / "s.csv").write_text("\n".join(["h,k,v", *pairs]), encoding="utf-8")
    return path


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "query",
    [
        *(f"SELECT a.h, a.k, s.v FROM a {kind} JOIN s ON a.h = s.h AND a.k = s.k" for kind in ("", "LEFT", "RIGHT")),
        "SELECT a.h, s.k FROM a FULL JOIN s ON a.h = s.h AND a.k = s.k",
        "SELECT h, k FROM a LEFT SEMI JOIN s USING (h, k)",
        "SELECT h, k FROM s LEFT ANTI JOIN a USING (h, k)",
        "SELECT h, k FROM a LEFT ANTI JOIN s USING (h, k)",
        "SELECT a.h, a.k, b.v FROM a JOIN b ON a.h = b.h AND a.k = b.k",
        "SELECT a.h, b.k, s.v FROM a JOIN b ON a.h = b.h AND a.k = b.k JOIN s ON a.h = s.h AND a.k = s.k",
        "SELECT h, k FROM s EXCEPT SELECT h, k FROM a",
        "SELECT h, k FROM a INTERSECT SELECT h, k FROM s",
        "SELECT h, k FROM a UNION SELECT h, k FROM s",
        "SELECT h, k, max(v) AS v FROM (SELECT * FROM a UNION ALL SELECT * FROM s) GROUP BY h, k",
    ],
)
def test_few_punctuations_go_out_beside_many_pairs(in_process: InProcessSession, given: Path, query: str) -> None:
    metrics = given / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    asked = xs.from_sql(in_process, TABLES.format(path=given) + query + ";")
    asked.run(given / "out.parquet", metrics=metrics, overwrite=True)
    slices = [json.loads(line)["operators"] for line in metrics.read_text(encoding="utf-8").splitlines()]
    most = max((each["punctuations_out"], each["name"]) for operators in slices for each in operators)
    assert most < (MOST_PUNCTUATIONS, "")
