"""Staging of a slice's tasks by Spark's workers, as one job: where the loop in process drives a query on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import original_error, transported
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.slices.micro_batches import ReadTask
from xmlstream.sources.xml.slices.staging import Rows

Job: TypeAlias = tuple[ReadTask, Reading]

InTasks: TypeAlias = Callable[[Callable[[Job], Rows], Sequence[Job]], list[Rows]]
"""Applies a function to each job, each in a task of Spark's."""


class SparkStager:
    """Has Spark's workers stage tasks; their files lie where driver and executors see them.

    That is the directory of a slice, or `shared`, the URL of a stage in an object store.
    """

    works_ahead = False

    def __init__(self, in_tasks: InTasks, sources: Sequence[Reading], shared: str | None = None) -> None:
        self._in_tasks, self._sources, self._shared = in_tasks, tuple(sources), shared

    def begin(self, tasks: Sequence[ReadTask], stage: Path) -> SparkStaged:
        """The tasks of a slice; Spark stages them when their rows are needed."""
        place = self._shared or str(stage)
        return SparkStaged(self._in_tasks, [(task, self._sources[task.reader].staging(place)) for task in tasks])

    def close(self) -> None:
        """Ends nothing: the session has started what works."""


@dataclass(frozen=True, slots=True)
class SparkStaged:
    """A slice that Spark's workers stage."""

    in_tasks: InTasks
    jobs: list[Job]

    def rows(self) -> Rows:
        """Returns the staged ranges of all tasks, in order.

        Raises:
            XmlStreamError: The error of a task, as it was raised there.
        """
        if not self.jobs:
            return []
        try:
            return [row for rows in self.in_tasks(_staged, self.jobs) for row in rows]
        except Exception as error:  # noqa: BLE001 - raised again, if possible as the error of the task
            raise original_error(error) or error from None


def _staged(job: Job) -> Rows:
    from xmlstream.sources.xml.slices.stage_writer import stage

    task, reading = job
    with transported():
        return stage(task.ranges, reading)
