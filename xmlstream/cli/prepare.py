"""`xmlstream prepare`: runs queries of every kind once, and archives the loaded Java classes for later starts.

It compiles the Python modules first, so that no timed run compiles any. The timed runs, without and with the archive,
are `xmlstream run` in a process of its own, as users run it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from punct_ns.errors import UsageError, XmlStreamError
from xmlstream.cli.processor_time import Times
from xmlstream.session.java_process import require_java
from xmlstream.session.spark_errors import reason_in
from xmlstream.session.spark_session import JAVA_OPTIONS
from xmlstream.session.warm_start import (
    DIRECTORY_VARIABLE,
    compile_byte_code,
    directory,
    fitting,
    java_quoted,
    whole_name,
)

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
class Prepared:
    """The archive, its size in bytes, and the times of a short run without it and with it."""

    archive: Path
    size: int
    before: Times
    after: Times


def archive_classes(say: Callable[[str], None]) -> Prepared:
    """Makes the archive for this Java and this Spark, replacing an older one; reports each step to `say`.

    Raises:
        UsageError: There is no Java, or no directory for the archive.
        XmlStreamError: This Java cannot write an archive, or does not run with it; the older archive is unchanged.
    """
    place, prefix = directory(), fitting()
    require_java()
    if prefix is None:
        raise UsageError(
            "the version of this Java is unknown", hint="set JAVA_HOME to a JDK or JRE with a `release` file"
        )
    if place is None or os.pathsep in str(place):
        hint = f"set {DIRECTORY_VARIABLE} to a directory, without {os.pathsep} in its path"
        raise UsageError("there is no directory for the archive", hint=hint)
    try:
        place.mkdir(parents=True, exist_ok=True)
        # In the same directory, so that a rename replaces the older archive; Java needs the name of a new file.
        with tempfile.TemporaryDirectory(prefix=".making-", dir=place) as scratch:
            return _prepared(place, prefix, Path(scratch), say)
    except OSError as error:
        hint = f"set {DIRECTORY_VARIABLE} to a directory that can be written"
        raise UsageError(f"{place} cannot be written: {error.strerror or error}", hint=hint) from None


def _prepared(place: Path, prefix: str, scratch: Path, say: Callable[[str], None]) -> Prepared:
    from sources.generators.sensors import write_sensors

    say("compiling Python's modules")
    compile_byte_code()
    write_sensors(scratch, sensors=2, hours=4, reports_per_hour=20, seed=1)
    say("running queries of every kind, to archive the classes that they load")
    (scratch / "new").mkdir()
    made = scratch / "new" / "classes.jsa"
    # Java writes the archive when it ends, later than the Python process that started it. `subprocess.run` waits until
    # Java closes standard error; without --traceback Java's standard error would be a file, and nothing would wait.
    options = f"spark.driver.extraJavaOptions={JAVA_OPTIONS} -XX:ArchiveClassesAtExit={java_quoted(made)}"
    _run(scratch, _MANY, "", "-D", "SLICE=4k", "--traceback", "--conf", options)
    if not made.is_file():
        raise XmlStreamError("this Java cannot write an archive of its classes", hint="OpenJDK 17 and later can")
    size = made.stat().st_size
    named = made.rename(made.with_name(whole_name(prefix, made)))
    say("timing a short run without and with the archive")
    short = ["-D", "SLICE=1m", "-o", str(scratch / "out"), "--overwrite"]
    before, after = (_run(scratch, _SHORT, archives, *short) for archives in ("", str(named.parent)))
    final = named.replace(place / named.name)
    for older in place.glob(f"{prefix}-*.jsa"):
        if older != final:
            older.unlink(missing_ok=True)
    return Prepared(final, size, before, after)


def _run(scratch: Path, query: str, archives: str, *options: str) -> Times:
    """Runs `xmlstream run` with the archives of a directory, and returns its times.

    Raises:
        XmlStreamError: The run failed.
    """
    report = scratch / "times.json"
    timer = [sys.executable, "-m", "xmlstream.cli.processor_time", str(report)]
    command = [
        *timer,
        sys.executable,
        "-m",
        "xmlstream",
        "run",
        "-",
        "-D",
        f"IN={scratch}",
        "-D",
        f"OUT={scratch}",
        *options,
    ]
    environment = {**os.environ, DIRECTORY_VARIABLE: archives}
    ended = subprocess.run(  # noqa: S603 - this program itself
        command, input=_TABLES + query, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        words = "\n".join(ended.stderr.splitlines()[-3:])
        raise XmlStreamError("a trial query failed", where=reason_in(ended.stdout + ended.stderr) or words)
    return Times(**json.loads(report.read_text(encoding="utf-8")))
