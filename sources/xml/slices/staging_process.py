"""A process of its own that stages tasks: a plain Python, which shares nothing with the process that started it.

Not `multiprocessing`: a fork copies locks that threads hold, and a spawned process runs the user's own script again.
The process reads tasks from its standard input and writes their rows, or the error, to its standard output, as pickles
with their lengths before them. It ends when its standard input is closed, which happens when the process that started
it ends, in whatever way. It is in a session of its own: Ctrl-C in a terminal is for the process that started it.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import IO, Any

from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

_LENGTH = struct.Struct(">Q")
_READY = "ready"

_END_SECONDS = 10.0
"""Time for a process that has closed its output to end, so that an error can say how."""

_PROGRAM = "import sys; sys.path[:] = {path!r}; from xmlstream.sources.xml.slices.staging_process import serve; serve()"


class StagingProcess:
    """A process that stages one task after the other; it is started at once, and is ready somewhat later."""

    def __init__(self) -> None:
        program = _PROGRAM.format(path=[entry for entry in sys.path if entry])
        self._process = subprocess.Popen(  # noqa: S603 - this Python, and the program above
            [sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    @property
    def pid(self) -> int:
        """The number of the process in the operating system."""
        return self._process.pid

    def is_ready(self) -> bool:
        """Waits until the process can take a task; False if it has ended before."""
        assert self._process.stdout is not None
        try:
            return bool(_received(self._process.stdout) == _READY)
        except (OSError, ValueError):
            return False

    def stage(self, ranges: Sequence[ByteRange], reading: Reading) -> list[StagedRange]:
        """Returns a task's staged ranges (`xmlstream.sources.xml.slices.stage_writer.stage`); for one caller at a time.

        Raises:
            XmlStreamError: As `stage` raised it in the process; or the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = None
        try:
            _send(self._process.stdin, (tuple(ranges), reading))
            answer = _received(self._process.stdout)
        except (OSError, ValueError):
            pass  # the process has ended, or is being ended
        if answer is None:
            raise XmlStreamError(
                f"a process that parses documents has ended{self._manner()}",
                hint="the system may have ended it for want of memory; a smaller maxBytesPerPartition needs less",
            )
        rows, error = answer
        if error is not None:
            raise error
        found: list[StagedRange] = rows
        return found

    def end(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # what was to be written has no reader any more
                    continue

    def _manner(self) -> str:
        try:
            status = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return ""
        return f" by signal {-status}" if status < 0 else f" with status {status}"


def serve() -> None:
    """Stages the tasks that standard input has, until it is closed; the program of the process."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get among the results
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, tasks), daemon=True).start()

    from xmlstream.sources.xml.parser.range_parser import freeze_imports
    from xmlstream.sources.xml.slices.stage_writer import LearntOf, stage

    freeze_imports()
    _send(results, _READY)
    learnt: LearntOf = {}
    while True:
        ranges, reading = tasks.get()
        try:
            answer: tuple[Any, Any] = stage(ranges, reading, learnt), None
        except Exception as error:  # noqa: BLE001 - raised again in the process that waits
            answer = None, _portable(error)
        _send(results, answer)


def _read(requests: IO[bytes], tasks: queue.SimpleQueue[Any]) -> None:
    while (task := _received(requests)) is not None:
        tasks.put(task)
    os._exit(0)  # even in the middle of a task: its caller has gone


def _portable(error: Exception) -> Exception:
    """The error, if it can be pickled, with the place where it was raised if that is not for users to know."""
    if not isinstance(error, XmlStreamError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made in the same line
    except Exception:  # noqa: BLE001 - an error may refuse in any way
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _send(stream: IO[bytes], what: object) -> None:
    made = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(made)) + made)
    stream.flush()


def _received(stream: IO[bytes]) -> Any:
    """The next object of a stream; None at its end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    made = stream.read(length)
    # Only this module's processes write here, through pipes that nothing else has.
    return pickle.loads(made) if len(made) == length else None  # noqa: S301
