"""What drives the slices of a query, by its session: Spark Structured Streaming, or a loop in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sources.xml.options.source import SourceOptions
from xmlstream.runtime.checkpoint import SPARK, Checkpoint
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.started import LaunchedQuery, Process, Shown
from xmlstream.session.engines import is_in_process

if TYPE_CHECKING:
    from xmlstream.runtime.in_process import RunningQuery
    from xmlstream.session.engines import Session


WORK = "work"
"""The folder of a checkpoint for what exceeds the memory while a slice is computed."""

LARGEST_SLICE = 256 << 20
"""The bytes to which the slices of all sources may grow in sum, in this process."""


class InProcessHandle(Shown):
    """A started query that this process drives, with the interface of Spark's `StreamingQuery`."""

    def __init__(self, launched: LaunchedQuery, query: RunningQuery, monitor: str | None = None) -> None:
        super().__init__(launched, monitor)
        self._query = query

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark's is called
        """Whether the query runs."""
        return self._query.isActive

    @property
    def name(self) -> str | None:
        """The name that the user has chosen."""
        return self._query.name


def driver(
    session: Session, readers: Sequence[SourceOptions], process: Process, checkpoint: Checkpoint, settings: Settings
) -> Callable[[], RunningQuery]:
    """What starts the query, which calls `process` for each slice."""
    if not is_in_process(session):
        from xmlstream.runtime.on_spark import on_spark

        return on_spark(session, readers, process, checkpoint.store.path(SPARK), settings)
    from sources.xml.slices.sources_reader import SourcesReader
    from sources.xml.slices.staging import LocalStager
    from xmlstream.runtime.in_process import InProcessQuery, Pace, SliceLoop

    session.engine.spill_to(checkpoint.store.path(WORK))
    reader, stager = SourcesReader(readers, LARGEST_SLICE), LocalStager(readers)
    loop = SliceLoop(reader, stager, checkpoint, process, Pace(settings.follow, settings.every))
    return lambda: InProcessQuery(loop, checkpoint.spark.identity(), settings.name)


def handle_of(launched: LaunchedQuery, query: RunningQuery, monitor: str | None) -> RunningQuery:
    """The handle of a started query; under Spark, a `StreamingQuery` of it."""
    from xmlstream.runtime.in_process import InProcessQuery

    if isinstance(query, InProcessQuery):
        return InProcessHandle(launched, query, monitor)
    from xmlstream.runtime.on_spark import Handle

    return Handle(launched, query, monitor)  # type: ignore[arg-type]
