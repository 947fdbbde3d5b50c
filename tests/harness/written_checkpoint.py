"""A query in two halves: the checkpoints in `tests/data` were written by its first half, its second goes on from them.

    PYTHONPATH=CHECKOUT python tests/harness/written_checkpoint.py /tmp/format-4-duckdb duckdb
    (cd /tmp/format-4-duckdb && zip -rqX9 …/tests/data/format-4-duckdb.zip in out state)

CHECKOUT is the version of this project whose checkpoint it is: format 4 is that of commit f48ef913. When a format
changes, one of the format before is added. The queries have a state of each kind: groups, both sides of a join,
duplicates, rows of windows, closed values in memory, and closed strings on the disk.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

SQL = """
CREATE TABLE report (sid STRING, hour INT, temp DOUBLE) USING punctuated_xml
OPTIONS (path '${HOME}/in/report', rowTag 't', schemes 'hour');
CREATE TABLE session (id STRING, hour INT) USING punctuated_xml
OPTIONS (path '${HOME}/in/session', rowTag 's', schemes 'id; hour');
CREATE TABLE hottest USING punctuated_xml OPTIONS (path '${HOME}/out/hottest');
CREATE TABLE joined USING punctuated_xml OPTIONS (path '${HOME}/out/joined');
CREATE TABLE seen USING punctuated_xml OPTIONS (path '${HOME}/out/seen');
CREATE TABLE ranked USING punctuated_xml OPTIONS (path '${HOME}/out/ranked');
CREATE TABLE counted USING punctuated_xml OPTIONS (path '${HOME}/out/counted');
INSERT INTO hottest SELECT hour, max(temp) AS top FROM report GROUP BY hour;
INSERT INTO joined SELECT r.sid, r.hour, s.id FROM report r JOIN session s ON r.hour = s.hour;
INSERT INTO seen SELECT DISTINCT sid, hour FROM report;
INSERT INTO ranked
SELECT sid, hour, temp, row_number() OVER (PARTITION BY hour ORDER BY temp DESC) AS place FROM report;
INSERT INTO counted SELECT id, count(*) AS n FROM session GROUP BY id;
"""
OUTPUTS = ("hottest", "joined", "seen", "ranked", "counted")

_ROOT = '<d xmlns:p="http://www.cse.ogi.edu/dot/niagara/punct">'


def _document(path: Path, tag: str, tuples: list[dict[str, Any]], punctuations: list[dict[str, Any]]) -> None:
    def element(name: str, leaves: dict[str, Any]) -> str:
        return f"<{name}>{''.join(f'<{leaf}>{text}</{leaf}>' for leaf, text in leaves.items())}</{name}>\n"

    path.parent.mkdir(parents=True, exist_ok=True)
    items = [element(tag, each) for each in tuples] + [element(f"p:{tag}", each) for each in punctuations]
    path.write_text(f"{_ROOT}{''.join(items)}</d>")


def arrives(home: Path, half: int) -> None:
    """Writes the documents of a half: three hours of both streams; the last hour stays open in part."""
    for hour in range(3 * half, 3 * half + 3):
        reports = [{"sid": f"S{i}", "hour": h, "temp": 20 + i + h / 2} for i in range(3) for h in (hour, hour + 1)]
        _document(home / "in/report" / f"{hour}.xml", "t", reports, [{"hour": hour}])
        sessions = [{"id": f"s{hour}-{i}", "hour": hour + 1} for i in range(5)]
        closed: list[dict[str, Any]] = [{"id": f"s{hour}-{i}"} for i in range(4)]
        _document(home / "in/session" / f"{hour}.xml", "s", sessions, [*closed, {"hour": f"(,{hour}]"}])


def runs(session: Any, home: Path, checkpoint: str | Path, **options: Any) -> Any:
    """Runs the queries over what has arrived; they stay open."""
    import xmlstream as xs

    queries = xs.inserts_from_sql(session, SQL, {"HOME": str(home)})
    return xs.run(queries, checkpoint=str(checkpoint), keep_open=True, **options)


def in_halves(session: Any, home: Path) -> Path:
    """A directory with a checkpoint of two slices, `state`, and its outputs."""
    for half in (0, 1):
        arrives(home, half)
        runs(session, home, home / "state")
    return home


def main(home: Path, engine: str) -> None:
    """Writes the checkpoint of the first half."""
    import xmlstream as xs
    from xmlstream.operators.state import closed_set

    closed_set.HELD = 8  # more are on the disk
    os.chdir(home)
    arrives(home, 0)
    runs(xs.open_session(engine="duckdb") if engine == "duckdb" else xs.open_session(), home, home / "state")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
