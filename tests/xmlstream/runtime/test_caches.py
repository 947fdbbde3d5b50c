"""A long run remembers nothing of the moment: like slices leave all caches and files of state as many as they were."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import _lru_cache_wrapper
from pathlib import Path

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from xmlstream.punct_ns.xml_form import PUNCT_NS

TABLES = """
CREATE TABLE {name} (k STRING, h INT NOT NULL, ts TIMESTAMP NOT NULL, v INT) USING punctuated_xml
OPTIONS (path '{directory}/{name}', rowTag 'r', schemes 'h; ts prefix; k', maxFilesPerSlice '1');
"""
QUERIES = {
    "groups": "SELECT h, max(v) AS m, count(*) AS n FROM a GROUP BY h",
    "days": "SELECT date_trunc('DAY', ts) AS d, sum(v) AS m FROM a GROUP BY d",
    "joined": "SELECT a.h, a.v, b.v AS w FROM a JOIN b ON a.h = b.h AND a.k = b.k",
    "near": "SELECT a.v, b.v AS w FROM a JOIN b ON a.h = b.h AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES",
    "outer": "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.h = b.h AND a.k = b.k",
    "distinct": "SELECT DISTINCT h, k FROM a",
    "lagged": "SELECT h, ts, lag(v) OVER (PARTITION BY h ORDER BY ts) AS l FROM a",
    "least": "SELECT h, v FROM a QUALIFY row_number() OVER (PARTITION BY h ORDER BY v) = 1",
    "sessions": "SELECT h, session_window(ts, '2 minutes') AS w, count(*) AS n FROM a "
    "GROUP BY h, session_window(ts, '2 minutes')",
    "without": "SELECT h, k FROM a EXCEPT SELECT h, k FROM b",
    "selected": "SELECT h, v + 1 AS v FROM a WHERE v > 3",
    "first": "SELECT h, k, v FROM a QUALIFY row_number() OVER (PARTITION BY h, k ORDER BY arrival) = 1",
}  # fmt: skip
KNOWN = {"xmlstream.punct_ns.notation.parse_pattern"}
"""What may grow, to a few thousand: the patterns of the documents."""

SMALL = 64
"""The most entries of a cache that is meant for what is of the moment."""

BEFORE, AFTER = (100, 300) if AT_NIGHT else (8, 24)


def _write(directory: Path, hours: range) -> None:
    for name in ("a", "b"):
        (directory / name).mkdir(parents=True, exist_ok=True)
        for hour in hours:
            begin = datetime(2026, 1, 1) + timedelta(hours=hour)
            rows = "".join(
                f"<r><k>k{hour}_{n % 3}</k><h>{hour}</h><ts>{begin + timedelta(minutes=n):%Y-%m-%dT%H:%M:%S}</ts>"
                f"<v>{(hour * 7 + n) % 11}</v></r>"
                for n in range(6)
            )
            closed = f"<p:r><h>{hour}</h></p:r><p:r><ts>(,{begin + timedelta(hours=1):%Y-%m-%dT%H:%M:%S})</ts></p:r>"
            text = f"<s xmlns:p='{PUNCT_NS}'>{rows}{closed}<p:r><k>k{hour}_0</k></p:r></s>"
            (directory / name / f"{hour:06}.xml").write_text(text)


def _sizes() -> Iterator[tuple[str, int]]:
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper):
            most = each.cache_parameters()["maxsize"]
            name = f"{each.__module__}.{getattr(each, '__qualname__', '')}"
            if name.startswith("xmlstream.") and name not in KNOWN and (most or SMALL + 1) > SMALL:
                yield name, each.cache_info().currsize


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", QUERIES)
def test_like_slices_leave_all_caches_as_large_as_they_were(name: str, tmp_path: Path) -> None:
    session = xs.open_session(engine="duckdb")
    tables = "".join(TABLES.format(name=table, directory=tmp_path) for table in ("a", "b"))
    sizes, files = [], []
    for first, end in ((0, BEFORE), (BEFORE, AFTER)):
        _write(tmp_path, range(first, end))
        run = xs.from_sql(session, tables + QUERIES[name])
        run.run(output=tmp_path / name, checkpoint=tmp_path / f"{name}.state", keep_open=True)
        sizes.append(dict(_sizes()))
        state = tmp_path / f"{name}.state"
        files.append(sum(path.is_file() and path.parent.name != "commits" for path in state.rglob("*")))
    before, after = sizes
    # A restart plans anew, with a few texts that the first run had no use for.
    few = (AFTER - BEFORE) // 3
    assert {of: (before.get(of, 0), n) for of, n in after.items() if n - before.get(of, 0) > few} == {}
    assert files[1] <= files[0] + few, "of a slice that is over no file of state is left"
