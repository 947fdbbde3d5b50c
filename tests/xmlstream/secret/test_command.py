"""`xmlstream secret` prints the traces of Botan et al. 2010."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.harness.pages import ROOT
from xmlstream.cli.commands import app
from xmlstream.operators.secret_window import SecretWindow
from xmlstream.plan.nodes import source
from xmlstream.punct_ns.errors import UsageError
from xmlstream.secret.model import CORAL8, PROFILES, STREAM, STREAMBASE, Windows, stream
from xmlstream.secret.reported_windows import reported_windows
from xmlstream.secret.trace import comparison, trace
from xmlstream.sources.xml.options.source import SourceOptions


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Example 2, and a tuple more."""
    path = tmp_path / "in.xml"
    rows = "".join(f"<t><time>{t}</time><val>{v}</val></t>" for v, t in ((10, 30), (20, 31), (30, 36), (40, 37)))
    path.write_text(f"<s>{rows}</s>", encoding="utf-8")
    return path


def asked(document: Path, *options: str) -> list[list[str]]:
    """The lines that it prints, by their words."""
    command = ["secret", str(document), "--size", "5", "--slide", "1", "--row-tag", "t", *options]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    return [line.split() for line in done.stdout.splitlines()]


def test_a_trace_has_a_line_for_each_report(document: Path) -> None:
    heading, _, *lines = asked(document, "--profile", "StreamBase")
    assert " ".join(heading) == "streambase: tuple-driven; reports: window close & non-empty"
    assert " ".join(lines[0]) == "t1 (10, 30) 29 no: non-empty (24 29] {} -"
    assert [line[-1] for line in lines[1:]] == ["10", "15", "15", "15", "15", "20", "30"]


def test_engines_side_by_side_differ_where_only_one_reports(document: Path) -> None:
    heading, *lines = asked(document, "--compare")
    assert heading == ["tuple", "t", *PROFILES, "differ", "in", "why"]
    assert [line[3] for line in lines if "Report" in line] == ["32", "33", "34"]
    assert " ".join(lines[3][9:]) == "stream, coral8: no content change"


def test_engines_side_by_side_are_a_picture_too(document: Path, tmp_path: Path) -> None:
    picture = tmp_path / "engines.svg"
    *_, last = asked(document, "--compare", "--figure", str(picture))
    assert last[-1] == str(picture)
    drawn = picture.read_text(encoding="utf-8")
    assert all(f"<!-- {word} -->" in drawn for word in ("tuples", "15  Report"))
    with pytest.raises(UsageError, match="--figure"):
        asked(document, "--figure", str(picture))


def test_an_attribute_that_is_not_there_is_named(document: Path) -> None:
    with pytest.raises(UsageError):
        asked(document, "--profile", "spark")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--time", "at"], "tuple 1 has no at"),
        (["--compare", "--figure", "engines.bmp"], "engines.bmp has no suffix of a picture"),
        (["--time", "val", "--value", "time"], "val spans 100,030 units"),
        (["--time", "back"], "tuple 4 has time 1, but the one before it has 3"),
        (["--batch", "back"], "tuple 4 has batch 1, but the one before it has 3"),
    ],
)
def test_what_cannot_be_shown_is_said(options: list[str], told: str, document: Path) -> None:
    text = document.read_text(encoding="utf-8").replace("<val>40<", "<val>100040<")
    for time, back in ((30, 1), (31, 2), (36, 3), (37, 1)):
        text = text.replace(f"<time>{time}<", f"<back>{back}</back><time>{time}<")
    document.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        asked(document, *options)
    assert told in str(raised.value)


def test_a_picture_that_cannot_be_written_is_said(document: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        asked(document, "--compare", "--figure", str(document / "engines.svg"))


def test_a_tuple_at_which_nothing_ticks_has_a_line() -> None:
    rows = [(10, 3, 1), (20, 5, 2), (30, 5, 2), (60, 7, 3)]
    lines = trace(stream(rows), Windows(4, 1), "sum", CORAL8)
    assert [line.cells[2] for line in lines] == ["no: content change, non-empty", "yes", "no: content change",
                                                 "no tick", "yes", "no: content change"]  # fmt: skip


def test_each_dimension_in_which_engines_can_differ_is_named() -> None:
    simultaneous = stream([(10, 4), (20, 6), (30, 6), (40, 6), (50, 6), (60, 8), (70, 10)])
    lines = comparison(simultaneous, Windows(4, 2), "sum", [STREAM, CORAL8, STREAMBASE])
    assert {name for line in lines for name in line.differs} == {"Tick", "Scope", "Report"}


EXPERIMENTS = ROOT / "data"
THIRD = ("experiment3", "--size", "4", "--agg", "sum", "--profile", "coral8")
CORAL8_DESCRIBED = "(start rounded, report content change & non-empty, tick batch)"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("experiment1", "--size", "3", "--slide", "3", "--profile", "streambase"), ["15", "40"]),
        (("experiment1", "--size", "3", "--slide", "3", "--profile", "streambase", "--time", "time11"), ["10", "30"]),
        (("experiment1", "--size", "3", "--slide", "3", "--profile", "streambase", "--time", "time12"), ["20", "50"]),
        (("experiment2", "--profile", "stream"), ["10", "15", "20", "30"]),
        ((*THIRD, "--batch", "moment"), ["10", "150"]),
        ((*THIRD, "--batch", "batch"), ["10", "60", "150"]),
        (("experiment2", "--profile", CORAL8_DESCRIBED), ["10", "15", "20", "30"]),
        (
            ("experiment2", "--profile", "(Start 20, Report window close & every 2, Tick tuple)"),
            ["10", "15", "15", "30"],
        ),
    ],
)
def test_the_inputs_of_the_papers_experiments_give_its_answers(options: tuple[str, ...], expected: list[str]) -> None:
    name, *rest = options
    answers = [line[-1] for line in asked(EXPERIMENTS / f"{name}.xml", *rest)[2:]]
    assert [answer for answer in answers if answer not in ("-", "0")] == expected


def test_an_engine_of_ones_own_stands_beside_the_others(document: Path) -> None:
    heading, *_ = asked(document, "--compare", "--profile", "(start 20, report always, tick time)")
    assert heading == ["tuple", "t", *PROFILES, "own", "differ", "in", "why"]


@pytest.mark.parametrize(
    "engine",
    [
        "spark",
        "(start never, report always, tick time)",
        "(start 0, report sometimes, tick time)",
        "(start 0, report every 0, tick time)",
        "(start 0, report always, tick day)",
        "(report always)",
    ],
)
def test_an_engine_that_cannot_be_read_is_refused_with_one_that_can(document: Path, engine: str) -> None:
    with pytest.raises(UsageError) as raised:
        asked(document, "--profile", engine)
    own = re.search(r"'(\(start .*?\))'", str(raised.value.hint))
    assert own is not None
    asked(document, "--profile", own[1])


@pytest.mark.parametrize(
    ("engine", "own"),
    [
        ("streambase", "(start rounded, report window close & non-empty, tick tuple)"),
        ("coral8", CORAL8_DESCRIBED),
    ],
)
def test_a_query_has_the_windows_of_an_engine_of_ones_own(engine: str, own: str) -> None:
    assert str(windowed(engine)) == str(windowed(own))
    with pytest.raises(UsageError, match="which no query can"):
        windowed(own.replace("rounded", "7"))
    with pytest.raises(UsageError, match="which no query can"):
        windowed("(start before, report always, tick time)")


def windowed(engine: str) -> SecretWindow:
    """The operator of a table with the windows of an engine."""
    scanned = source("s", SourceOptions.parse({"path": "s.xml", "rowTag": "t"}, "time INT NOT NULL, val INT"))
    operator = reported_windows(scanned, f"{engine}, size 5, slide 1, of time").operator
    assert isinstance(operator, SecretWindow)
    return operator
