"""Which archive of Java's classes is used: the one that fits and is whole, and otherwise none; and how it is made."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from punct_ns.errors import UsageError, XmlStreamError
from xmlstream.cli.prepare import archive_classes
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
        archive_classes(print)


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
        archive_classes(print)
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


def test_why_java_makes_no_archive_is_said_and_what_was_there_stays(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME")
    why = "there is no archive to build upon"
    java = machine / "java" / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho Error occurred during initialization of VM\necho {why}\nexit 1\n")
    old = keep(machine)
    with pytest.raises(XmlStreamError) as raised:
        archive_classes(print)
    assert raised.value.where == why
    assert list(old.parent.iterdir()) == [old]
