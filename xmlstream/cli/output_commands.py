"""The commands for what comes after a query, which read its output alone: `xmlstream cat` and `xmlstream wait`.

`wait` waits until the output has closed a part of the result. A scheduler, a script or another job runs it before it
uses the part: exit code 0 says that the part is complete. It polls, so that the query may run on any machine, be
stopped, or not have begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xmlstream.cli.command_line import argument, name_values, option, say
from xmlstream.punct_ns.errors import UsageError, few
from xmlstream.sink.standard_output import StandardOutput

if TYPE_CHECKING:
    from xmlstream.sink.closings import ClosedSoFar

NOT_CLOSED = 4
"""The exit code if the output has not closed it in time."""


def cat(
    outputs: Annotated[
        list[str],
        argument(
            "OUT…",
            "Directory or URL that `xmlstream run -o` wrote; of several, each is continued by the next.",
        ),
    ],
    as_of: Annotated[
        int | None, option("SLICE", "Print the last of them as it stood after this slice.", "--as-of")
    ] = None,
) -> None:
    """Print the committed output of a query as one well-formed document."""
    from xmlstream.cli.concatenation import concatenate

    for output in outputs:
        _require_no_checkpoint(output)
    out = StandardOutput()
    concatenate(outputs[-1], out, outputs[:-1], as_of)
    out.flush()


def wait(
    output: Annotated[str, argument("OUT", "What `xmlstream run -o` names: a directory, a URL or a table.")],
    punctuation: Annotated[
        str | None, argument("PUNCTUATION", "What must be closed, by position, such as '<*, 5>' or '<*, [0,23]>'.")
    ] = None,
    where: Annotated[
        list[str] | None, option("NAME=PATTERN", "What must be closed, by names, such as 'hour=5'; repeatable.")
    ] = None,
    timeout: Annotated[
        str | None, option("TIME", "Give up after this time, such as 10m, with exit code 4; 0s looks once.")
    ] = None,
    every: Annotated[str, option("TIME", "How often to look.")] = "1s",
    schema: Annotated[
        str | None, option("DDL", 'Attributes of an XML output, such as "maxtemp DOUBLE, hour INT", if texts mislead.')
    ] = None,
) -> None:
    """Wait until an output has closed a part of its result: no further row of that part will come.

    Exit code 0 says so. An output that does not exist yet is waited for. It reads and never writes.
    """
    from xmlstream.sink.closings import ClosedSoFar
    from xmlstream.sources.xml.options.formats import seconds

    _require_no_checkpoint(output)
    by_name = name_values(where, "--where", "NAME=PATTERN")
    if (punctuation is None) == (not by_name):
        what = "wait takes a punctuation or --where, and not both"
        raise UsageError(what, hint="xmlstream wait OUT '<*, 5>', or xmlstream wait OUT --where hour=5")
    wanted = punctuation if punctuation is not None else {name: text.strip() for name, text in by_name.items()}
    pause = seconds("every", every)
    limit = None if timeout is None else seconds("timeout", timeout)
    closed = ClosedSoFar(output, wanted, schema)
    if (number := closed_in(closed, pause, limit, lambda: say(f"nothing is closed in {output} yet: waiting"))) is None:
        lacks = f": it lacks {few(closed.missing)}" if closed.missing else ", since it has closed nothing"
        say(f"{output} is not complete{lacks}")
        raise typer.Exit(NOT_CLOSED)
    typer.echo(f"{output} is complete since slice {number}")


def _require_no_checkpoint(output: str) -> None:
    """Refuses a directory that is a query's checkpoint, which never has a result."""
    if (Path(output) / "query.json").is_file() and (Path(output) / "commits").is_dir():
        hint = f"name the output; xmlstream checkpoint {output} shows where it is"
        raise UsageError(f"{output} is a checkpoint, and no output", hint=hint)


def closed_in(
    closed: ClosedSoFar, pause: float, limit: float | None, on_nothing: Callable[[], None] = lambda: None
) -> int | None:
    """The slice with which an output has closed what is wanted; None if it has not within the limit.

    Args:
        closed: The output, which is read anew after each pause.
        pause: The seconds between two looks.
        limit: The most seconds to wait; None for as long as it takes.
        on_nothing: Called once, if nothing is closed at the first look.
    """
    until = None if limit is None else time.monotonic() + limit
    is_first = True
    while True:
        for number in closed.read():
            if not closed.missing:
                return number
        if is_first and closed.schema is None:
            on_nothing()
        is_first = False
        left = pause if until is None else min(pause, until - time.monotonic())
        if left <= 0:
            return None
        time.sleep(left)
