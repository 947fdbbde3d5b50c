"""The command line that all commands share: how help looks, arguments that several take, and lines on standard error.

`--help` shows commands and options in groups (typer's `rich_help_panel`), each command with an example: its `epilog`.
It is plain text without frames, so that it can be copied and searched, and reads the same in a terminal and in a file.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from xmlstream.punct_ns.errors import UsageError, reason

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Settings of all commands."""


OPERATE = "XMLSTREAM_OPERATE"
"""Environment variable with the token to operate, so that it stands in no command line."""


def token_to_operate(given: str | None) -> str | None:
    """The token of an option: itself, or the content of a file after an `@`; without the option, of the environment.

    Raises:
        UsageError: The file cannot be read.
    """
    text = os.environ.get(OPERATE) if given is None else given
    if text is None or not text.startswith("@"):
        return text or None
    try:
        return Path(text[1:]).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        what = f"the token to operate cannot be read from {text[1:]}: {reason(error)}"
        raise UsageError(what, hint=f"write --operate @FILE, or set {OPERATE}") from None


def look_for_garbage() -> None:
    """Lets Python look for garbage again, which a start has switched off, but never among what the start has made."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


class Command(TyperCommand):
    """A command whose options are shown in groups, and its example below them."""

    def invoke(self, ctx: Any) -> Any:
        """Calls the command; `run` itself looks for garbage as its slices begin."""
        if self.name != "run":
            look_for_garbage()
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options, group by group."""
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the example."""
        if self.epilog:
            formatter.write(f"\nExample:\n  {self.epilog}\n")


class Commands(TyperGroup):
    """A group of commands, shown in groups and in the order of use; without a command it shows them and ends."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands, group by group, and the options behind them."""
        commands = [command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))]
        width = max(len(command.name or "") for command in commands)
        for panel, members in in_panels(commands, "Commands"):
            with formatter.section(panel):
                for command in members:
                    what = (command.help or "").partition("\n\n")[0].replace("\n", " ")
                    formatter.write_dl([(f"{command.name:<{width}}", what)])
                    if command.epilog:
                        formatter.write(f"{'':{formatter.current_indent + 4}}$ {command.epilog}\n")
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes nothing: the examples are those of the commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command; a file in its place is a query that was meant to run."""
        if args and self.get_command(ctx, args[0]) is None:
            known = f"xmlstream run {args[0]}" if args[0].endswith(".sql") else elsewhere().get(args[0].lower())
            if known:
                raise UsageError(f"there is no command {args[0]}", hint=known)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Shows the help if there are no arguments."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


_ELSEWHERE = {
    "describe inspect list ls ps state stats status": "xmlstream checkpoint STATE shows what is in a checkpoint, and "
    "xmlstream monitor --checkpoint STATE serves its page",
    "continue deploy exec execute follow query restart resume sql start stream submit": "xmlstream run QUERY.sql "
    "--follow --checkpoint STATE -o OUT begins a query, and goes on with one that has stopped",
    "cancel end kill pause stop": "Ctrl-C, or kill PID, ends a run after its slice; the same command goes on with it",
    "analyse analyze dry-run lint plan test validate verify": "xmlstream explain QUERY.sql --follow judges a query, "
    "xmlstream check QUERY.sql its streams",
    "head output print read show tail": "xmlstream cat OUT prints what a query has written",
    "dashboard serve ui watch web": "xmlstream monitor --checkpoint STATE serves the page of a run",
    "create declare init new schema": "xmlstream infer FILE prints a CREATE TABLE for documents",
    "version": "xmlstream --version",
    "docs help man": "xmlstream --help lists the commands, xmlstream manual has the pages",
    "close punctuate": "xmlstream say STATE SOURCE '<…>' closes values of a source, "
    "xmlstream leave-out STATE SOURCE all of it",
}
"""Names of commands that other programs have, and what does that here."""


def elsewhere() -> dict[str, str]:
    """What to write in the place of a command that other programs have."""
    return {name: hint for names, hint in _ELSEWHERE.items() for name in names.split()}


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    for panel, members in in_panels(command.get_params(ctx), "Options"):
        records = (member.get_help_record(ctx) for member in members)
        # An argument is a word of the usage line, without its type.
        rows = [(re.sub(r"^(\w\S*) <.*>$", r"\1", what), text) for what, text in filter(None, records)]
        if rows:
            with formatter.section(panel):
                formatter.write_dl(rows)


def in_panels(members: Sequence[Any], default: str) -> Iterator[tuple[str, list[Any]]]:
    """The members by their group, in the order of their first members; those of no group are the last."""

    def panel(member: Any) -> str:
        is_argument = getattr(member, "param_type_name", None) == "argument"
        return getattr(member, "rich_help_panel", None) or ("Arguments" if is_argument else default)

    for name in sorted(dict.fromkeys(map(panel, members)), key=lambda name: name == default):
        yield name, [member for member in members if panel(member) == name]


def argument(metavar: str, text: str) -> Any:
    """An argument of a command, by its name and a sentence in its help."""
    return typer.Argument(help=text, metavar=metavar)


def option(metavar: str, text: str, *names: str, group: str | None = None) -> Any:
    """An option with a value; it has the name of its parameter if none is given."""
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=group)


def flag(text: str, *names: str, group: str | None = None) -> Any:
    """An option without a value, or with one whose form its type says."""
    return typer.Option(*names, help=text, rich_help_panel=group)


def query_text(query: str) -> tuple[str, str]:
    """Returns the text of a query and the name that messages use for it.

    Raises:
        UsageError: The file cannot be read.
    """
    if query == "-":
        return sys.stdin.read(), "standard input"
    try:
        return Path(query).read_text(encoding="utf-8"), query
    except OSError as error:
        is_begun = (Path(query) / "query.json").is_file()
        hint = f"it is a checkpoint: xmlstream explain --checkpoint {query}" if is_begun else "name a file of SQL"
        raise UsageError(f"the query {query} cannot be read: {reason(error)}", hint=hint) from None
    except UnicodeDecodeError:
        raise UsageError(f"the query {query} is not UTF-8 text") from None


def say(text: str) -> None:
    """Prints a line on standard error."""
    Console(stderr=True, highlight=False).print(Text(text), soft_wrap=True)


def warn(warnings: Iterable[str]) -> None:
    """Prints warnings on standard error."""
    for warning in warnings:
        say(f"warning: {warning}")


def name_values(texts: list[str] | None, option: str, form: str) -> dict[str, str]:
    """Returns the NAME=VALUE pairs of an option that may be repeated.

    Raises:
        UsageError: A pair has no name, or no equals sign.
    """
    pairs = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"{option} {text}: not NAME=VALUE", hint=f"{option} {form}")
        pairs[name.strip()] = value
    return pairs
