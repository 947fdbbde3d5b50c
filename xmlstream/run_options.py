"""How the builder's `run` and `start` are told what to do beside the query itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from xmlstream.runner import Settings


class RunOptions(TypedDict, total=False):
    """How a query is run.

    Attributes:
        row_tag: Tag of the result's tuples, `row` by default.
        root_tag: Tag of the result's documents, `rows` by default.
        keep_open: The end of the input does not close the query: a later run goes on.
        metrics: A file that gets one JSON object per slice.
        overwrite: Remove the documents of an earlier query from the output.
        on_slice: Called with the report of each committed slice.
    """

    row_tag: str
    root_tag: str
    keep_open: bool
    metrics: str | Path | None
    overwrite: bool
    on_slice: Callable[[dict[str, Any]], None] | None


def settings(output: str | Path, checkpoint: str | Path | None, *, follow: bool, **options: Any) -> Settings:
    """What the runner is told."""
    metrics = options.pop("metrics", None)
    return Settings(
        output=str(output),
        checkpoint=None if checkpoint is None else str(checkpoint),
        follow=follow,
        metrics=None if metrics is None else str(metrics),
        **options,
    )
