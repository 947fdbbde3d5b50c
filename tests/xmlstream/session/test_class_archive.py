"""Which archive of Java's classes is used: the one that fits and is whole, and otherwise none; and how it is made."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from xmlstream.cli.interrupts import Interrupted, Interrupts
from xmlstream.cli.prepare import _locked, archive_classes
from xmlstream.operators.storage.locks import DirectoryLocks
from xmlstream.punct_ns.errors import StateError, UsageError, XmlStreamError
from xmlstream.session.warm_start import (
    DIRECTORY_VARIABLE,
    archive,
    directory,
    fitting,
    jars,
    java_home,
    java_options,
)

RELEASE = 'IMPLEMENTOR="Someone"\nJAVA_VERSION="17.0.99"\nJAVA_VERSION_DATE="2026-01-20"\n'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java and a Spark of a few empty files, and a place for archives."""
    java, jars = tmp_path / "java", tmp_path / "spark" / "jars"
    (java / "bin").mkdir(parents=True)
    (java / "bin" / "java").touch(mode=0o700)
    (java / "release").write_text(RELEASE)
    jars.mkdir(parents=True)
    for jar in ("spark-core_2.13-9.8.7.jar", "spark-core-extras.jar", "another-1.0.jar"):
        (jars / jar).write_text(jar)
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "my archives"))
    (tmp_path / "my archives").mkdir()
    return tmp_path


def keep(machine: Path, content: str = "classes", length: int | None = None) -> Path:
    """An archive that fits, which says that it has some length: its own, by default."""
    path = machine / "my archives" / f"{fitting()}-{len(content) if length is None else length}.jsa"
    path.write_text(content)
    return path


def test_what_fits_is_called_by_the_versions_of_spark_and_java(machine: Path) -> None:
    assert (fitting() or "").startswith("spark-core_2.13-9.8.7-java-17.0.99-")


@pytest.mark.parametrize(
    ("changed", "content"),
    [
        ("java/release", RELEASE.replace("Someone", "Someone else")),
        ("java/release", RELEASE.replace("17.0.99", "17.0.100")),
        ("spark/jars/another-1.0.jar", "of another size"),
        ("spark/jars/new-1.0.jar", ""),
    ],
)
def test_an_archive_of_another_java_or_of_other_jars_is_not_used(machine: Path, changed: str, content: str) -> None:
    path = keep(machine)
    assert archive() == path
    (machine / changed).write_text(content)
    assert archive() is None
    assert not java_options()


def test_a_jar_that_was_only_touched_makes_an_archive_stale(machine: Path) -> None:
    keep(machine)
    os.utime(machine / "spark" / "jars" / "another-1.0.jar", (1, 1))
    assert archive() is None


def test_an_archive_that_was_cut_short_is_not_used(machine: Path) -> None:
    whole = keep(machine, "classes")
    assert archive() == whole
    whole.write_text("class")
    assert archive() is None


def test_the_options_survive_a_path_with_blanks_and_quotes(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = machine / 'a "quoted" \\ place'
    odd.mkdir()
    moved = odd / keep(machine).name
    keep(machine).rename(moved)
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(odd))
    # Spark takes options apart as a shell would.
    assert shlex.split(java_options())[0] == f"-XX:SharedArchiveFile={moved}"


@pytest.mark.parametrize("missing", ["java/release", "spark/jars", "my archives"])
def test_where_something_is_missing_there_are_no_options(machine: Path, missing: str) -> None:
    keep(machine)
    (machine / missing).rename(machine / "elsewhere")
    assert not java_options()


def test_without_java_there_are_no_options(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(machine)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    assert not java_options()


def test_an_empty_variable_means_that_no_archive_is_used(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(machine)
    monkeypatch.setenv(DIRECTORY_VARIABLE, "")
    assert directory() is None
    assert not java_options()
    with pytest.raises(UsageError, match="no directory for the archive"):
        archive_classes(Console(stderr=True))


def test_archives_lie_in_the_virtual_environment_or_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "prefix", "/home/me/.venv")
    assert directory() == Path("/home/me/.venv/class-archives")
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/me/caches")
    assert directory() == Path("/home/me/caches/xmlstream")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert directory() == Path("/home/me/.cache/xmlstream")


def test_a_place_that_cannot_be_written_is_bad_usage(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "file").touch()
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(machine / "file" / "below"))
    with pytest.raises(UsageError, match="cannot be written") as raised:
        archive_classes(Console(stderr=True))
    assert DIRECTORY_VARIABLE in (raised.value.hint or "")


@pytest.mark.spark
def test_java_takes_an_archive_of_another_collector_and_goes_on_without_a_stale_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a small program out of one of Spark's jars, in place of all of Spark."""
    jar = next((jars() or Path()).glob("spark-launcher_*.jar"))
    copied = Path(shutil.copy2(jar, tmp_path))
    made = tmp_path / "classes.jsa"

    def java(*options: str) -> tuple[str, str]:
        command = [str((java_home() or Path()) / "bin" / "java"), *options, "-cp", str(copied)]
        command.append("org.apache.spark.launcher.Main")
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.stdout, ended.stderr

    _, plain = java("-XX:+UseG1GC", f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable")
    assert "Not enough arguments" in plain
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))
    made.rename(tmp_path / f"{fitting()}-{made.stat().st_size}.jsa")
    use = shlex.split(java_options())
    loaded, _ = java("-XX:+UseSerialGC", "-Xlog:class+load", *use)
    assert re.search(r"org\.apache\.spark\.launcher\.Main source: shared objects file", loaded)
    assert java(*use) == ("", plain)
    os.utime(copied, (1, 1))
    assert java(*use) == ("", plain)
    assert "archive" in java(use[0])[0], "else nothing had to be silenced"


@pytest.mark.rest
def test_why_java_makes_no_archive_is_said_and_what_was_there_stays(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME")
    why = "there is no archive to build upon"
    java = machine / "java" / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho Error occurred during initialization of VM\necho {why}\nexit 1\n")
    old = keep(machine)
    (old.parent / ".making-killed" / "new").mkdir(parents=True)
    with pytest.raises(XmlStreamError) as raised:
        archive_classes(Console(stderr=True))
    assert raised.value.where == why
    assert list(old.parent.iterdir()) == [old]


WAITS = """#!/bin/sh
echo $$ >> {pids}
exec sleep 300
"""


@pytest.fixture
def waiting_java(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the processes of a Java that only waits."""
    monkeypatch.delenv("SPARK_HOME")
    pids = machine / "pids"
    (machine / "java" / "bin" / "java").write_text(WAITS.format(pids=pids))
    return pids


def making(machine: Path) -> list[str]:
    """The processes that work in a directory of archives, by their arguments."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = process.read_bytes().replace(b"\0", b" ").decode()
            if f"{machine / 'my archives'}/.making-" in command:
                found.append(command)
    return found


@pytest.mark.sampled(3)
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_or_killed_it_leaves_the_old_archive_and_no_process(
    number: signal.Signals, machine: Path, waiting_java: Path
) -> None:
    old = keep(machine)
    with (machine / "said").open("w") as said:
        process = subprocess.Popen([sys.executable, "-m", "xmlstream", "prepare"], stderr=said, start_new_session=True)
    wait_until(waiting_java.exists)
    assert making(machine)
    process.send_signal(number)
    process.wait(300)
    wait_until(lambda: not making(machine))
    assert archive() == old
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        assert list(old.parent.iterdir()) == [old]
    lines = (machine / "said").read_text().splitlines()
    assert lines[1].startswith("1 of 3: compiling")
    assert lines[3].startswith("2 of 3: running five queries")
    (java,) = map(int, waiting_java.read_text().split())
    wait_until(lambda: not Path(f"/proc/{java}").exists())


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.parametrize("makes", [True, False])
def test_a_second_one_waits_for_the_first_and_takes_its_archive(
    makes: bool, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, place, console = DirectoryLocks(), machine / "my archives", Console(file=io.StringIO())
    first.take(place)

    def end() -> None:
        if makes:
            keep(machine)
        first.release()

    monkeypatch.setattr("xmlstream.cli.prepare.time", SimpleNamespace(sleep=lambda _: end()))
    with _locked(place, Interrupts(), console) as is_first:
        assert is_first is not makes
        with pytest.raises(StateError):
            first.take(place)


def test_one_that_waits_can_be_interrupted(machine: Path) -> None:
    first, signals = DirectoryLocks(), Interrupts()
    first.take(machine)
    signals.note(signal.SIGTERM)
    with pytest.raises(Interrupted), _locked(machine, signals, Console(file=io.StringIO())):
        pass
    first.release()
