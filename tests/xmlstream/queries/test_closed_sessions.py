"""Sessions that are closed one by one: operators hold nothing of them, their source all, and finds who comes late."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.samples.sessions import SCHEMA, TAG, identifiers, write_sessions
from xmlstream.operators.state import closed_set
from xmlstream.punct_ns.errors import StateError, UngrammaticalStream

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

SESSIONS, EACH = (30_000, 1000) if AT_NIGHT else (900, 150)


def views(session: Session, directory: Path, name: str = "views", **options: Any) -> xs.Query:
    return xs.read(session, directory, SCHEMA, name=name, rowTag=TAG, schemes="sid", maxFilesPerSlice=1, **options)


QUERIES: dict[str, tuple[Callable[[xs.Query, xs.Query], xs.Query], int]] = {
    "group by": (lambda a, b: a.group_by("sid").agg("count(*) AS n"), 1),
    "join": (lambda a, b: a.join(b, "left.sid = right.key").select("sid", "n", "m"), 4),
    "merge": (lambda a, b: a.union_all(b), 4),
}


@pytest.mark.parametrize("kind", QUERIES)
def test_operators_hold_nothing_of_sessions_that_are_closed(
    session: Session, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_set, "HELD", EACH + EACH // 3)
    sids = identifiers(SESSIONS)
    build, rows = QUERIES[kind]
    first = views(session, write_sessions(tmp_path / "first", sids, EACH))
    other = views(session, write_sessions(tmp_path / "other", sids, EACH, late=1), "other")
    if kind == "join":
        other = other.with_column_renamed("sid", "key").with_column_renamed("n", "m")
    reports: list[dict[str, Any]] = []
    done = build(first, other).run(tmp_path / "out", row_tag="row", on_slice=reports.append, keep_open=True)
    assert done.tuples_out == SESSIONS * rows
    held = {one["name"]: one["punctuations_held"] for one in reports[-1]["operators"]}
    sources = {name: held.pop(name) for name in list(held) if name in ("views", "other")}
    assert set(sources.values()) == {SESSIONS}
    assert set(held.values()) == {0}, held
    assert max(sum(one["punctuations_held"] for one in each["operators"][-1:]) for each in reports) <= 6 * EACH


def test_a_tuple_of_a_session_closed_long_ago_is_found_on_disk(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_set, "HELD", 30)
    monkeypatch.setattr(closed_set, "TOGETHER", 2)
    sids = identifiers(300)
    directory = write_sessions(tmp_path / "in", sids, 50)
    query = views(session, directory, ungrammatical="divert").group_by("n").agg("count(*) AS n_of")

    def again() -> Any:
        return query.run(tmp_path / "out", tmp_path / "checkpoint", keep_open=True)

    again()
    late = write_sessions(tmp_path / "late", [sids[7], "new", sids[299]], 3, views=1)
    shutil.copy(late / "00000.xml", directory / "late.xml")
    again()
    (letters,) = (tmp_path / "out" / "_dead_letters").iterdir()
    told = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [one["reason"] for one in told] == [
        f"the tuple ({sid}, 0) comes after the punctuation <{sid}, *>, which matches it" for sid in (sids[7], sids[299])
    ]
    stopping = views(session, directory).group_by("n").agg("count(*) AS n_of")
    with pytest.raises(UngrammaticalStream, match=sids[7]):
        stopping.run(tmp_path / "stopped")
    # What lies on disk is part of the checkpoint.
    for run in (tmp_path / "checkpoint" / "state" / "views").glob("*.arrow"):
        run.write_bytes(run.read_bytes()[:-8])
    with pytest.raises(StateError, match="the checkpoint is damaged"):
        again()
