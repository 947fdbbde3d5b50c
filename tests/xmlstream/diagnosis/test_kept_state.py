"""What operators keep is given as tables, from the last commit of a checkpoint that is only read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

import xmlstream as xs
from tests.harness.written_checkpoint import arrives, in_halves
from xmlstream.cli.commands import app
from xmlstream.punct_ns.errors import StateError, UsageError

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of two slices, with its outputs."""
    return in_halves(xs.open_session(engine="duckdb"), tmp_path_factory.mktemp("written"))


def files(home: Path) -> dict[str, tuple[bytes, int]]:
    return {str(p.relative_to(home)): (p.read_bytes(), p.stat().st_mtime_ns) for p in home.rglob("*") if p.is_file()}


def pairs(table: Any, *names: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))


def test_all_that_operators_keep_is_listed_and_nothing_is_written(written: Path) -> None:
    before = files(written)
    table = xs.kept(written / "state")
    rows = {(row["operator"], row["log"]): row for row in table.to_pylist()}
    assert rows["join", "side-0"]["what"] == "tuples of the left side"
    assert {of for (of, _), row in rows.items() if row["what"] != "punctuations"} == {
        "group_by", "join", "distinct", "row_window", "group_by-2",
    }  # fmt: skip
    assert all(row["bytes"] > 0 for row in rows.values() if row["rows"] and row["what"] != "punctuations")
    for (operator, log), row in rows.items():
        assert xs.kept(written / "state", operator, log).num_rows == row["rows"], (operator, log)
    said = json.loads(table.schema.metadata[b"xmlstream.kept"])
    assert said["slice"] == 1
    assert files(written) == before


def test_a_group_has_its_values_so_far_and_a_tuple_its_attributes(written: Path) -> None:
    groups = xs.kept(str(written / "state"), "GROUP_BY")
    assert groups.column_names == ["hour", "top", "_slice", "_came"]
    assert pairs(groups, "hour", "top", "_slice") == [(6, 25.0, 1)]
    counted = xs.kept(written / "state", "group_by-2")
    assert pairs(counted, "id", "n", "_slice") == [(f"s{hour}-4", 1, hour // 3) for hour in range(6)]
    sessions = xs.kept(written / "state", "join", "side-1")
    assert sessions.column_names == ["id", "hour_2", "_slice", "_came"]
    assert pairs(sessions, "hour_2", "id") == [(6, f"s5-{i}") for i in range(5)]


def test_of_a_set_of_punctuations_there_are_the_patterns(written: Path, tmp_path: Path) -> None:
    state = written / "state"
    assert xs.kept(state, "report").to_pylist() == [{"sid": "*", "hour": "[0,5]", "temp": "*"}]
    assert xs.kept(state, "join", "closed-1").to_pylist() == [{"hour": "(,5]"}]
    assert xs.kept(state, "join", "waiting-1").to_pylist() == [{"id": "{s5-0,s5-1,s5-2,s5-3}", "hour_2": "*"}]
    closed = [f"s{hour}-{i}" for hour in range(3) for i in range(4)]
    with ZipFile(
        Path(__file__).parents[2] / "data" / "format-4-duckdb.zip"
    ) as archive:  # of closed strings on the disk
        archive.extractall(tmp_path)
    strings, hours = xs.kept(tmp_path / "state", "session").to_pylist()[::-1]
    assert strings == {"id": f"{{{','.join(closed)}}}", "hour": "*"}
    assert hours == {"id": "*", "hour": "(,2]"}
    row = next(row for row in xs.kept(tmp_path / "state").to_pylist() if row["operator"] == "session")
    assert (row["rows"], row["bytes"] > 0) == (13, True)


def test_what_there_is_not_is_refused_with_what_there_is(written: Path, tmp_path: Path) -> None:
    state = written / "state"
    wrong: list[tuple[Any, str]] = [
        (("joined",), "there is no operator joined"),
        (("merge",), "there is no operator merge; Hint: what keeps something: report, "),
        (("join",), "join keeps several kinds of rows; Hint: name one of side-0 (tuples of the left side), side-1 "),
        (("join", "middle"), "join keeps no rows called middle; Hint: there are "),
    ]
    for names, words in wrong:
        with pytest.raises(UsageError) as raised:
            xs.kept(state, *names)
        assert words in f"{raised.value.what}; Hint: {raised.value.hint}"
    with pytest.raises(StateError, match="there is no checkpoint"):
        xs.kept(tmp_path)


def test_the_command_shows_them(written: Path) -> None:
    def invoked(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["checkpoint", str(written / "state"), *arguments])
        return done.exit_code, done.output

    code, text = invoked("--operator", "group_by-2", "--rows", "2")
    lines = text.splitlines()
    assert code == 0
    assert lines[0].startswith("as of slice 1, committed at 20")
    assert lines[0].endswith(": 6 rows")
    assert lines[1].split()[:3] == ["id", "n", "_slice"]
    assert (len(lines), lines[-1]) == (5, "  and 4 more")
    code, text = invoked("--operator", "join", "--log", "tuples of the right side", "--format", "json")
    assert [json.loads(line)["id"] for line in text.splitlines()] == [f"s5-{i}" for i in range(5)]
    assert invoked("--operator", "join")[0] == 1
    assert invoked("--log", "side-0")[0] == 1
    assert invoked("--operator", "join", "--verify")[0] == 1


def test_a_query_that_runs_is_read_as_of_its_last_commit(in_process: InProcessSession, tmp_path: Path) -> None:
    arrives(tmp_path, 0)
    handle = xs.start(
        xs.inserts_from_sql(in_process, _sql(), {"HOME": str(tmp_path)}), tmp_path / "state", trigger="10 ms"
    )
    try:
        handle.processAllAvailable()
        assert pairs(xs.kept(tmp_path / "state", "group_by"), "hour", "top") == [(3, 23.5)]
        arrives(tmp_path, 1)
        handle.processAllAvailable()
        assert pairs(xs.kept(tmp_path / "state", "group_by"), "hour", "top") == [(6, 25.0)]
    finally:
        handle.stop()


def _sql() -> str:
    from tests.harness.written_checkpoint import SQL

    return SQL


def test_every_kind_of_state_is_read_by_both_engines(session: Session, written: Path) -> None:
    for row in xs.kept(written / "state").to_pylist():
        here = xs.kept(written / "state", row["operator"], row["log"])
        there = xs.kept(written / "state", row["operator"], row["log"], session)
        assert there.column_names == here.column_names
        assert sorted(map(str, there.to_pylist())) == sorted(map(str, here.to_pylist()))
