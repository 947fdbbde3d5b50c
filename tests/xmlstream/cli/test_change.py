"""`xmlstream change` shows what another query would take over, writes nothing, and its exit code has the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import xmlstream as xs
from tests.xmlstream.runtime.change.test_changed_checkpoint import HOTTEST, warehouse
from xmlstream.cli.commands import app
from xmlstream.punct_ns.errors import StateError, UsageError
from xmlstream.session.engines import InProcessSession


@pytest.fixture
def begun(in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the checkpoint of the warehouse's query, after a slice."""
    monkeypatch.chdir(tmp_path)
    house = warehouse(tmp_path)
    house.send(0)
    house.run(in_process, {"out": HOTTEST})
    return tmp_path


def change(home: Path, query: str, *options: str) -> Result:
    (home / "new.sql").write_text(warehouse(home).tables.replace("HOME", str(home)) + query)
    return CliRunner().invoke(app, ["change", "new.sql", "--checkpoint", "state", *options])


def test_it_shows_what_goes_on_and_where(begun: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = change(begun, f"{HOTTEST} HAVING max(temp) > 68", "-o", "alarms")
    assert shown.exit_code == 0
    first, *lines = shown.output.splitlines()
    assert first.startswith("new.sql, after slice 0 of the checkpoint ")
    assert lines[-3:] == [
        "  group_by ((hour) max(temp) AS hottest): goes on, with 1 row",
        "  alarms: goes on, where out ends",
        closed := "out has closed <*, 0>: the new query answers the rest",
    ]
    assert not (begun / "alarms").exists()
    run = ["run", "new.sql", "-o", "alarms", "--checkpoint", "state", "--change", "--keep-open", "--engine", "duckdb"]
    for times in (1, 0):
        CliRunner().invoke(app, run)
        assert capfd.readouterr().err.count(closed) == times


def test_the_query_that_the_checkpoint_has_needs_no_change(begun: Path) -> None:
    assert "is the query of the checkpoint" in change(begun, HOTTEST).output


@pytest.mark.parametrize(("output", "closed"), [("out.parquet", True), ("out.csv", False)])
def test_it_shows_what_is_closed_where_the_output_holds_that(
    begun: Path, in_process: InProcessSession, output: str, closed: bool
) -> None:
    tables = warehouse(begun).tables.replace("HOME", str(begun))
    xs.from_sql(in_process, tables + HOTTEST).run(output, "other", keep_open=True)
    shown = change(begun, f"{HOTTEST} HAVING max(temp) > 68", "-o", "alarms", "--checkpoint", "other")
    assert shown.output.count(f"{output} has closed <*, 0>: the new query answers the rest") == closed


def test_what_is_refused_ends_it_with_an_error_that_leads_on(begun: Path) -> None:
    shown = change(begun, HOTTEST.replace("max(temp)", "min(temp)"))
    assert isinstance(shown.exception, StateError)
    assert "group_by ((hour) min(temp) AS hottest): refused, its groups were kept without min(temp)" in shown.output
    assert "--continues" in str(shown.exception.hint)


def test_a_query_that_continues_another_goes_on_continuing_it(begun: Path, in_process: InProcessSession) -> None:
    house = warehouse(begun)
    target = "CREATE TABLE mean USING punctuated_xml OPTIONS (path 'mean', rowTag 'row');\nINSERT INTO mean "
    mean = HOTTEST.replace("max(temp)", "avg(temp)")
    house.run(in_process, {"mean": mean}, "mean-state", continues=begun / "out")
    (begun / "new.sql").write_text(f"{house.tables.replace('HOME', str(begun))}{target}{mean} HAVING avg(temp) > 0;")
    shown = CliRunner().invoke(app, ["change", "new.sql", "--checkpoint", "mean-state"])
    assert shown.output.splitlines()[-2] == "  mean: goes on"


def test_an_added_output_begins_from_then_on(begun: Path) -> None:
    added = "CREATE TABLE out USING punctuated_xml OPTIONS (path 'out', rowTag 'row');\n"
    added += "CREATE TABLE every USING punctuated_xml OPTIONS (path 'every', rowTag 'row');\n"
    shown = change(begun, f"{added}INSERT INTO out {HOTTEST}; INSERT INTO every SELECT hour, min FROM north;")
    assert shown.exit_code == 0
    assert shown.output.splitlines()[-3:-1] == [
        "  out: goes on",
        "  every: begins anew, with answers over the input from now on",
    ]


@pytest.mark.parametrize("options", [["--change", "--undo"], ["--change"], ["--undo", "--checkpoint", "s3://b/state"]])
def test_a_change_needs_a_checkpoint_on_this_machine(begun: Path, options: list[str]) -> None:
    (begun / "new.sql").write_text(warehouse(begun).tables.replace("HOME", str(begun)) + HOTTEST)
    done = CliRunner().invoke(app, ["run", "new.sql", "-o", "new", "--engine", "duckdb", *options])
    assert isinstance(done.exception, UsageError)
    assert done.exception.hint


def test_a_checkpoint_that_is_not_there_is_not_damaged(begun: Path) -> None:
    (begun / "new.sql").write_text(warehouse(begun).tables.replace("HOME", str(begun)) + HOTTEST)
    done = CliRunner().invoke(app, ["change", "new.sql", "--checkpoint", "nowhere"])
    assert isinstance(done.exception, StateError)
    assert str(done.exception).startswith("there is no checkpoint in nowhere")


@pytest.mark.parametrize("command", [["cat", "state"], ["wait", "state", "<0, *>", "--timeout", "0s"]])
def test_a_checkpoint_is_not_taken_for_an_output(begun: Path, command: list[str]) -> None:
    ended = CliRunner().invoke(app, command)
    assert isinstance(ended.exception, UsageError)
    assert str(ended.exception.hint) == "name the output; xmlstream checkpoint state shows where it is"
