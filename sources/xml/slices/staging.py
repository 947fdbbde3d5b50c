"""Staging of a slice's tasks on this machine: in this process, and beside it in worker processes while there is much.

A worker process takes as long to start as parsing tens of megabytes. So this process stages tasks itself, and measures
how fast it is; workers are started once what is left of a slice would take longer than `WORTH`, and are kept. From then
on the next slice can be staged while the present one is computed (`begin`). With one core there is no worker.

The tasks of a slice wait in one queue. Workers take from it, and so does this process while it waits for the slice.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.slices.micro_batches import ReadTask, StagedRange
from xmlstream.sources.xml.slices.staging_process import StagingProcess
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

if TYPE_CHECKING:
    from xmlstream.sources.xml.slices.stage_writer import LearntOf

WORTH = 0.8
"""The seconds that the rest of a slice takes from which on workers are started: a start takes 0.4 s of a processor."""

Rows = list[StagedRange]


class Staged(Protocol):
    """A slice that is being staged."""

    def rows(self) -> Rows:
        """Returns the staged ranges of all tasks, in order, once they are there; raises the first error of a task."""


class Stager(Protocol):
    """What stages the tasks of slices."""

    @property
    def works_ahead(self) -> bool:
        """Whether a slice can be staged while another is computed."""

    def begin(self, tasks: Sequence[ReadTask], stage: Path) -> Staged:
        """Begins to stage the tasks of a slice, with their files in the directory `stage`."""

    def close(self) -> None:
        """Ends what was started; what was begun is given up."""


class LocalStager:
    """Stages tasks in this process and in worker processes.

    Args:
        sources: The readings of the sources that tasks name by their index.
        cores: The number of processes that work at most, this one included; by default the cores of this process.
        worth: As `WORTH`.
        held: The most tuples of a task that this process holds in memory, where it computes them, too.
    """

    def __init__(
        self, sources: Sequence[Reading], cores: int | None = None, worth: float = WORTH, held: int = 0
    ) -> None:
        self._sources = tuple(sources)
        self._workers = (len(os.sched_getaffinity(0)) if cores is None else cores) - 1
        self._worth, self._held = worth, held
        self._waiting: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._processes: list[StagingProcess] = []
        self._has_started = self._has_closed = False
        self._bytes, self._seconds = 0, 0.0
        self._learnt: LearntOf = {}
        self._reading = cache(lambda reader, stage: self._sources[reader].staging(stage))

    @property
    def works_ahead(self) -> bool:
        """Whether there are workers."""
        return bool(self._processes)

    def begin(self, tasks: Sequence[ReadTask], stage: Path) -> LocalStaged:
        """Has workers, if there are any, begin with the tasks of a slice."""
        jobs = [_Job(task, self._reading(task.reader, str(stage))) for task in tasks]
        with self._changed:
            self._waiting += jobs
            self._changed.notify_all()
        return LocalStaged(self, jobs)

    def close(self) -> None:
        """Ends the workers; slices that were begun fail."""
        with self._changed:
            self._has_closed = True
            while self._waiting:
                self._waiting.popleft().done.cancel()
            self._changed.notify_all()
            processes, self._processes = self._processes, []
        for process in processes:
            process.end()

    def take(self, own: Sequence[_Job]) -> _Job | None:
        """Takes the next of these jobs from the queue; None if none is left."""
        with self._changed:
            job = next((job for job in self._waiting if job in own), None)
            if job is not None:
                self._waiting.remove(job)
            return job

    def give_up(self, own: Sequence[_Job]) -> None:
        """Removes from the queue what is left of these jobs."""
        while (job := self.take(own)) is not None:
            job.done.cancel()

    def stage_here(self, job: _Job) -> None:
        """Stages a task in this process; starts workers if what waits is worth it."""
        from xmlstream.sources.xml.slices.stage_writer import stage

        started = time.perf_counter()
        job.run(partial(stage, learnt=self._learnt, held=self._held))
        self._bytes += job.size
        self._seconds += time.perf_counter() - started
        left = sum(other.size for other in self._waiting)
        if left and not self._has_started and left * self._seconds > self._worth * self._bytes:
            self._start()

    def _start(self) -> None:
        self._has_started = self._workers > 0
        for number in range(self._workers):
            threading.Thread(target=self._serve, name=f"staging-{number}", daemon=True).start()

    def _serve(self) -> None:
        """Has one worker process stage one job after the other, until all is closed."""
        process = StagingProcess()
        with self._changed:
            if self._has_closed:
                process.end()
                return
            self._processes.append(process)
        # A task that it took earlier would wait for its imports, and this process for the task.
        if not process.is_ready():
            return
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._has_closed)
                if self._has_closed:
                    return
                job = self._waiting.popleft()
            job.run(process.stage)


class _Job:
    """A task with the reading of its source, and its staged ranges once they are there."""

    def __init__(self, task: ReadTask, reading: Reading) -> None:
        self._task, self._reading = task, reading
        self.size = sum(range_.length for range_ in task.ranges)
        self.done: Future[Rows] = Future()

    def run(self, stage: Callable[[Sequence[ByteRange], Reading], Rows]) -> None:
        """Has the rows made by a function, or its error."""
        try:
            self.done.set_result(stage(self._task.ranges, self._reading))
        except BaseException as error:  # noqa: BLE001 - raised where the rows are waited for
            self.done.set_exception(error)


class LocalStaged:
    """A slice that is being staged on this machine."""

    def __init__(self, stager: LocalStager, jobs: Sequence[_Job]) -> None:
        self._stager, self._jobs = stager, jobs

    def rows(self) -> Rows:
        """Returns the rows of all tasks, in order; stages in this process what no worker has taken.

        Raises:
            XmlStreamError: The first error of a task, as it was raised there; tasks after it are given up.
        """
        try:
            while not self._has_failed() and (job := self._stager.take(self._jobs)) is not None:
                self._stager.stage_here(job)
        finally:
            self._stager.give_up(self._jobs)
        # Tasks leave the queue in order, so that one that was given up comes after the one that failed.
        return [row for job in self._jobs for row in job.done.result()]

    def _has_failed(self) -> bool:
        return any(job.done.done() and job.done.exception() is not None for job in self._jobs)
