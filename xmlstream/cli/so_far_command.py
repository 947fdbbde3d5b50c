"""`xmlstream so-far`: prints what a query would still answer if its input ended now, once or after each commit."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from xmlstream.cli.command_line import argument, flag, option
from xmlstream.punct_ns.errors import StateError

if TYPE_CHECKING:
    from xmlstream.diagnosis.so_far import SoFar

LOOK_EVERY_SECONDS = 0.5
"""Time between two checks for a new commit."""


def so_far(
    checkpoint: Annotated[str, argument("DIR", "The checkpoint of the query, a directory or s3://….")],
    where: Annotated[
        str | None, option("CONDITION", "Only answers for which it is true, in SQL: 'hour = 17'.", "--where")
    ] = None,
    result: Annotated[
        str | None, option("NAME", "Of a query with several results, only the one of this name.", "--result")
    ] = None,
    watch: Annotated[bool, flag("Print them again after each commit, until interrupted.", "--watch")] = False,
    rows: Annotated[int, option("N", "As a table, the most rows of a result.", "--rows")] = 20,
    format_: Annotated[
        Literal["text", "json"], flag("For people, or one line for each result for programs.", "--format")
    ] = "text",
    engine: Annotated[
        str | None,
        option("NAME", "What computes them: spark or duckdb; by default DuckDB, and Spark what only it computes."),
    ] = None,
) -> None:
    """Show what a query would still answer if its input ended now: its open groups, and what is undecided.

    Reads the last commit of a query that runs, was stopped or was killed, and writes nothing. The answers are
    provisional: none of them is in the output.
    """
    from xmlstream.cli.run import Engines
    from xmlstream.diagnosis.inspection import plan_of
    from xmlstream.diagnosis.so_far import results_so_far
    from xmlstream.runtime.checkpoint.commit_log import numbers_in
    from xmlstream.runtime.checkpoint.remote_checkpoint import readable
    from xmlstream.runtime.checkpoint.same_query import QueryRecord

    with readable(checkpoint) as (directory, refresh):
        plan_of(directory)
        commits, last = directory.below("commits"), list[int]()
        with Engines(engine, {"spark.sql.session.timeZone": QueryRecord.of(directory).timeZone}) as engines:
            while True:
                now = numbers_in(commits)[-1:]
                if now != last or not watch:
                    found = engines.first_able(lambda session: results_so_far(directory, session, where, result))
                    last = now
                    _print(found, rows, format_, anew=watch)
                    if not watch or found[0].closed:
                        return
                time.sleep(LOOK_EVERY_SECONDS)
                with suppress(StateError, OSError):  # the query goes on
                    refresh()


def _print(found: Sequence[SoFar], rows: int, format_: str, *, anew: bool) -> None:
    """Prints the answers; `anew` on a terminal that has earlier ones, which are removed."""
    if format_ == "json":
        typer.echo("\n".join(each.json() for each in found))
        return
    if anew and sys.stdout.isatty():
        typer.echo("\x1b[H\x1b[2J\x1b[3J", nl=False)
    tables = ("\n".join([str(each), *in_columns(each.columns(rows), each.tuples.num_rows, rows)]) for each in found)
    typer.echo("\n\n".join(tables))
    if anew:
        typer.echo()


def in_columns(given: Iterable[tuple[list[str], bool]], count: int, most: int) -> Iterator[str]:
    """The first rows in columns, numbers on the right, and how many more there are.

    Args:
        given: Of each column, its name and its first values, and whether they are numbers.
        count: The number of rows.
        most: The most rows that are shown.
    """
    columns = []
    for texts, is_number in given:
        width = max(map(len, texts))
        columns.append([text.rjust(width) if is_number else text.ljust(width) for text in texts])
    for row in zip(*columns, strict=True) if count else ():
        yield f"  {'  '.join(row)}".rstrip()
    if count > most:
        yield f"  and {count - most:,} more"
