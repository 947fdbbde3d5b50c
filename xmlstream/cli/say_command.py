"""The commands `xmlstream say` and `xmlstream leave-out`: a source that is silent for ever is spoken for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import typer

from xmlstream.cli.command_line import argument, option
from xmlstream.punct_ns.errors import UsageError, XmlStreamError

_CHECKPOINT = "Where the query's state lives, a directory."
_BY = "Who declares it; by default the user of this machine."
_WAIT = "Wait until a slice of the run has taken it in, at most so long: 30s, 5m."


def close_for(
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
    by: Annotated[str | None, option("NAME", _BY, "--by")] = None,
    wait: Annotated[str | None, option("TIME", _WAIT, "--wait")] = None,
) -> None:
    """Close values of a source that is silent, as if it had sent the punctuation.

    The run takes it in with its next slice; if none is on, the next one does. It stands behind all that has arrived
    by then. What comes later and matches it is treated as the source's option `ungrammatical` says.
    """
    if [punctuation is None, where is None, not (add or remove)].count(False) != 1:
        raise UsageError(
            "there must be either a punctuation, or --where, or --add and --remove",
            hint=f"xmlstream say {checkpoint} {source} '<*, 17>'; leave-out closes the source for good",
        )
    _declare(checkpoint, source, punctuation, where, by, wait, add or (), remove or ())


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
    _declare(checkpoint, source, None, None, by, wait)


def _declare(
    checkpoint: str,
    source: str,
    punctuation: str | None,
    where: str | None,
    by: str | None,
    wait: str | None,
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
) -> None:
    from xmlstream.diagnosis.inspection import plan_of
    from xmlstream.operators.storage.locks import is_locked
    from xmlstream.operators.storage.store import folder_at
    from xmlstream.runtime.checkpoint.commit_log import CommitLog, made_whole
    from xmlstream.runtime.checkpoint.declared import change_rosters, declare
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
    notes = (
        change_rosters(store, root, last, source, added, removed, by)
        if added or removed
        else declare(store, root, last, source, punctuation, where, by)
    )
    for note in notes:
        typer.echo(note)
    if patience is not None:
        _wait(checkpoint, [note.key for note in notes], patience)
    elif not is_locked(store.root):
        typer.echo("no run of the query is on: the next one takes it in", err=True)


def _wait(checkpoint: str, keys: list[str], patience: float) -> None:
    """Waits until no note is left: a run removes it behind its commit."""
    from xmlstream.runtime.checkpoint.declared import DeclaredNotes

    notes, until = DeclaredNotes(checkpoint), time.monotonic() + patience
    while any(note.key in keys for note in notes.waiting()):
        if time.monotonic() >= until:
            hint = "see whether it runs, and reads all that its source has: xmlstream explain --checkpoint"
            raise XmlStreamError(f"no slice of {checkpoint} has taken it in within {patience:g} s", hint=hint)
        time.sleep(0.05)
