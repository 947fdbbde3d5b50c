"""What the README shows is run, in its order; what it names is there."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import site
import subprocess
import sys
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from sources.xml.options.option_table import OPTIONS, SET_BY_QUERIES
from xmlstream.session import class_archive
from xmlstream.sql import script

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `sh` and `python` are run, `xml` or `text` right after one is what it prints."""

    language: str
    text: str
    line: int


BLOCKS = [
    Block(found[1], found[2], README[: found.start()].count("\n") + 1)
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
]


PACKAGES = ("punct_ns", "operators", "sources", "xmlstream")

STEPS = [
    # What stands right below what is run, is what it prints.
    (block, after if after and after.line - block.line == block.text.count("\n") + 3 else None)
    for block, after in zip(BLOCKS, [*BLOCKS[1:], None], strict=True)
    if block.language == "sh" or (block.language == "python" and not block.text.startswith(">>>"))
]


def test_the_python_examples_say_what_they_say() -> None:
    blocks = [block for block in BLOCKS if block.language == "python" and block.text.startswith(">>>")]
    assert blocks
    for block in blocks:
        examples = doctest.DocTestParser().get_doctest(block.text, {}, "README.md", "README.md", block.line)
        said: list[str] = []
        assert not doctest.DocTestRunner(verbose=False).run(examples, out=said.append).failed, "".join(said)


def test_the_query_is_the_one_that_the_data_has() -> None:
    shown = next(block.text for block in BLOCKS if block.language == "sql")
    written = (ROOT / "data" / "warehouse.sql").read_text(encoding="utf-8")
    assert shown.split() == re.sub(r"--.*", "", written).split()


def test_every_option_of_a_source_is_in_its_table() -> None:
    section = README.split("\n## Sources\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} - {
        "path.<column>",
        "prefix.<column>",
    }
    internal = {"schema", *SET_BY_QUERIES}
    assert listed == OPTIONS.keys() - internal


def test_every_operator_is_in_its_table_and_has_tests_of_its_own() -> None:
    section = README.split("\n## Operators\n")[1].split("\n## ")[0]
    listed = [row.split("|")[1].strip() for row in section.splitlines() if row.startswith("| ")][2:]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (floors,) = [c for c in project["tool"]["importlinter"]["contracts"] if c["id"] == "operators"]
    modules = set(floors["layers"][0].split(" | "))
    assert len(listed) == len(set(listed))
    assert set(listed) == modules | {"union"}  # which is distinct above merge
    for module in modules:
        assert (ROOT / "operators" / f"{module}.py").exists()
        assert (ROOT / "tests" / "operators" / f"test_{module}.py").exists()


def test_every_query_over_auctions_is_in_its_table() -> None:
    section = README.split("\n## An online auction\n")[1].split("\n## ")[0].split("\n| what is done")[1]
    named = re.findall(r"`(\w+)`", section)
    assert sorted(named) == sorted(path.stem for path in (ROOT / "data" / "auctions").glob("*.sql"))


def test_every_target_that_it_names_is_in_the_makefile() -> None:
    named = set(re.findall(r"(?:`|^\$ )make ([a-z]+)", README, re.MULTILINE))
    assert {"demo", "test", "check"} <= named
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is published, built from the tree's own files, with what is installed."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    leave = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*PACKAGES, "data"):
        shutil.copytree(ROOT / name, tree / name, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
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


def test_the_wheel_has_every_module_and_every_example(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        (metadata,) = (archive.read(name).decode() for name in inside if name.endswith("/METADATA"))
    modules = {path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    assert modules <= inside
    examples = {name.partition("/share/xmlstream/")[2] for name in inside}
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "data").rglob("*") if path.is_file()} <= examples
    assert {line.partition(":")[0] for line in metadata.splitlines()} >= {"Author", "Project-URL", "Classifier"}


IN_TURN = r"""
import sys
names = {}
while block := "".join(iter(lambda: sys.stdin.read(1) or "\0", "\0")):
    exec(block, names)
    print(end="\0", flush=True)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_every_command_runs_in_its_order_from_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    environment = _environment(PATH=f"{installed}{os.pathsep}{os.environ['PATH']}")
    if (archives := class_archive.directory()) is not None:
        environment[class_archive.PLACE] = str(archives)
    python = subprocess.Popen(
        [installed / "python", "-c", IN_TURN], cwd=tmp_path, env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    asked, answers = python.stdin, python.stdout
    assert asked
    assert answers
    with python:
        for block, shown in STEPS:
            if block.language == "sh":
                command = ["bash", "-euo", "pipefail", "-c", block.text]
                done = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, (block.text, done.stderr)
                printed = done.stdout
            else:
                asked.write(block.text + "\0")
                asked.flush()
                printed = "".join(iter(lambda: answers.read(1) or "\0", "\0"))
            # Between two punctuations the order of tuples is free.
            lines = shown.text.splitlines() if shown else []
            assert sorted(printed.splitlines()[-len(lines) :] if lines else []) == sorted(lines), block.text
        asked.write("\0")
    assert python.returncode == 0


def test_the_query_over_xmark_can_be_read() -> None:
    (shown,) = [block.text for block in BLOCKS if "USING xmark" in block.text]
    assert script.read(shown).sources[0].options.row_tag == "bidder"


def test_the_queries_that_run_at_once_are_those_that_the_data_has() -> None:
    (shown,) = [block.text for block in BLOCKS if "INSERT INTO" in block.text]
    assert shown == (ROOT / "data" / "fees.sql").read_text(encoding="utf-8")
    read = script.read(shown)
    assert [answer.sink.target.output for answer in read.answers if answer.sink] == ["highest", "owed"]
    assert len(read.sources) == 1
