"""A query with `purge_after`: what it says of overdue tuples, where, and from when on; and after a crash the same."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.xmlstream.runtime.killed_run import AROUND_THE_COMMIT, POINTS, crash
from xmlstream.cli.concatenation import concatenate
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

TABLES = """
CREATE TABLE bid (auction STRING, price INT) USING punctuated_xml
OPTIONS (path '${IN}/bid.xml', rowTag 'bid', schemes 'auction', maxBytesPerSlice '1500');
CREATE TABLE item (id STRING, name STRING) USING csv OPTIONS (path '${IN}/item.csv', header 'true');
"""
PRICES = "SELECT auction, max(price) AS price FROM bid GROUP BY auction;"
NAMED = "SELECT auction, price, name FROM bid JOIN item ON auction = id;"


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """Bids for sixty auctions, one after the other; every tenth is never closed. Auction 59 alone has a name."""
    (tmp_path / "in").mkdir()
    bids = [
        "".join(f"<bid><auction>a{n}</auction><price>{price}</price></bid>\n" for price in range(3))
        + (f"<p:bid><auction>a{n}</auction></p:bid>\n" if n % 10 else "")
        for n in range(60)
    ]
    (tmp_path / "in" / "bid.xml").write_text(f'<bids xmlns:p="{PUNCT_NS}">\n{"".join(bids)}</bids>\n')
    (tmp_path / "in" / "item.csv").write_text("id,name\na59,the last\n")
    return tmp_path


def dead_letters(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(out.glob("_dead_letters/*")) for line in path.read_text().splitlines()]


def reports(metrics: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in metrics.read_text().splitlines()]


def cat(out: Path) -> str:
    written = io.BytesIO()
    concatenate(out, written)
    return written.getvalue().decode()


def test_overdue_tuples_are_counted_kept_as_dead_letters_and_said(session: Session, given: Path) -> None:
    asked = xs.from_sql(session, TABLES + PRICES, {"IN": str(given / "in")})
    plain = asked.run(given / "plain", metrics=given / "plain.jsonl")
    assert plain.exact
    assert plain.findings == ()
    assert "exact" not in cat(given / "plain")
    summary = asked.run(given / "out", purge_after="3 slices", metrics=given / "metrics.jsonl")
    assert not summary.exact
    (finding,) = summary.findings
    overdue = plain.tuples_out - summary.tuples_out
    assert str(finding) == (
        f"group_by: {overdue} kept tuples were overdue, and diverted to the dead letters; "
        "from then on the result is not exact"
    )
    letters = dead_letters(given / "out")
    dead = [{"auction": f"a{n}", "price": 2} for n in range(0, 10 * overdue, 10)]
    assert [letter["raw"] for letter in letters] == dead
    assert {(letter["source"], letter["kind"]) for letter in letters} == {("group_by", "overdue")}
    assert all("3 slices" in letter["reason"] for letter in letters)
    slices = reports(given / "metrics.jsonl")
    per_slice = [operator["overdue"] for slice_ in slices for operator in slice_["operators"] if operator["overdue"]]
    assert sum(per_slice) == overdue
    first = next(slice_["slice"] for slice_ in slices if slice_["set_aside"])
    assert [slice_["exact"] for slice_ in slices] == [slice_["slice"] < first for slice_ in slices]
    assert letters[0]["since"]["slice"] + 4 == first
    assert '<rows xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct" exact="false">' in cat(given / "out")
    documents = {int(path.stem[-9:]): 'exact="false"' in path.read_text() for path in (given / "out").glob("slice-*")}
    assert documents == {number: number >= first for number in documents}
    most, without = (max(s["operators"][-1]["kept"] for s in each) for each in (slices, reports(given / "plain.jsonl")))
    assert most < without


def test_a_static_table_is_never_overdue(session: Session, given: Path) -> None:
    asked = xs.from_sql(session, TABLES + NAMED, {"IN": str(given / "in")})
    summary = asked.run(given / "out", purge_after="1 slice")
    assert summary.tuples_out == 3
    assert "item" not in {letter["source"] for letter in dead_letters(given / "out")}


def test_a_document_says_so_even_where_a_slice_has_no_other_result(session: Session, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    bids = "".join(f"<bid><auction>a{n}</auction><price>1</price></bid>\n" for n in range(100))
    (tmp_path / "in" / "bid.xml").write_text(f"<bids>{bids}</bids>")
    asked = xs.from_sql(session, TABLES + PRICES, {"IN": str(tmp_path / "in")})
    asked.run(tmp_path / "out", purge_after="1 slice")
    first, *_ = sorted((tmp_path / "out").glob("slice-*.xml"))
    assert 'exact="false">\n</rows>' in first.read_text()
    assert 'exact="false"' in cat(tmp_path / "out")


@pytest.mark.slow
def test_after_a_crash_at_every_point_the_same_is_overdue(session: Session, given: Path) -> None:
    asked = xs.from_sql(session, TABLES + PRICES, {"IN": str(given / "in")})
    asked.run(given / "whole", purge_after="3 slices")
    for slice_id, point in enumerate(POINTS if AT_NIGHT else AROUND_THE_COMMIT, start=3):
        crash(lambda: asked.run(given / "out", given / "state", purge_after="3 slices"), point, slice_id)
    again = asked.run(given / "out", given / "state", purge_after="3 slices")
    assert not again.exact
    assert cat(given / "out") == cat(given / "whole")
    found, wanted = ([(x["since"]["slice"], x["raw"]) for x in dead_letters(given / out)] for out in ("out", "whole"))
    assert found == wanted
