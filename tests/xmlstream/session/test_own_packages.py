"""Modules of the user's that are called like this project's packages: neither finds the other's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sources.generators.sensors import write_sensors

ROOT = Path(__file__).parents[3]
QUERY = """
CREATE TABLE s (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '{path}', rowTag 'tempdata', schemes 'hour');
SELECT hour, count(*) AS n FROM s GROUP BY hour;
"""
PROGRAM = """
import sys
import xmlstream as xs
from xmlstream.cli.commands import main

spark = xs.open_session("local[1]")
xs.from_sql(spark, {query!r}).run(output={library!r})
sys.argv = ["xmlstream", "run", "query.sql", "-o", {command!r}]
main()
"""


@pytest.fixture
def among_decoys(tmp_path: Path) -> Path:
    """A directory in which everything is called like a package of ours, and fails when it is imported."""
    place = tmp_path / "decoys"
    (place / "operators").mkdir(parents=True)
    for name in ("sources.py", "operators/__init__.py", "punct_ns.py"):
        (place / name).write_text(f"raise ImportError('the decoy {name}')\n")
    return place


def python(*arguments: object, cwd: Path, path: str = str(ROOT)) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_command_does_not_look_into_the_current_directory(among_decoys: Path) -> None:
    for command in ("-m", "xmlstream"), ("-c", "from xmlstream.cli.commands import main; main()"):
        done = python(*command, "check", "none.xml", "--schema", "a INT", "--row-tag", "r", cwd=among_decoys)
        assert "there is no file none.xml" in done.stderr, done.stderr


@pytest.mark.parametrize("first", ["", "{decoys}:"])
def test_a_script_finds_the_packages_beside_this_one(among_decoys: Path, first: str) -> None:
    program = among_decoys / "program.py"
    program.write_text("import xmlstream as xs; print(xs.ByOrder.__module__, xs.UsageError.__module__)")
    path = first.format(decoys=among_decoys) + str(ROOT)
    done = python(program, cwd=among_decoys, path=path)
    assert done.stdout.split() == ["operators.punctuators.order", "punct_ns.errors"], done.stderr


def test_what_was_imported_under_a_name_of_ours_is_named(among_decoys: Path) -> None:
    (among_decoys / "sources.py").write_text("")
    done = python("-c", "import sources, xmlstream", cwd=among_decoys)
    assert f"{among_decoys / 'sources.py'} was imported as sources" in done.stderr


@pytest.mark.parametrize(
    ("wanted", "lacking"),
    [
        ("from sources import load", "load"),
        ("import sources; sources.load()", "load"),
        ("import operators.mine", "mine"),
        ("from operators.mine import load", "mine"),
    ],
)
def test_a_users_module_of_a_name_of_ours_is_named_and_never_ours_instead(
    among_decoys: Path, wanted: str, lacking: str
) -> None:
    (among_decoys / "operators" / "mine.py").write_text("def load(): ...\n")
    (among_decoys / "sources.py").write_text("def load(): ...\n")
    done = python("-c", f"import xmlstream; {wanted}", cwd=among_decoys)
    package = wanted.replace(".", " ").split()[1].rstrip(";")
    theirs = "sources.py" if package == "sources" else "operators/__init__.py"
    assert f"{ROOT / package}, which has no {lacking}; " in done.stderr
    assert f"{theirs} has the same name and cannot be imported, too: rename it" in done.stderr


def test_what_there_is_of_ours_is_imported_beside_a_users_module(among_decoys: Path) -> None:
    program = "import xmlstream; from sources import xml; import operators.project; hasattr(xml, 'none')"
    assert python("-c", program, cwd=among_decoys).stderr == ""


@pytest.mark.spark
@pytest.mark.slow
def test_workers_find_them_wherever_decoys_lie(among_decoys: Path, tmp_path: Path) -> None:
    """Beside the script, in the current directory, and on the path that workers get."""
    write_sensors(tmp_path / "in", sensors=1, hours=2, reports_per_hour=10, seed=5)
    query = QUERY.format(path=tmp_path / "in" / "sensor1.xml")
    program, out = among_decoys / "program.py", {name: str(tmp_path / name) for name in ("library", "command")}
    program.write_text(PROGRAM.format(query=query, **out))
    (among_decoys / "query.sql").write_text(query)
    done = python(program, cwd=among_decoys, path=f"{among_decoys}:{ROOT}")
    assert done.returncode == 0, done.stderr
    written = [(Path(each) / "slice-000000000.xml").read_text() for each in out.values()]
    assert written[0] == written[1]
