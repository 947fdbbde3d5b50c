"""Help: commands in the order of use, each with an example that runs; options in groups; nothing wider than asked."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from xmlstream.cli.command_line import elsewhere
from xmlstream.cli.commands import IN_ORDER_OF_USE, app, main

Say = Callable[..., tuple[int, str, str]]

UNTIL_INTERRUPTED = {"receive", "monitor"}
NEEDS_JAVA = {"prepare"}
NEEDS_OPEN = {"say", "leave-out"}


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Say:
    def run(*arguments: str) -> tuple[int, str, str]:
        # Below `python -m pytest` the program's name would be that of the module that Python runs.
        monkeypatch.setattr(sys.modules["__main__"], "__package__", None, raising=False)
        monkeypatch.setattr(sys, "argv", ["xmlstream", *arguments])
        with pytest.raises(SystemExit) as raised:
            main()
        return int(str(raised.value.code)), *capfd.readouterr()

    return run


@pytest.mark.parametrize(("name", "hint"), elsewhere().items())
def test_a_command_of_other_programs_leads_to_what_does_that_here(say: Say, name: str, hint: str) -> None:
    code, _, err = say(name, "q.sql")
    assert (code, err) == (2, f"there is no command {name}\n  Hint: {hint}\n")
    for command, options in re.findall(r"xmlstream ([a-z-]+)((?: -[^ ]+| [A-Z][^ ,;]*| '[^']*')*)", hint):
        if not command.startswith("-"):
            code, out, _ = say(command, "--help")
            assert (code, [o for o in re.findall(r" (--?[a-z]+)", options) if not re.search(rf"{o}\b", out)]) == (0, [])


def commands() -> dict[str, str]:
    """The examples by command, in the order of use."""
    examples = [example for group in IN_ORDER_OF_USE.values() for example in group.values()]
    return {example.split()[1]: example for example in examples}


def test_every_command_is_in_the_order_of_use() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    assert {name: command.epilog for name, command in root.commands.items()} == commands()


@pytest.mark.parametrize("group", [[], ["generate"]])
def test_without_a_command_the_help_is_shown(group: list[str], say: Say) -> None:
    code, out, err = say(*group)
    assert (code, err) == (0, "")
    assert (0, out, "") == say(*group, "--help")
    assert out.startswith(f"Usage: {' '.join(['xmlstream', *group])} [OPTIONS] COMMAND")


def test_commands_are_shown_in_the_order_of_use_each_with_its_example(say: Say) -> None:
    _, out, _ = say()
    lines = out.splitlines()
    shown = [line for line in lines if any(line.startswith(f"  {name} ") for name in commands())]
    assert [line.split()[0] for line in shown] == list(commands())
    assert [line.removeprefix("      $ ") for line in lines if line.startswith("      $ ")] == list(commands().values())
    assert [line for line in lines if line.endswith(":")] == [f"{group}:" for group in [*IN_ORDER_OF_USE, "Options"]]


def test_every_example_runs(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for name, example in sorted(commands().items(), key=lambda named: named[0] != "example"):
        words = shlex.split(example)[1:]
        if name in UNTIL_INTERRUPTED | NEEDS_JAVA | NEEDS_OPEN:
            root.commands[name].make_context(name, words[1:])
            continue
        code, out, err = say(*words, *(["--engine", "duckdb"] if name == "run" else []))
        assert code == 0, (example, err)
        assert out or name == "run", example
    assert (tmp_path / "sensors" / "sensor2.xml").exists()


def test_every_option_of_run_is_in_a_group(say: Say) -> None:
    _, out, _ = say("run", "--help")
    titles = [line for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    groups = ["Arguments", "Result", "Query", "Input and state", "Safety", "Engine", "Watching the run", "Options"]
    assert titles == [f"{group}:" for group in [*groups, "Example"]]
    others = out.partition("\nOptions:\n")[2].partition("\nExample:\n")[0]
    assert " ".join(others.split()) == "-h, --help Show this message and exit."


@pytest.mark.parametrize(("columns", "widest"), [(80, 80), (120, 100)])
def test_help_is_as_wide_as_the_terminal_and_no_wider_than_is_read(
    columns: int, widest: int, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ["", *commands()]:
        _, out, _ = say(*name.split(), "--help")
        lines = [line for line in out.splitlines() if "  xmlstream" not in line and "$ xmlstream" not in line]
        assert max(map(len, lines)) <= widest
        assert max(map(len, lines)) > 0.6 * widest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["example", "warehose"], "there is no example warehose\n  Hint: did you mean warehouse?"),
        (["example", "zzz"], "there is no example zzz\n  Hint: there are fees,"),
        (["manul"], "Did you mean 'manual'?"),
        (["run", "q.sql", "--folow"], "--follow"),
        (["run"], "Missing argument 'QUERY.sql'"),
    ],
)
def test_a_mistake_is_answered_with_what_was_meant(arguments: list[str], words: str, say: Say) -> None:
    code, out, err = say(*arguments)
    assert (code, out) == (2, "")
    assert words in err
