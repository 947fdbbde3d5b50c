"""The page of a feed that rules punctuate: what they have closed, and what brings the next answer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import xmlstream as xs
from xmlstream.monitor.monitor import recorded_view
from xmlstream.monitor.run_view import RunView
from xmlstream.runtime import progress
from xmlstream.sink import closings

FEED = "".join(
    f"<r><id>{n}</id><sid>S{n % 2}</sid><n>2</n><at>2026-11-27T{n // 2:02}:{n % 2 * 30:02}:00Z</at></r>"
    for n in range(9)
)
HOURS = "SELECT at, count(*) AS m FROM r GROUP BY at"


def viewed(
    tmp_path: Path,
    rule: str,
    query: str = HOURS,
    into: str = "punctuated_xml OPTIONS (rowTag 'x', ",
    feed: str = FEED,
) -> RunView:
    """The view of a run that ends without closing its input."""
    (tmp_path / "feed.xml").write_text(f"<log>{feed}", encoding="utf-8")
    table = (
        "CREATE TABLE r (id INT NOT NULL, sid STRING NOT NULL, n INT NOT NULL, at TIMESTAMP NOT NULL) USING"
        f" punctuated_xml OPTIONS (path '{tmp_path / 'feed.xml'}', rowTag 'r', {rule});\n"
    )
    session = xs.open_session(engine="duckdb")
    using = f"{into}path '{tmp_path / 'out'}')"
    output = f"CREATE TABLE o USING {using};\nINSERT INTO o "
    xs.run(xs.inserts_from_sql(session, table + output + query), checkpoint=tmp_path / "state", keep_open=True)
    return recorded_view(tmp_path / "state")


def shown(
    tmp_path: Path, rule: str, query: str = HOURS, feed: str = FEED
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The closed map and what the query waits for."""
    view = viewed(tmp_path, rule, query, feed=feed)
    return [axis.json() for axis in view.closed()], view.waiting()


def test_what_an_order_has_closed_is_shown_with_the_next_tuple_that_brings_an_answer(tmp_path: Path) -> None:
    axes, waiting = shown(tmp_path, "punctuate 'order of at, slack 10m'")
    (row,) = axes[0]["rows"]
    assert (row["input"], row["closed"]) == ("r", "< 2026-11-27T03:50:00Z")
    assert row["last_sent"]["slice"] == 0
    (source,) = waiting["sources"]
    assert source["closed"] == ["at < 2026-11-27T03:50:00Z"]
    assert source["next"] == ["the first tuple of r with at from 2026-11-27T04:10:00.000001Z on"]
    assert source["last_sent"] is not None
    (cause,) = waiting["causes"]
    assert (cause["input"], cause["behind"]) == ("r", False)


@pytest.mark.parametrize(
    ("rule", "query", "closed"),
    [
        ("punctuate 'end of id after n'", "SELECT id, count(*) AS m FROM r GROUP BY id", []),
        ("punctuate 'end of id after 1'", "SELECT id, count(*) AS m FROM r GROUP BY id", ["id 0 to 8"]),
        (
            "punctuate 'order of at, per sid'",
            "SELECT sid, at, count(*) AS m FROM r GROUP BY sid, at",
            ["<*, S0, *, (,2026-11-27T03:59:59.999999Z]>", "<*, S1, *, (,2026-11-27T03:29:59.999999Z]>"],
        ),
    ],
)
def test_each_rule_shows_what_it_has_closed(tmp_path: Path, rule: str, query: str, closed: list[str]) -> None:
    _, waiting = shown(tmp_path, rule, query)
    assert [sorted(source["closed"]) for source in waiting["sources"]] == [closed]


def test_a_clock_brings_the_next_answer_at_a_moment(tmp_path: Path) -> None:
    later = FEED.replace("2026-11-27T04", "2999-11-27T04")
    _, waiting = shown(tmp_path, "punctuate 'clock of at, delay 10m'", feed=later)
    assert waiting["sources"][0]["next"] == ["the clock at 2999-11-27T04:10:00.000001Z"]


def test_unique_ids_are_closed_without_a_rule(tmp_path: Path) -> None:
    axes, waiting = shown(tmp_path, "uniqueIds 'id'", "SELECT id, count(*) AS m FROM r GROUP BY id")
    assert [row["closed"] for axis in axes for row in axis["rows"]] == ["0 to 8"]
    assert waiting["sources"] == []


@pytest.mark.parametrize(
    ("roster", "senders"),
    [
        ("S0, S1, S2", ["S2 (it has sent nothing)"]),
        ("S0, S1", ["S1 (it is at 2026-11-27T03:30:00Z)"]),
        ("S0", []),
        ("S7, S8", []),
    ],
)
def test_a_roster_waits_for_the_senders_that_others_have_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roster: str, senders: list[str]
) -> None:
    view = viewed(tmp_path, f"punctuate 'roster of sid ({roster}), order of at'")
    monkeypatch.setattr(progress, "SPAN", timedelta())
    view.how = ""
    waiting = view.waiting()
    (cause,) = waiting["causes"]
    assert (cause["senders"], cause["behind"]) == (senders, bool(senders))
    assert waiting["stands"]["text"] == ("waits for r" if senders else "running")
    needs = [need for example in waiting["waits"][0]["examples"] for need in example["needs"]]
    assert needs[0].get("behind", []) == senders


ORDER = "punctuate 'order of at'"
NESTED = "SELECT id, named_struct('a', sid, 'b', n) AS s, IF(n > 2, 'x', NULL) AS e FROM r"


@pytest.mark.parametrize("end", [1 << 16, 200])
@pytest.mark.parametrize(
    ("query", "into", "columns", "first"),
    [
        ("SELECT id, sid FROM r", "punctuated_xml OPTIONS (rowTag 'x', ", ["id", "sid"], ["8", "S0"]),
        (NESTED, "punctuated_xml OPTIONS (rowTag 'x', ", ["id", "s.a", "s.b"], ["8", "S0", "2"]),
        (
            "SELECT id, '<x>' AS sid FROM r",
            "punctuated_xml OPTIONS (rowTag 'b:x', rootTag 'b:all n=\"1\"', namespaces 'b urn:b', path.sid 'b:s/@of', ",
            ["id", "s._of", "s"],
            ["8", "<x>", '""'],
        ),
        ("SELECT id, sid FROM r", "parquet OPTIONS (", ["id", "sid"], ["8", "S0"]),
    ],
)
def test_the_last_rows_of_a_result_come_from_the_ends_of_its_documents(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    into: str,
    columns: list[str],
    first: list[str],
    end: int,
) -> None:
    monkeypatch.setattr(closings, "_END", end)
    view = viewed(tmp_path, f"{ORDER}, maxBytesPerSlice '300b'", query, into)
    results: Any = view.last_rows()["results"]
    (result,) = results
    assert (result["columns"], result["rows"][0]) == (columns, first)
    ids = [int(row[0]) for row in result["rows"]]
    assert ids == list(range(8, 8 - len(ids), -1))
    assert len(ids) == 9 or end == 200
