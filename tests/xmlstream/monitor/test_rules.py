"""The page of a feed that rules punctuate: what they have closed, and what brings the next answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import xmlstream as xs
from xmlstream.monitor.monitor import recorded_view

FEED = "".join(
    f"<r><id>{n}</id><sid>S{n % 2}</sid><n>2</n><at>2026-11-27T{n // 2:02}:{n % 2 * 30:02}:00Z</at></r>"
    for n in range(9)
)
HOURS = "SELECT at, count(*) AS m FROM r GROUP BY at"


def shown(tmp_path: Path, rule: str, query: str = HOURS) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The closed map and what the query waits for, after a run that ends without closing its input."""
    (tmp_path / "feed.xml").write_text(f"<log>{FEED}", encoding="utf-8")
    table = (
        "CREATE TABLE r (id INT NOT NULL, sid STRING NOT NULL, n INT NOT NULL, at TIMESTAMP NOT NULL) USING"
        f" punctuated_xml OPTIONS (path '{tmp_path / 'feed.xml'}', rowTag 'r', {rule});\n"
    )
    session = xs.open_session(engine="duckdb")
    xs.from_sql(session, table + query).run(
        output=tmp_path / "out", checkpoint=tmp_path / "state", row_tag="x", keep_open=True
    )
    view = recorded_view(tmp_path / "state")
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


def test_unique_ids_are_closed_without_a_rule(tmp_path: Path) -> None:
    axes, waiting = shown(tmp_path, "uniqueIds 'id'", "SELECT id, count(*) AS m FROM r GROUP BY id")
    assert [row["closed"] for axis in axes for row in axis["rows"]] == ["0 to 8"]
    assert waiting["sources"] == []
