"""`xmlstream explain --checkpoint` and `xmlstream run --strict` as a user meets them, without Java."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xmlstream.cli.commands import main

QUERY = (
    "CREATE TABLE s (sid STRING, hour INT) USING punctuated_xml OPTIONS (path 's.xml', rowTag 't'{});\n"
    "SELECT hour, count(*) AS n FROM s GROUP BY hour"
)

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """What a command ends with, and what it says on standard error, or else on standard output."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["xmlstream", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            main()
        written = capfd.readouterr()
        return int(str(raised.value.code or 0)), written.err or written.out

    return run


def query(tmp_path: Path, more: str = "") -> Path:
    path = tmp_path / "q.sql"
    path.write_text(QUERY.format(more))
    return path


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ((), "explain takes a query or a checkpoint, and not both"),
        (("{q}", "--checkpoint", "{t}"), "and not both"),
        (("{q}", "--key", "hour=5"), "--key needs --checkpoint"),
        (("--checkpoint", "{t}", "--follow"), "do not apply to a checkpoint"),
        (("--checkpoint", "{t}", "--format", "svg"), "--checkpoint has no format svg"),
        (("--checkpoint", "{t}", "--key", "5"), "--key 5: not NAME=VALUE"),
        (("--checkpoint", "{t}/nowhere"), "there is no checkpoint in"),
    ],
)
def test_what_makes_no_sense_together_is_refused(
    here: Command, tmp_path: Path, arguments: tuple[str, ...], refusal: str
) -> None:
    given = [argument.format(q=query(tmp_path), t=tmp_path) for argument in arguments]
    code, said = here("explain", *given)
    assert code == 2
    assert refusal in said


def test_under_strict_what_only_the_end_of_its_input_lets_answer_is_refused(here: Command, tmp_path: Path) -> None:
    code, said = here("run", query(tmp_path), "-o", tmp_path / "out", "--strict")
    assert code == 3
    assert "group_by never answers, since nothing closes hour" in said
    assert "schemes 'hour'" in said
    assert "without --strict it runs to the end of its input" in said
    assert not (tmp_path / "out").exists()
    code, said = here("run", query(tmp_path), "-o", tmp_path / "out", "--strict", "--allow-unsafe")
    assert (code, "--strict and --allow-unsafe" in said) == (2, True)


def test_without_it_a_line_says_so_and_who_promises_nothing(here: Command, tmp_path: Path) -> None:
    _, said = here("run", query(tmp_path), "-o", tmp_path / "out")
    line = "only the end of its input lets this query answer or purge: group_by never answers"
    assert said.splitlines()[0].startswith(line)
    assert said.splitlines()[0].endswith("; s promises nothing")
    _, said = here("run", query(tmp_path, ", schemes ''"), "-o", tmp_path / "out")
    assert said.splitlines()[0].startswith(line)
    assert "promises nothing" not in said.splitlines()[0]
    _, said = here("run", query(tmp_path, ", punctuate 'order of sid'"), "-o", tmp_path / "out")
    assert said.splitlines()[0].startswith(line)
    assert "promises nothing" not in said.splitlines()[0]
    _, said = here("run", query(tmp_path, ", schemes 'hour'"), "-o", tmp_path / "out")
    assert line not in said


def test_what_waits_for_the_end_of_an_hour_is_found_without_java(here: Command, tmp_path: Path) -> None:
    moments = "".join(f"<t><at>2026-01-01T{at}:00Z</at></t>" for at in ("00:10", "01:10", "01:20"))
    (tmp_path / "s.xml").write_text(f"<ts>{moments}")
    (tmp_path / "q.sql").write_text(
        f"CREATE TABLE s (at TIMESTAMP) USING punctuated_xml OPTIONS (path '{tmp_path}/s.xml', rowTag 't',"
        " punctuate 'order of at'); SELECT date_trunc('HOUR', at) AS hour, count(*) AS n FROM s GROUP BY 1"
    )
    state = tmp_path / "state"
    run = (
        "run",
        tmp_path / "q.sql",
        "-o",
        tmp_path / "out",
        "--checkpoint",
        state,
        "--keep-open",
        "--engine",
        "duckdb",
    )
    assert here(*run)[0] == 0
    code, said = here("explain", "--checkpoint", state)
    assert (code, "(by order of at): <[2026-01-01T01:20:00Z,2026-01-01T01:59:59.999999Z]>" in said) == (0, True), said
