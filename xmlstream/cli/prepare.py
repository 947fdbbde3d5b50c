"""`xmlstream prepare`: runs queries of every kind once, and archives the loaded Java classes for later starts.

It compiles the Python modules first. A short run with the archive, in a process of its own, shows that this Java takes
it.

An archive is made in a directory beside its place and then renamed. Interrupted, `prepare` ends its processes and
removes that directory; killed, it leaves the directory to the next `prepare`. Only one works in a place at a time.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from xmlstream.cli import interrupts
from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.locks import DirectoryLocks
from xmlstream.punct_ns.errors import StateError, UsageError, XmlStreamError
from xmlstream.session.spark_errors import reason_in
from xmlstream.session.spark_session import JAVA_OPTIONS, require_spark
from xmlstream.session.warm_start import DIRECTORY_VARIABLE, directory, fitting, java_quoted, whole_name

_TABLES = "".join(
    f"CREATE TABLE s{n} (sid STRING, hour INT, min INT, currtmp DOUBLE) USING punctuated_xml OPTIONS "
    f"(path '${{IN}}/sensor{n}.xml', rowTag 'tempdata', schemes 'hour', maxBytesPerSlice '${{SLICE}}');\n"
    for n in (1, 2)
)

_SHORT = "SELECT hour, MAX(currtmp) AS maxtemp FROM s1 GROUP BY hour"

_MANY = "".join(
    f"CREATE TABLE r{number} USING punctuated_xml OPTIONS (path '${{OUT}}/{number}', rowTag 'row');\n"
    f"INSERT INTO r{number} {query};\n"
    for number, query in enumerate(
        (
            "SELECT hour, MAX(currtmp) AS m, AVG(currtmp) AS a FROM (SELECT currtmp, hour FROM s1 UNION "
            "SELECT currtmp, hour FROM s2) GROUP BY hour",
            "SELECT s1.hour, s1.min, s1.currtmp AS a, s2.currtmp AS b FROM s1 JOIN s2 ON s1.hour = s2.hour AND "
            "s1.min = s2.min WHERE s1.currtmp > s2.currtmp",
            "SELECT s1.hour, COUNT(s2.min) AS n FROM s1 LEFT JOIN s2 ON s1.hour = s2.hour GROUP BY s1.hour",
            "SELECT DISTINCT sid, hour FROM s1 WHERE min % 10 = 0",
            "SELECT hour, min FROM s1 EXCEPT SELECT hour, min FROM s2 WHERE currtmp < 65",
        )
    )
)


@dataclass(frozen=True, slots=True)
class PreparedArchive:
    """The archive, and its size in bytes."""

    archive: Path
    size: int

    def __str__(self) -> str:
        """What was made."""
        return f"{self.archive}: {self.size / 1e6:.0f} MB"


def archive_classes(console: Console) -> PreparedArchive | None:
    """Makes the archive for this Java and this Spark, replacing an older one; reports each step on the console.

    Returns:
        None if another process has made the archive meanwhile.

    Raises:
        UsageError: There is no Java, or no directory for the archive.
        XmlStreamError: This Java cannot write an archive, or does not run with it; the older archive is unchanged.
        Interrupted: A signal came; all processes have ended, and the older archive is unchanged.
    """
    place, prefix = directory(), fitting()
    require_spark()
    if prefix is None:
        raise UsageError(
            "the version of this Java is unknown", hint="set JAVA_HOME to a JDK or JRE with a `release` file"
        )
    if place is None or os.pathsep in str(place):
        hint = f"set {DIRECTORY_VARIABLE} to a directory, without {os.pathsep} in its path"
        raise UsageError("there is no directory for the archive", hint=hint)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with interrupts.noted_signals() as signals, _locked(place, signals, console) as is_first:
            if not is_first:
                return None
            for left in place.glob(f"{_SCRATCH}*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            # In the same directory, so that a rename replaces the older archive; Java needs the name of a new file.
            with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=place, ignore_cleanup_errors=True) as scratch:
                return _Preparation(Path(scratch), signals, console).made(place, prefix)
    except OSError as error:
        hint = f"set {DIRECTORY_VARIABLE} to a directory that can be written"
        raise UsageError(f"{place} cannot be written: {error.strerror or error}", hint=hint) from None


_SCRATCH = ".making-"

_LOOK_SECONDS = 0.2

_GRACE_SECONDS = 15.0
"""Time for Java and Python to end after a signal, before they are killed."""


@contextmanager
def _locked(place: Path, signals: interrupts.Interrupts, console: Console) -> Iterator[bool]:
    """Locks a directory of archives; yields False if another process has made an archive while this one waited."""
    before, locks, waits = _state(place), DirectoryLocks(), False
    while True:
        try:
            locks.take(place)
            break
        except StateError:
            if not waits:
                console.print(f"another `xmlstream prepare` works in {place}: waiting for its end", soft_wrap=True)
            waits = True
            _require_no_signal(signals)
            time.sleep(_LOOK_SECONDS)
    try:
        yield _state(place) == before
    finally:
        locks.release()


def _state(place: Path) -> list[tuple[str, int]]:
    return sorted((path.name, path.stat().st_mtime_ns) for path in place.glob("*.jsa"))


def _require_no_signal(signals: interrupts.Interrupts) -> None:
    if signals.number is not None:
        raise interrupts.Interrupted(signals.number)


class _Preparation:
    """The steps in which an archive is made in a directory, each in processes of its own."""

    STEPS = 3

    def __init__(self, scratch: Path, signals: interrupts.Interrupts, console: Console) -> None:
        self._scratch, self._signals, self._console = scratch, signals, console
        self._step = 0

    def made(self, place: Path, prefix: str) -> PreparedArchive:
        """Makes the archive and moves it to its place."""
        from xmlstream.sources.generators.sensors import write_sensors

        scratch = self._scratch
        self._console.print(
            f"archiving the Java classes that Spark loads, in {place}; a minute, longer on a busy machine",
            soft_wrap=True,
        )
        compiling = "from xmlstream.session.warm_start import compile_byte_code; compile_byte_code()"
        self._step_of("compiling Python's modules", ["-c", compiling])
        write_sensors(scratch, sensors=2, hours=4, reports_per_hour=20, seed=1)
        (scratch / "new").mkdir()
        made = scratch / "new" / "classes.jsa"
        # Java writes the archive when it ends, later than the Python process that started it, and is waited for.
        # Without --traceback Java's standard error would be a file that is removed before.
        options = f"spark.driver.extraJavaOptions={JAVA_OPTIONS} -XX:ArchiveClassesAtExit={java_quoted(made)}"
        many = ["-D", "SLICE=4k", "--traceback", "--conf", options]
        self._run("running five queries, and archiving the classes that they load", _MANY, "", many)
        if not made.is_file():
            raise XmlStreamError("this Java cannot write an archive of its classes", hint="OpenJDK 17 and later can")
        size = made.stat().st_size
        named = made.rename(made.with_name(whole_name(prefix, made)))
        short = ["-D", "SLICE=1m", "-o", str(scratch / "out"), "--overwrite"]
        self._run("trying a short run with the archive", _SHORT, str(named.parent), short)
        final = named.replace(place / named.name)
        for older in place.glob(f"{prefix}-*.jsa"):
            if older != final:
                older.unlink(missing_ok=True)
        return PreparedArchive(final, size)

    def _run(self, what: str, query: str, archives: str, options: Sequence[str]) -> None:
        """Runs `xmlstream run` with the archives of a directory."""
        file = self._scratch / "query.sql"
        file.write_text(_TABLES + query, encoding="utf-8")
        variables = ["-D", f"IN={self._scratch}", "-D", f"OUT={self._scratch}"]
        self._step_of(what, ["-m", "xmlstream", "run", str(file), *variables, *options], archives)

    def _step_of(self, what: str, arguments: Sequence[str], archives: str = "") -> None:
        """Runs Python as a step, until all that it has started has ended.

        Raises:
            XmlStreamError: The process failed.
            Interrupted: A signal came, and all processes of the step have ended.
        """
        self._step += 1
        log = self._scratch / "log"
        command = [sys.executable, "-m", "xmlstream.cli.adopting", sys.executable, *arguments]
        environment = {**os.environ, DIRECTORY_VARIABLE: archives}
        with _shown(self._console, f"{self._step} of {self.STEPS}: {what}"), log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - this program itself
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
            self._wait(process)
        if process.returncode:
            text = log.read_text(encoding="utf-8", errors="replace")
            words = "\n".join(text.splitlines()[-3:])
            raise XmlStreamError(f"{what} failed", where=reason_in(text) or words)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Waits for a process; if a signal came, ends it with all that it has started."""
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
                return
            if self._signals.number is not None:
                process.terminate()
                until = time.monotonic() + _GRACE_SECONDS
                while process.poll() is None and time.monotonic() < until and not self._signals.at_once:
                    time.sleep(_LOOK_SECONDS)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                _require_no_signal(self._signals)


@contextmanager
def _shown(console: Console, what: str) -> Iterator[None]:
    """Shows a step while it lasts, in a terminal with a clock, and how long it took."""
    begun = time.monotonic()
    if console.is_terminal:
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True) as progress:
            progress.add_task(what, total=None)
            yield
    else:
        console.print(what, soft_wrap=True)
        yield
    console.print(f"{what}: {time.monotonic() - begun:.0f} s", soft_wrap=True)
