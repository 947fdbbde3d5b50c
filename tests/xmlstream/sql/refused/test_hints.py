"""What a hint proposes to write is computed in process, or the hint names the engine that computes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import xmlstream as xs
from xmlstream.session.engines import InProcessSession
from xmlstream.sql.refused import did_you_mean, refusals
from xmlstream.sql.spark import functions

TABLE = """CREATE TABLE s (id INT, sid STRING, v {}, x DOUBLE, ts TIMESTAMP, text STRING, s STRING, day DATE)
USING punctuated_xml OPTIONS (path 's.xml', rowTag 's', punctuate 'order of ts'); """
CALL = re.compile(r"\w+ RLIKE '[^']*'|\w+\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|CAST\(v AS [A-Z]+(?:\(18, 2\))?\)")
OF_SPARK = ", which only Spark computes"
ELSEWHERE = {*functions.RANKS, *functions.CUTS_TIME, "lag", "explode", "document", "so_far", "lazy_purge"}
"""Calls that need a clause around them, or are none of SQL: the tests of these clauses have them."""


def hints() -> Iterator[str]:
    """All hints of the tables of refusals."""
    yield from functions.REFUSED.values()
    for table in (refusals._PARTS, did_you_mean._ELSEWHERE, did_you_mean._CREATED):
        yield from (hint for _, hint in table.values() if hint is not None)


def proposals() -> dict[str, bool]:
    """The calls in all hints, and whether their hint leaves them to Spark."""
    found: dict[str, bool] = {}
    for hint in hints():
        for call in CALL.finditer(hint):
            name = re.match(r"\w+", call[0])
            assert name is not None
            is_for = "for " in hint[max(0, call.start() - 4) : call.start()]
            if not (is_for or "…" in call[0] or name[0].lower() in ELSEWHERE):
                found[call[0]] = hint[call.end() :].startswith(OF_SPARK)
    return found


@pytest.mark.parametrize("call", proposals())
def test_what_a_hint_proposes_is_computed_in_process_or_left_to_spark(in_process: InProcessSession, call: str) -> None:
    queries = f"SELECT {call} AS q FROM s", f"SELECT sid, {call} AS q FROM s GROUP BY sid"
    errors = []
    for query in queries:
        for type_ in ("DOUBLE", "STRING"):
            try:
                xs.from_sql(in_process, TABLE.format(type_) + query)
            except xs.QueryError as error:
                errors.append(str(error))
    is_computed = len(errors) < 4
    assert is_computed is not proposals()[call], errors


def test_the_hints_have_calls_to_follow() -> None:
    assert len(proposals()) > 15
    assert OF_SPARK in functions.REFUSED["json_value"]
