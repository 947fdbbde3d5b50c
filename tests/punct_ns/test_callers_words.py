"""Errors name options as their caller writes them: on the command line, or in a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.pages import PACKAGES, ROOT
from xmlstream.punct_ns.errors import UsageError, in_callers_words, on_command_line

BOTH = {
    "use --moved; otherwise anew": "use moved=True; otherwise anew",
    "name it: --checkpoint DIR": 'name it: checkpoint="DIR"',
    "leave --continues out": "leave continues= out",
    "use --incomplete '<*, *>' with values": 'use incomplete="<*, *>" with values',
    "run with --keep-open or --follow": "run with keep_open=True or start()",
    "`xmlstream receive - --row-tag TAG` makes them": "`xmlstream receive - --row-tag TAG` makes them",
    "brew --prefix openjdk": "brew --prefix openjdk",
}


@pytest.mark.parametrize("text", BOTH)
def test_a_hint_names_the_options_of_its_caller(text: str) -> None:
    error = UsageError("it is wrong", hint=text)
    assert str(error) == f"it is wrong\n  Hint: {BOTH[text]}"
    with on_command_line():
        assert str(error) == f"it is wrong\n  Hint: {text}"
    assert error.hint == text


def _hints() -> set[str]:
    """The texts of the packages that name an option of the command line, outside of what only a command runs."""
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    ours = [p for p in files if not {"cli", "secret", "drawing", "monitor"} & set(p.relative_to(ROOT).parts)]
    quoted = re.compile(r'f?"([^"\n]* --[a-z][^"\n]*|--[a-z][^"\n]*)"')
    return {f"{Path(p).name}: {text}" for p in ours for text in quoted.findall(p.read_text(encoding="utf-8"))}


NO_ARGUMENT = {
    *(
        "--prefix",
        "--format",
        "--operate",
        "--profile",
        "--table",
        "--add",
        "--remove",
        "--read",
        "--rates",
        "--into",
        "--option",
        "--alert-command",
    )
}
"""Options of other programs, and of commands that Python has no function for."""


def test_no_hint_leaves_an_option_of_the_command_line_in_a_program() -> None:
    hints = _hints()
    assert len(hints) > 15
    left = {text: re.findall(r"(?<!\w)--[a-z-]+", re.sub("`[^`]*`", "", in_callers_words(text))) for text in hints}
    assert {text: names for text, names in left.items() if set(names) - NO_ARGUMENT} == {}
