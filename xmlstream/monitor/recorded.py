"""The view of a run from its checkpoint: of a run that has ended, was killed, or runs in another process.

It writes nothing and takes no lock. While the query runs, its records come and go: what cannot be read now is read a
moment later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from xmlstream.diagnosis.inspection import plan_of
from xmlstream.monitor.run_view import RunView
from xmlstream.operators.storage.locks import is_locked
from xmlstream.operators.storage.store import Folder, LocalPlace, Store, folder_at, store_at, unseal
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.checkpoint import ENDED, LETTERS
from xmlstream.runtime.commit_log import CommitLog
from xmlstream.runtime.metrics import read_metrics
from xmlstream.runtime.same_query import QueryRecord
from xmlstream.runtime.watching import Watched

LOOK_EVERY_SECONDS = 0.5
"""Time between two checks for new commits."""


def recorded_view(checkpoint: LocalPlace, metrics: Path | str | None = None) -> RunView:
    """Reads the view of a run from its checkpoint, and earlier slices from its metrics file.

    Raises:
        StateError: There is no checkpoint, it has no plan, or it is damaged.
        UsageError: The metrics file cannot be read.
    """
    root, store = plan_of(checkpoint), folder_at(checkpoint)
    records = CommitLog(store.below("commits")).records()
    is_closed = bool(records and records[-1].report.closed)
    view = RunView()
    view.begun(Watched(root, not is_closed, store, _dead_letters(store), store.root.resolve().name))
    first = records[0].slice if records else 0
    for report in read_metrics(metrics) if metrics is not None else ():
        if report.slice < first:
            view.measured(report)
    for i, record in enumerate(records):
        view.committed(record, restored=i == 0)
    view.recorded(**_end(checkpoint, view))
    return view


def _end(checkpoint: LocalPlace, view: RunView) -> dict[str, str]:
    """How and when the last run has ended; empty if one goes on in another process."""
    with suppress(StateError):  # there is no note, or it is being written
        return unseal(folder_at(checkpoint), ENDED)
    if is_locked(folder_at(checkpoint).root):
        return {}
    return {"how": "closed" if view.totals.last.closed else "died", "time": view.totals.time}


def keep_reading(
    checkpoint: LocalPlace, view: RunView, until: threading.Event, refresh: Callable[[], None] = lambda: None
) -> None:
    """Passes new commits to the view until the query's input has ended or `until` is set.

    `refresh` brings the checkpoint up to date if it is a copy.
    """
    log, last = (CommitLog(folder_at(checkpoint).below("commits")), view.totals.last.slice)
    while not view.totals.last.closed and not until.wait(LOOK_EVERY_SECONDS):
        try:
            refresh()
            records = log.records()
        except (StateError, OSError):
            continue
        for record in records:
            if record.slice > last:
                last = record.slice
                view.committed(record)
        view.recorded(**_end(checkpoint, view))
    view.recorded(**_end(checkpoint, view))


def _dead_letters(checkpoint: Folder) -> Store:
    """Place of the dead letters: below the first output with documents, else in the checkpoint."""
    outputs = [output.output for output in QueryRecord.of(checkpoint).outputs]
    home = next((output for output in outputs if output != "-"), checkpoint.address())
    return store_at(home).below(LETTERS)
