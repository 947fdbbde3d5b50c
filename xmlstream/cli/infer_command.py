"""`xmlstream infer`: a CREATE TABLE for documents as they are."""

from __future__ import annotations

from typing import Annotated

import typer

from xmlstream.cli.command_arguments import name_values


def infer(
    file: Annotated[str, typer.Argument(help="The documents: a file, a directory, a glob.", metavar="FILE")],
    row_tag: Annotated[
        str | None, typer.Option(help="Tag of the tuples; without it, what repeats and holds most.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="An option of the source, as in CREATE TABLE.", metavar="NAME=VALUE"),
    ] = None,
    sample: Annotated[str, typer.Option(help="How much is looked at, such as 512k or 64m.", metavar="SIZE")] = "4m",
) -> None:
    """Print a CREATE TABLE for documents: columns, types and paths, and what they may promise, as guesses.

    The beginning of the documents is looked at. Other elements that repeat are named; --row-tag chooses one.
    """
    from sources.xml.inference.proposal import proposal
    from sources.xml.options.values import size
    from xmlstream.sql.create_table import create_table

    given = name_values(option, "--option", "NAME=VALUE")
    typer.echo(create_table(proposal(file, row_tag, given, size=size("--sample", sample))))
