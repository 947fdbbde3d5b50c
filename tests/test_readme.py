"""What the README shows is run, in its order; what it names is there."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from sources import source
from xmlstream import script

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
    internal = {"schema", "follow", "keepOpen", "close", "documentLog", "stage", "source", "columns", "beside"}
    assert listed == set(source._NAMES.values()) - internal


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


@pytest.mark.spark
@pytest.mark.slow
def test_the_tour_prints_what_it_shows(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "data", tmp_path / "data")
    shell = [(block.text, BLOCKS[i + 1]) for i, block in enumerate(BLOCKS) if block.language == "sh"]
    python = [
        (block.text, BLOCKS[i + 1])
        for i, block in enumerate(BLOCKS)
        if block.language == "python" and not block.text.startswith(">>>")
    ]
    assert (len(shell), len(python)) == (2, 2)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, examples in ((["bash", "-euo", "pipefail", "-c"], shell), ([sys.executable, "-c"], python)):
        # One session, as the reader's: what follows builds upon what was before.
        text = "\n".join(text for text, _ in examples)
        done = subprocess.run(
            [*command, text],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert {shown.language for _, shown in examples} <= {"xml", "text"}
        # Between two punctuations the order of tuples is free.
        lines = [line for _, shown in examples for line in shown.text.splitlines()]
        assert sorted(done.stdout.splitlines()[-len(lines) :]) == sorted(lines)


def test_the_query_over_xmark_can_be_read() -> None:
    (shown,) = [block.text for block in BLOCKS if "USING xmark" in block.text]
    assert script.read(shown).sources[0].options.row_tag == "bidder"


def test_the_queries_that_run_at_once_can_be_read() -> None:
    (shown,) = [block.text for block in BLOCKS if "INSERT INTO" in block.text]
    read = script.read(shown)
    assert [answer.sink.target.output for answer in read.answers if answer.sink] == ["highest", "owed"]
    assert len(read.sources) == 1
