"""A late tuple is said, or set aside, whatever the rule and the type of its attribute: a message computes nothing else.

What a message says of a tuple is computed beside the query, perhaps in expressions that nothing else needs.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from xmlstream.punct_ns.errors import QueryError, UngrammaticalStream

VALUES = {
    "TINYINT": ("1", "5", "9", "1"),
    "SMALLINT": ("-300", "0", "300", "1"),
    "INT": ("1", "50", "90", "1"),
    "BIGINT": ("1", "5000000000", "9000000000", "1"),
    "DECIMAL(5,2)": ("1.50", "2.25", "3.75", "0.5"),
    "DECIMAL(38,0)": ("1", "5", "9", "1"),
    "FLOAT": ("1.5", "2.5", "4.5", "0.5"),
    "DOUBLE": ("1.5", "2.5", "4.5", "0.5"),
    "STRING": ("a", "f", "k", ""),
    "BOOLEAN": ("false", "true", "true", ""),
    "DATE": ("2026-03-01", "2026-03-05", "2026-03-09", "1"),
    "TIMESTAMP": ("2026-03-01T00:00:00Z", "2026-03-01T00:30:00Z", "2026-03-01T01:00:00Z", "10s"),
    "TIMESTAMP_NTZ": ("2026-03-01T00:00:00", "2026-03-01T00:30:00", "2026-03-01T01:00:00", "10s"),
}
"""By type: a value that is late behind the second and third, those, and a slack."""

RULES = {
    "order": "order of x",
    "slack": "order of x, slack {slack}",
    "per": "order of x, per k",
    "per, slack": "order of x, per k, slack {slack}",
    "ahead": "order of x, slack {slack}, max_ahead {ahead}",
    "roster": "roster of k (a, b), order of x",
    "roster, slack": "roster of k (a, b), order of x, slack {slack}",
}
FAR = {
    "DATE": "300",
    "TIMESTAMP": "90d",
    "TIMESTAMP_NTZ": "90d",
    "TINYINT": "100",
    "DECIMAL(5,2)": "500",
    "BIGINT": "9000000000",
}


def cases() -> list[tuple[str, str]]:
    return [(rule, type_) for rule, type_ in product(RULES, VALUES) if "slack" not in RULES[rule] or VALUES[type_][3]]


def rows(*given: tuple[str, str]) -> str:
    return f"<rows>{''.join(f'<r><k>{k}</k><x>{x}</x></r>' for k, x in given)}</rows>"


BY_DAY = ["in process", *([pytest.param("spark", marks=pytest.mark.spark)] if AT_NIGHT else [])]


@pytest.mark.parametrize("engine", BY_DAY)
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("rule", "type_"), cases())
def test_a_late_tuple_is_set_aside_or_said(
    rule: str, type_: str, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    session = request.getfixturevalue("spark" if engine == "spark" else "in_process")
    late, middle, greatest, slack = VALUES[type_]
    (tmp_path / "1.xml").write_text(rows(("a", middle), ("b", middle), ("a", greatest), ("b", greatest)))
    (tmp_path / "2.xml").write_text(rows(("a", late), ("b", greatest)))
    text = f"""
        CREATE TABLE t (k STRING, x {type_}) USING punctuated_xml OPTIONS (path '{tmp_path}', rowTag 'r',
            maxFilesPerSlice 1, punctuate '{RULES[rule].format(slack=slack, ahead=FAR.get(type_, "1000"))}',
            ungrammatical '%s');
        SELECT k, x FROM t
    """
    if engine == "in process" and ("ahead" in rule or ("slack" in rule and type_ == "DECIMAL(38,0)")):
        with pytest.raises(QueryError, match="not proven to be equal in DuckDB") as refused:
            xs.from_sql(session, text % "drop").explain()
        assert refused.value.where is not None
        return
    kept = xs.from_sql(session, text % "drop").to_arrow()
    assert kept.num_rows == 5
    query = xs.from_sql(session, text % "fail")
    with pytest.raises(UngrammaticalStream) as told:
        query.to_arrow()
    assert late.rstrip("Z").rstrip("0:").rstrip("T") in str(told.value)
