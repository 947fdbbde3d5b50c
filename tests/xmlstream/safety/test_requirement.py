"""Followed queries that would wait or grow for ever, refused before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import xmlstream as xs
from xmlstream.cli import run_command
from xmlstream.cli.commands import app
from xmlstream.punct_ns.errors import UnsafeQuery
from xmlstream.safety.explanation import explained
from xmlstream.safety.words import unsafe
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIDS = """
CREATE TABLE bid (auction INT, bidder INT, price INT)
USING punctuated_xml OPTIONS (path '{path}', rowTag 'bid', schemes '{schemes}');
SELECT auction, max(price) AS top FROM bid GROUP BY auction;
"""


def test_it_is_refused_with_what_is_wrong_and_what_would_mend_it() -> None:
    found = unsafe(read(BIDS.format(path="bid.xml", schemes="bidder")).sketch())
    assert found is not None
    assert found.where == "group_by never answers, since nothing closes auction\n" \
        "  group_by keeps groups for ever, since nothing closes auction"  # fmt: skip
    assert (found.hint or "").startswith(
        "if bid can say of each auction when its last tuple has come, declare schemes 'bidder; auction' in the options"
        " of bid; or if bid can say up to which auction all tuples have come, declare schemes 'bidder; auction prefix'"
        " in the options of bid; or declare punctuate 'order of auction' on bid, if tuples come in that order; "
    )
    assert unsafe(read(BIDS.format(path="bid.xml", schemes="auction")).sketch()) is None


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (
            "SELECT at, count(*) AS n FROM s GROUP BY at ORDER BY n",
            "remove ORDER BY n, since tuples go out as soon as they are final; or sort by an attribute in whose order"
            " a source sends its tuples (punctuate 'order of ts')",
        ),
        (
            "SELECT window(t, '1 hour') AS w, count(*) AS n FROM s GROUP BY window(t, '1 hour')",
            "declare t as TIMESTAMP, not STRING: an order of strings closes no window of their times",
        ),
        (
            "SELECT session_window(t, '1 hour') AS w, count(*) AS n FROM s GROUP BY session_window(t, '1 hour')",
            "declare t as TIMESTAMP, not STRING: an order of strings closes no window of their times",
        ),
    ],
)
def test_what_no_promise_mends_is_refused_with_what_to_write(query: str, hint: str) -> None:
    table = (
        "CREATE TABLE s (at TIMESTAMP, t STRING) USING punctuated_xml"
        " OPTIONS (path 's.xml', rowTag 'r', punctuate 'order of at');"
    )
    root = read(table + query).sketch()
    found = unsafe(root)
    assert found is not None
    assert str(found.hint).startswith(f"{hint}; ")
    assert f"{hint[0].upper()}{hint[1:]}." in explained(root, follow=True).splitlines()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the command would run."""
    found: list[Any] = []
    monkeypatch.setattr(run_command, "_run", lambda script, *_, **__: found.append(script))
    return found


@pytest.mark.parametrize(
    ("options", "runs", "said"),
    [(["--follow"], False, ""), (["--follow", "--allow-unsafe"], True, "unsafe:"), ([], True, "")],
)
def test_the_command_refuses_it_where_it_follows(
    options: list[str], runs: bool, said: str, started: list[Any], tmp_path: Path
) -> None:
    query = tmp_path / "query.sql"
    query.write_text(BIDS.format(path="bid.xml", schemes=""))
    done = CliRunner().invoke(app, ["run", str(query), "-o", str(tmp_path / "out"), *options])
    assert bool(started) == runs
    assert isinstance(done.exception, UnsafeQuery) != runs
    assert said in done.stderr


@pytest.mark.parametrize(("options", "runs"), [([], True), (["--as-written"], False)])
def test_it_is_judged_as_it_runs(options: list[str], runs: bool, started: list[Any], tmp_path: Path) -> None:
    query = tmp_path / "query.sql"
    text = BIDS.format(path="bid.xml", schemes="bidder prefix").replace(
        "FROM bid GROUP", "FROM bid WHERE bidder < 5 GROUP"
    )
    query.write_text(text)
    CliRunner().invoke(app, ["run", str(query), "-o", str(tmp_path / "out"), "--follow", *options])
    assert bool(started) == runs


CYCLE = "".join(
    f"CREATE TABLE {name} ({ddl}) USING punctuated_xml OPTIONS (path '{name}.xml', rowTag 'r', schemes '{said}');"
    for name, ddl, said in [("s1", "a INT, b INT", "b"), ("s2", "b INT, c INT", "c"), ("s3", "a INT, c INT", "a")]
) + "SELECT s1.a FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a;"  # fmt: skip


@pytest.mark.parametrize(("options", "runs"), [([], True), (["--as-written"], False)])
def test_what_is_safe_as_one_join_is_not_refused(
    options: list[str], runs: bool, started: list[Any], tmp_path: Path
) -> None:
    """Li et al. 2006, Fig. 5 and 7."""
    (tmp_path / "query.sql").write_text(CYCLE)
    done = CliRunner().invoke(
        app, ["run", str(tmp_path / "query.sql"), "-o", str(tmp_path / "out"), "--follow", *options]
    )
    assert bool(started) == runs
    assert isinstance(done.exception, UnsafeQuery) != runs


@pytest.mark.spark
def test_start_refuses_it_unless_it_may_be(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.xml").write_text("<bids><bid><auction>1</auction><price>5</price></bid></bids>")
    query = xs.from_sql(spark, BIDS.format(path=tmp_path / "in", schemes=""))
    with pytest.raises(xs.UnsafeQuery, match="for ever"):
        query.start(tmp_path / "out", tmp_path / "state")
    assert not (tmp_path / "state").exists()
    with pytest.raises(xs.UnsafeQuery, match="for ever"):
        xs.start([query.insert_into(tmp_path / "out")], tmp_path / "state")
    handle = query.start(tmp_path / "out", tmp_path / "state", allow_unsafe=True)
    try:
        handle.processAllAvailable()
    finally:
        handle.stop()
