"""What the documentation shows is run, in its order, from the wheel that is published."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from email import message_from_string
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.harness.pages import EXAMPLES, PACKAGES, PAGES, ROOT, blocks, copied, pictures, text
from tests.tools import commands
from xmlstream.punct_ns.errors import DISTRIBUTION
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.session import warm_start
from xmlstream.sources.generators.sensors import write_sensors
from xmlstream.sql import script

BESIDE = """
import operators, punct_ns, sources
import xmlstream as xs
from pyspark.sql.functions import udf

query = (
    "CREATE TABLE s (sid STRING, hour INT, min INT, currtmp DOUBLE) USING punctuated_xml "
    "OPTIONS (path 'in/sensor1.xml', rowTag 'tempdata', schemes 'hour');"
    "SELECT hour, count(*) AS n FROM s GROUP BY hour"
)
assert operators.MINE and punct_ns.MINE and sources.MINE
spark = xs.open_session("local[1]")
xs.from_sql(spark, query).run(output="spark")
xs.from_sql(xs.open_session(engine="duckdb"), query).run(output="duckdb")


@udf("boolean")
def seen(_):
    import sources, xmlstream.sources.xml.parser
    return sources.MINE


print([row.mine for row in spark.range(1).select(seen("id").alias("mine")).collect()])
"""
"""A program beside modules of the user's that are called like packages of this project."""


@pytest.mark.parametrize("page", PAGES)
def test_python_for_other_programs_can_be_compiled(page: str) -> None:
    for block in blocks(page):
        if block.language == "py":
            compile(block.text, f"{page}:{block.line}", "exec")


def test_the_sensors_of_the_manual_see_the_day_that_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their schedulers are stand-ins; what they call is there."""
    for name in ("airflow", "airflow.providers.standard.sensors.bash", "airflow.providers.standard.sensors.python"):
        monkeypatch.setitem(sys.modules, name, mock.MagicMock())
    named = {"RunRequest": SimpleNamespace, "SkipReason": str, "sensor": lambda **_: lambda function: function}
    monkeypatch.setitem(sys.modules, "dagster", SimpleNamespace(**named))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    known: dict[str, Any] = {}
    for block in blocks("xmlstream/manual/operations.md"):
        if block.language == "py":
            exec(block.text.replace("/srv/hottest/out", f"{tmp_path}/out"), known)
    closes = "".join(f"<p:r><day>{text}</day><n>*</n></p:r>" for text in ("[,2026-01-01]", "2026-01-02"))
    written = f'<rows xmlns:p="{PUNCT_NS}">{closes}</rows>'
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "slice-000000000.xml").write_text(written)
    days = {day: known["is_complete"](f"{tmp_path}/out", day) for day in ("2026-01-02", "2026-01-03")}
    assert days == {"2026-01-02": True, "2026-01-03": False}
    assert not known["is_complete"](f"{tmp_path}/none", "2026-01-02")
    context = mock.MagicMock(cursor="2026-01-02")
    assert known["day_is_complete"](context).run_key == "2026-01-02"
    context.update_cursor.assert_called_once_with("2026-01-03")
    assert known["day_is_complete"](mock.MagicMock(cursor="2026-01-03")) == "2026-01-03 is open"


def test_the_python_sessions_print_what_they_show() -> None:
    sessions = [block for page in PAGES for block in blocks(page) if block.is_session]
    assert sessions
    for block in sessions:
        examples = doctest.DocTestParser().get_doctest(block.text, {}, block.page, block.page, block.line)
        said: list[str] = []
        assert not doctest.DocTestRunner(verbose=False).run(examples, out=said.append).failed, "".join(said)


def test_the_first_query_is_the_one_that_the_data_has() -> None:
    shown = next(block.text for block in blocks("xmlstream/manual/warehouse.md") if block.language == "sql")
    written = (ROOT / "data" / "warehouse.sql").read_text(encoding="utf-8")
    assert shown.split() == re.sub(r"--.*", "", written).split()


def test_the_query_over_xmark_can_be_read() -> None:
    (shown,) = [block.text for block in blocks("sources/README.md") if "USING xmark" in block.text]
    assert script.read(shown).sources[0].options.row_tag == "bidder"


def test_the_queries_that_run_at_once_are_those_that_the_data_has() -> None:
    (shown,) = [block.text for block in blocks("xmlstream/sql/README.md") if "INSERT INTO" in block.text]
    assert shown == (ROOT / "data" / "fees.sql").read_text(encoding="utf-8")
    read = script.read(shown)
    assert [answer.sink.target.output for answer in read.answers if answer.sink] == ["highest", "owed"]
    assert len(read.sources) == 1


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is published, built from what the container is built from, with what is installed."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    leave = shutil.ignore_patterns("__pycache__")
    for name in copied():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=leave)
        else:
            shutil.copy(ROOT / name, tree / name)
    build: list[str | Path] = [
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        out,
        tree,
    ]
    subprocess.run([sys.executable, *build], check=True, env=_environment())
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment in which the wheel is, and else what the tests run with, but not this tree."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", home / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True, env=_environment())
    (packages,) = home.glob("lib/python*/site-packages")
    # A path by itself brings its packages, and no tree that is installed there to be edited.
    (packages / "locked.pth").write_text("\n".join(site.getsitepackages()))
    return home / "bin"


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    return {**kept, **more}


def test_the_wheel_has_every_module_every_example_and_every_page(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    modules = {path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    ours = {name if name.startswith("xmlstream/") else f"xmlstream/{name}" for name in modules}
    assert {name for name in inside if name.endswith(".py")} == ours
    shared = {name.partition("/share/xmlstream/")[2] for name in inside}
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "data").rglob("*") if path.is_file()} <= shared
    assert set(PAGES) <= shared
    assert {picture for page in PAGES for picture in pictures(page)} <= shared
    assert not [name for name in inside if name.endswith(".md") and "/share/" not in name], "no page is there twice"


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.slow
def test_a_user_has_modules_that_are_called_like_our_packages(installed: Path, tmp_path: Path) -> None:
    """In the driver and in Spark's workers, beside the script, in the current directory and on the workers' path."""
    (tmp_path / "operators").mkdir()
    for name in ("sources.py", "operators/__init__.py", "punct_ns.py"):
        (tmp_path / name).write_text("MINE = True\n")
    write_sensors(tmp_path / "in", sensors=1, hours=2, reports_per_hour=10, seed=5)
    (tmp_path / "program.py").write_text(BESIDE)
    environment = _environment(PYTHONPATH=str(tmp_path))
    done = subprocess.run(
        [installed / "python", "program.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[True]\n"
    written = [(tmp_path / name / "slice-000000000.xml").read_text() for name in ("spark", "duckdb")]
    assert written[0] == written[1]


def test_what_pypi_shows_leads_to_pages_and_pictures_of_the_site(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", ()))
    assert metadata["Name"] == DISTRIBUTION
    assert metadata["Description-Content-Type"] == "text/markdown"
    shown = str(metadata.get_payload())
    links = [a or b for a, b in re.findall(r'\]\(([^)]+)\)|(?:src|srcset|href)="([^"]+)"', shown)]
    site = [link.removeprefix(urls["Documentation"]) for link in links if link.startswith(urls["Documentation"])]
    assert len(site) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    places = {f"{page.removesuffix('.md')}.html" for page in PAGES}
    places |= {f"_images/{Path(picture).name}" for page in PAGES for picture in pictures(page)}
    assert {link.partition("#")[0] for link in site} <= places
    # Nothing else differs from the page in the tree.
    linked = ("](", 'src="', "<source ")
    plain = [line for line in text("README.md").splitlines() if not any(mark in line for mark in linked)]
    assert [line for line in shown.splitlines() if line in plain] == plain


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.slow
def test_every_command_runs_in_its_order_from_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    environment = _environment()
    if (archives := warm_start.directory()) is not None:
        environment[warm_start.DIRECTORY_VARIABLE] = str(archives)
    commands.run(EXAMPLES, installed, tmp_path, environment)
