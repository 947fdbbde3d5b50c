"""Groups without keys: there is one, of which a query may ask nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT 1 AS one FROM r HAVING 1 < 2", [{"one": 1}]),
        ("SELECT 1 AS one FROM r HAVING 1 > 2", []),
        ("SELECT 1 AS one FROM r WHERE a > 9 HAVING true", [{"one": 1}]),
        ("SELECT 'x' AS s FROM r HAVING count(*) > 1", [{"s": "x"}]),
        ("SELECT 1 AS one FROM (SELECT count(*) AS n, max(a) AS m FROM r) AS q", [{"one": 1}]),
        ("SELECT a FROM r GROUP BY a HAVING 1 < 2", [{"a": 1}, {"a": 2}]),
    ],
)
def test_the_one_group_without_keys_is_there_though_nothing_is_asked_of_it(
    session: Session, tmp_path: Path, query: str, rows: list[dict[str, object]]
) -> None:
    (tmp_path / "r.xml").write_text("<rs><r><a>1</a></r><r><a>2</a></r></rs>")
    table = f"CREATE TABLE r (a INT) USING punctuated_xml OPTIONS (path '{tmp_path / 'r.xml'}', rowTag 'r');\n"
    found = [row for part in xs.from_sql(session, table + query).slices() for row in part.tuples.to_pylist()]
    assert sorted(found, key=str) == rows
