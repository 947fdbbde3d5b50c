"""`help()` lists the options of functions that take them as keywords, with type, default and meaning."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import xmlstream as xs
import xmlstream.testing as xt
from xmlstream.builder import run_options
from xmlstream.builder.reading import COLUMN_OPTIONS, READ_OPTIONS, STREAM_OPTIONS
from xmlstream.builder.run_options import CommonOptions, Keyword, RunOptions
from xmlstream.builder.source_options import BatchOptions, ColumnOptions, ReadOptions
from xmlstream.runtime.options import Options
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import Vocabulary
from xmlstream.sources.xml.options.option_table import OPTIONS, SET_BY_QUERIES
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sql.tables.declaration import ABOVE
from xmlstream.testing.case import CaseOptions

Q = xs.Query
TAKING = [
    *((function, RunOptions) for function in (Q.run, Q.start)),
    *((function, CommonOptions) for function in (Q.slices, Q.to_arrow, Q.to_dataframe, Q.collect, xs.run, xs.start)),
    *((function, CaseOptions) for function in (xt.case, xt.assert_result, xt.assert_cut_independent)),
]


@pytest.mark.parametrize(("function", "options"), TAKING)
def test_each_key_of_the_options_is_a_keyword_with_its_meaning(function: Callable[..., Any], options: type) -> None:
    parameters = inspect.signature(function).parameters
    shown = {name: p for name, p in parameters.items() if name in options.__annotations__}
    assert shown.keys() == get_type_hints(options).keys()
    assert {p.kind for p in shown.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert not [p for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
    _, listed = inspect.getdoc(function).split("\nKeyword Args:\n")  # type: ignore[union-attr]
    for name in shown:
        (line,) = [line for line in listed.splitlines() if line.startswith(f"    {name}: ")]
        assert len(line.split()) > 2, name


@pytest.mark.parametrize(
    ("listed", "options"),
    [(READ_OPTIONS, ReadOptions), (COLUMN_OPTIONS, ColumnOptions), (STREAM_OPTIONS, BatchOptions)],
)
def test_checkers_know_the_options_of_a_source(listed: Sequence[Keyword], options: type) -> None:
    types = get_type_hints(options)
    assert types.keys() == {keyword.name for keyword in listed}
    for keyword in listed:
        known = set(get_args(types[keyword.name]))
        assert known >= {str, type(None)}
        shown = {each.removesuffix("s") for each in keyword.type.split(" | ")} - {"None"}
        assert shown <= {each.__name__ for each in known}, keyword.name


WRONG = {
    'xs.read(session, "in", "a INT", rowTag=3)': 'Argument "rowTag" to "read"',
    'xs.read(session, "in", "a INT", rowTag="r", punctuate=5)': 'Argument "punctuate" to "read"',
    'xs.read(session, "in", "a INT", rowtag="r")': 'did you mean "rowTag"?',
    'query.join(query, "a", how="iner")': 'Argument "how" to "join"',
    'query.run("out", keepopen=True)': "Unexpected keyword argument",
}
RIGHT = """import xmlstream as xs
session = xs.open_session(engine="duckdb")
query = xs.read(session, "in", "a INT", rowTag="r", maxFilesPerSlice=1, **{"path.a": "@a"})
query.join(query, "a", how="left_outer").run("out", keep_open=True)
"""


@pytest.mark.rest
def test_a_checker_finds_what_is_mistyped(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(RIGHT + "\n".join(WRONG) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", "typed.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("typed.py") and "error:" in line]
    begin = RIGHT.count("\n") + 1
    assert [int(line.split(":")[1]) for line in found] == list(range(begin, begin + len(WRONG))), done.stdout
    assert [words in line for line, words in zip(found, WRONG.values(), strict=True)] == [True] * len(WRONG), (
        done.stdout
    )


def test_a_default_that_is_shown_is_the_one_that_holds() -> None:
    shown = {k.name: k.default for k in run_options.RUN_OPTIONS if k.name != "monitor"}  # which opens a port
    tags = {name: shown.pop(name) for name in ("row_tag", "root_tag")}
    given = run_options.settings_of([Target("out", Vocabulary(**tags))], None, follow=False, **shown)
    assert given == run_options.settings_of([Target("out")], None, follow=False)


def test_each_option_of_both_interfaces_is_declared_with_the_settings() -> None:
    declared = {option.name for option in fields(Options)} - {"checkpoint", "follow"}  # which calls have by themselves
    assert declared | {"monitor", "on_slice"} == CommonOptions.__annotations__.keys()


def test_reading_takes_every_option_of_a_source_that_a_user_may_set() -> None:
    users = OPTIONS.keys() - SET_BY_QUERIES - {"path", "schema"} | ABOVE.keys()
    assert {keyword.name for keyword in READ_OPTIONS} == users
    assert inspect.signature(xs.read).parameters.keys() >= users


@pytest.mark.parametrize("keyword", [k for k in READ_OPTIONS if k.name in OPTIONS], ids=lambda k: k.name)
def test_a_default_of_reading_that_is_shown_is_the_one_that_holds(keyword: run_options.Keyword) -> None:
    given = {"path": "a.xml", "rowTag": "a"}
    with_it = given | {keyword.name: str(keyword.default).lower() if keyword.default is True else str(keyword.default)}
    if keyword.default is None:
        assert not OPTIONS[keyword.name].default or keyword.name in {"namespaces", "punctuationNamespace", "timeZone"}
    else:
        attribute = OPTIONS[keyword.name].attribute
        one, other = (SourceOptions.parse(options, "a INT", "user") for options in (with_it, given))
        assert getattr(one, attribute, None) == getattr(other, attribute, None)
