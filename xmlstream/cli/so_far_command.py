"""`xmlstream so-far`: prints what a query would still answer if its input ended now, once or after each commit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from xmlstream.cli.command_line import argument, flag, option
from xmlstream.punct_ns.errors import QueryError, StateError

if TYPE_CHECKING:
    from xmlstream.diagnosis.so_far import SoFar
    from xmlstream.operators.storage.store import Folder
    from xmlstream.session.engines import Session

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
    from xmlstream.diagnosis.inspection import plan_of
    from xmlstream.runtime.commit_log import numbers_in
    from xmlstream.runtime.remote_checkpoint import readable

    with readable(checkpoint) as (directory, refresh):
        plan_of(directory)
        commits, last = directory.below("commits"), list[int]()
        with _computing(directory, engine) as computed:
            while True:
                now = numbers_in(commits)[-1:]
                if now != last or not watch:
                    found, last = computed(where, result), now
                    _print(found, rows, format_, anew=watch)
                    if not watch or found[0].closed:
                        return
                time.sleep(LOOK_EVERY_SECONDS)
                with suppress(StateError, OSError):  # the query goes on
                    refresh()


@contextmanager
def _computing(
    directory: Folder, engine: str | None
) -> Iterator[Callable[[str | None, str | None], tuple[SoFar, ...]]]:
    """What computes the answers: the engine of this name, or else the first that is able to; each starts once."""
    from xmlstream.cli.run import Environment, session_in
    from xmlstream.diagnosis.so_far import is_left_to_spark, results_so_far
    from xmlstream.runtime.same_query import QueryRecord

    conf = {"spark.sql.session.timeZone": QueryRecord.of(directory).timeZone}
    names = [engine] if engine else [*(["duckdb"] if find_spec("duckdb") else []), "spark"]
    sessions: dict[str, Session] = {}
    with ExitStack() as opened:

        def computed(where: str | None, result: str | None) -> tuple[SoFar, ...]:
            for name in names[:-1]:
                try:
                    return results_so_far(directory, session(name), where, result)
                except QueryError as error:
                    if not is_left_to_spark(error):
                        raise
                    names.remove(name)
            return results_so_far(directory, session(names[-1]), where, result)

        def session(name: str) -> Session:
            if name not in sessions:
                environment = Environment(conf=conf, engine=name)
                sessions[name] = opened.enter_context(session_in(environment, Console(stderr=True, highlight=False)))
            return sessions[name]

        yield computed


def _print(found: Sequence[SoFar], rows: int, format_: str, *, anew: bool) -> None:
    """Prints the answers; `anew` on a terminal that has earlier ones, which are removed."""
    if format_ == "json":
        typer.echo("\n".join(each.json() for each in found))
        return
    if anew and sys.stdout.isatty():
        typer.echo("\x1b[H\x1b[2J\x1b[3J", nl=False)
    typer.echo("\n\n".join("\n".join([str(each), *_aligned(each, rows)]) for each in found))
    if anew:
        typer.echo()


def _aligned(answers: SoFar, most: int) -> Iterator[str]:
    """The first rows in columns, numbers on the right, and how many more there are."""
    columns = []
    for texts, is_number in answers.columns(most):
        width = max(map(len, texts))
        columns.append([text.rjust(width) if is_number else text.ljust(width) for text in texts])
    count = answers.tuples.num_rows
    for row in zip(*columns, strict=True) if count else ():
        yield f"  {'  '.join(row)}".rstrip()
    if count > most:
        yield f"  and {count - most:,} more"
