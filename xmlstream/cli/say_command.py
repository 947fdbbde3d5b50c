"""The commands `xmlstream say` and `xmlstream leave-out`: a source that is silent for ever is spoken for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from xmlstream.cli.command_line import argument, flag, option
from xmlstream.punct_ns.errors import UsageError, XmlStreamError

if TYPE_CHECKING:
    from xmlstream.operators.storage.store import Folder
    from xmlstream.plan.nodes import Node
    from xmlstream.runtime.checkpoint.commit_log import Commit, Declared

_CHECKPOINT = "Where the query's state lives, a directory."
_BY = "Who declares it; by default the user of this machine."
_WAIT = "Wait until a slice of the run has taken it in, at most so long: 30s, 5m."


def close_for(  # noqa: PLR0913, PLR0917 - one for each option
    checkpoint: Annotated[str, argument("CHECKPOINT", _CHECKPOINT)],
    source: Annotated[
        str,
        argument("SOURCE", "The source, as `explain --checkpoint` names it; SOURCE/DOCUMENT is one of its streams."),
    ],
    punctuation: Annotated[
        str | None, argument("PUNCTUATION", "What it sends no more of, such as '<*, [13,20], *, *>'.")
    ] = None,
    where: Annotated[str | None, option("CONDITION", "The same as a condition: 'hour <= 20'.", "--where")] = None,
    add: Annotated[
        list[str] | None, option("SENDER", "Add a sender to the roster of the source's rule.", "--add")
    ] = None,
    remove: Annotated[list[str] | None, option("SENDER", "Take a sender from the roster.", "--remove")] = None,
    read: Annotated[
        bool, flag("Read the table again that lists the senders of the source's roster.", "--read")
    ] = False,
    by: Annotated[str | None, option("NAME", _BY, "--by")] = None,
    wait: Annotated[str | None, option("TIME", _WAIT, "--wait")] = None,
) -> None:
    """Close values of a source that is silent, as if it had sent the punctuation.

    The run takes it in with its next slice; if none is on, the next one does. It stands behind all that has arrived
    by then. What comes later and matches it is treated as the source's option `ungrammatical` says.
    """
    if [punctuation is None, where is None, not (add or remove), not read].count(False) != 1:
        raise UsageError(
            "there must be either a punctuation, or --where, or --add and --remove, or --read",
            hint=f"xmlstream say {checkpoint} {source} '<*, 17>'; leave-out closes the source for good",
        )

    def made(store: Folder, root: Node, last: Commit | None) -> Sequence[Declared]:
        from xmlstream.runtime.checkpoint.declared import change_rosters, declare

        if read:
            return _read_again(store, root, last, source, by)
        if add or remove:
            return change_rosters(store, root, last, source, add or (), remove or (), by)
        return declare(store, root, last, source, punctuation, where, by)

    _declare(checkpoint, source, wait, made)


def leave_out(
    checkpoint: Annotated[str, argument("CHECKPOINT", _CHECKPOINT)],
    source: Annotated[
        str,
        argument("SOURCE", "The source, as `explain --checkpoint` names it; SOURCE/DOCUMENT is one of its streams."),
    ],
    by: Annotated[str | None, option("NAME", _BY, "--by")] = None,
    wait: Annotated[str | None, option("TIME", _WAIT, "--wait")] = None,
) -> None:
    """Close a source for good: from now on it counts as ended, and what it sends later is too late."""

    def made(store: Folder, root: Node, last: Commit | None) -> Sequence[Declared]:
        from xmlstream.runtime.checkpoint.declared import declare

        return declare(store, root, last, source, by=by)

    _declare(checkpoint, source, wait, made)


def _declare(
    checkpoint: str, source: str, wait: str | None, made: Callable[[Folder, Node, Commit | None], Sequence[Declared]]
) -> None:
    """Makes the notes, prints them, and waits until a run has taken them in if that is wanted."""
    from xmlstream.diagnosis.inspection import plan_of
    from xmlstream.operators.storage.locks import is_locked
    from xmlstream.operators.storage.store import folder_at
    from xmlstream.runtime.checkpoint.commit_log import CommitLog, made_whole
    from xmlstream.runtime.settings import Settings
    from xmlstream.sources.xml.options.formats import seconds

    if Settings((), checkpoint=checkpoint).is_remote:
        raise UsageError(
            f"the checkpoint {checkpoint} is in an object store, where a run does not look for what is declared",
            hint="declare it on the page of the run: xmlstream run … --monitor 0 --operate TOKEN",
        )
    patience = None if wait is None else seconds("--wait", wait)
    store = folder_at(checkpoint)
    root, last = plan_of(store), made_whole(CommitLog(store.below("commits")).records())
    notes = made(store, root, last)
    for note in notes:
        typer.echo(note)
    if not notes:
        typer.echo(f"the table lists the senders of {source} as before")
    elif patience is not None:
        _wait(checkpoint, [note.key for note in notes], patience)
    elif not is_locked(store.root):
        typer.echo("no run of the query is on: the next one takes it in", err=True)


def _read_again(store: Folder, root: Node, last: Commit | None, source: str, by: str | None) -> list[Declared]:
    """Declares what a table that lists the senders of a source says now, read by the engine that can read it."""
    from xmlstream.cli.run import Engines
    from xmlstream.runtime.checkpoint.declared import read_lists
    from xmlstream.runtime.checkpoint.same_query import QueryRecord
    from xmlstream.runtime.loop.query_inputs import members_of
    from xmlstream.session.engines import engine_of

    with Engines(None, {"spark.sql.session.timeZone": QueryRecord.of(store).timeZone}) as engines:
        return engines.first_able(
            lambda session: read_lists(store, root, last, partial(members_of, engine_of(session)), source, by)
        )


def _wait(checkpoint: str, keys: list[str], patience: float) -> None:
    """Waits until no note is left: a run removes it behind its commit."""
    from xmlstream.runtime.checkpoint.declared import DeclaredNotes

    notes, until = DeclaredNotes(checkpoint), time.monotonic() + patience
    while any(note.key in keys for note in notes.waiting()):
        if time.monotonic() >= until:
            hint = "see whether it runs, and reads all that its source has: xmlstream explain --checkpoint"
            raise XmlStreamError(f"no slice of {checkpoint} has taken it in within {patience:g} s", hint=hint)
        time.sleep(0.05)
