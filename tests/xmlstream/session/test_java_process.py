"""Without a Java, or with one that is too old, the error names the package of the system at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xmlstream.punct_ns.errors import UsageError
from xmlstream.session import java_process
from xmlstream.session.java_process import java_command, require_java


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of programs that is all of PATH; its user is not root."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


def program(system: Path, name: str, body: str = "exit 0") -> None:
    path = system / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("programs", "command"),
    [
        ({}, "install it from https://adoptium.net"),
        ({"apt-get": "", "apt-cache": ""}, "sudo apt-get install openjdk-17-jre-headless"),
        (
            {"apt-get": "", "apt-cache": "[ $2 = openjdk-21-jre-headless ]"},
            "sudo apt-get install openjdk-21-jre-headless",
        ),
        ({"apt-get": "", "apt-cache": "exit 1"}, "sudo apt-get install default-jre-headless"),
        ({"apt-get": ""}, "sudo apt-get install default-jre-headless"),
        ({"dnf": ""}, "sudo dnf install java-21-openjdk-headless"),
        ({"apk": ""}, "sudo apk add openjdk17-jre-headless"),
        ({"brew": ""}, "brew install openjdk@17 && export JAVA_HOME=$(brew --prefix openjdk@17)"),
    ],
)
def test_the_command_is_the_systems(system: Path, programs: dict[str, str], command: str) -> None:
    for name, body in programs.items():
        program(system, name, body)
    assert java_command() == command


def test_root_needs_no_sudo(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(system, "dnf")
    assert java_command() == "dnf install java-21-openjdk-headless"


@pytest.mark.parametrize("installed", [True, False])
def test_without_java_one_line_names_the_command_and_the_engine_without_java(
    system: Path, installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(system, "dnf")
    monkeypatch.setattr(java_process, "find_spec", lambda name: object() if installed else None)
    with pytest.raises(UsageError, match="there is no Java") as raised:
        require_java()
    assert raised.value.hint == (
        "Spark needs Java 17 or newer: sudo dnf install java-21-openjdk-headless, or set JAVA_HOME; without Java, "
        "use --engine duckdb" + ("" if installed else " (pip install 'duckdb<2,>=1.4')")
    )


@pytest.mark.parametrize(
    ("release", "too_old"),
    [('JAVA_VERSION="11.0.2"', "11.0.2"), ('JAVA_VERSION="1.8.0_392"', "1.8.0_392"), ('JAVA_VERSION="17"', None),
     ('JAVA_VERSION="21.0.4"', None), ("", None)],
)  # fmt: skip
def test_a_java_that_is_too_old_is_refused_before_it_starts(
    system: Path, release: str, too_old: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (system / "bin").mkdir()
    program(system / "bin", "java")
    (system / "release").write_text(f"{release}\n")
    monkeypatch.setenv("JAVA_HOME", str(system))
    if too_old is None:
        require_java()
        return
    with pytest.raises(UsageError) as raised:
        require_java()
    assert raised.value.what == f"the Java in {system} is version {too_old}"
