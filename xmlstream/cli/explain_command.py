"""`xmlstream explain`: what is known of a query before it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from xmlstream.cli.command_arguments import name_values, query_text


class Format(StrEnum):
    """How an explanation is written."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"
    HTML = "html"


def explain(
    query: Annotated[str, typer.Argument(help="File with the query; - for standard input.", metavar="QUERY.sql")],
    define: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", help="Value of a variable ${NAME} of the query.", metavar="NAME=VALUE"),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Of a run that waits for more input, without an end.")
    ] = False,
    as_written: Annotated[
        bool, typer.Option("--as-written", help="The plan as the query says, without the rules of the optimizer.")
    ] = False,
    plans: Annotated[
        bool, typer.Option("--plans", help="List the ways to join three streams or more, and what each keeps.")
    ] = False,
    format_: Annotated[
        Format, typer.Option("--format", help="For people, for programs, as a picture, or as a page.")
    ] = Format.TEXT,
) -> None:
    """Say of a query, before it runs, when it answers, what it keeps until when, and which promises it lacks."""
    from xmlstream.optimizer.rules import join_choices, optimized
    from xmlstream.safety.explanation import explained
    from xmlstream.sql import script as scripts

    text, called = query_text(query)
    root = scripts.read(text, name_values(define, "-D", "NAME=VALUE"), called).sketch()
    if plans:
        found = join_choices(root)
        typer.echo("\n\n".join(map(str, found)) or "It joins no more than two streams at a time.")
        return
    root = root if as_written else optimized(root)
    typer.echo(explained(root, follow=follow, format_=format_.value, title=called, query=text))
