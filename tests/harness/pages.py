"""The pages of the documentation, in the order in which they are read, and the fenced blocks in them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("punct_ns", "operators", "sources", "xmlstream")

EXAMPLES = (
    "README.md",
    "xmlstream/manual/warehouse.md",
    "xmlstream/manual/concepts.md",
    "xmlstream/manual/closing.md",
    "xmlstream/manual/operations.md",
    "xmlstream/manual/personal_data.md",
    "xmlstream/manual/changing.md",
    "xmlstream/manual/coming_from.md",
    "data/auctions/README.md",
    "punct_ns/README.md",
    "sources/README.md",
    "sources/receivers/README.md",
    "operators/README.md",
    "xmlstream/sql/README.md",
    "xmlstream/runtime/README.md",
    "xmlstream/manual/tutorial.md",
    "xmlstream/manual/cookbook.md",
    "xmlstream/manual/sinks.md",
    "xmlstream/manual/spark_jobs.md",
)
"""Pages whose examples are run, one page after the other in one directory."""

PAGES = (
    *EXAMPLES,
    "xmlstream/manual/clusters.md",
    "xmlstream/manual/checkpoints.md",
    "xmlstream/manual/limits.md",
    "xmlstream/manual/papers.md",
    "xmlstream/manual/glossary.md",
    "operators/in_process/README.md",
    "xmlstream/README.md",
    "xmlstream/monitor/README.md",
    "data/README.md",
    "tests/benchmarks/README.md",
    ".github/FIRST_CHANGE.md",
    ".github/CONTRIBUTING.md",
    "CHANGELOG.md",
)


BUILT = (
    "operators/in_process/README.md",
    "xmlstream/README.md",
    "tests/benchmarks/README.md",
    ".github/FIRST_CHANGE.md",
    ".github/CONTRIBUTING.md",
    "CHANGELOG.md",
)
"""Pages about how it is built, which are read beside a checkout."""

FORGE = (".github/SECURITY.md", ".github/pull_request_template.md", "tests/README.md")
"""What GitHub alone shows."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `sh` and `python` are run, `xml` or `text` right after one is what it prints."""

    page: str
    language: str
    text: str
    line: int

    @property
    def is_session(self) -> bool:
        """Python as typed at its prompt."""
        return self.language == "python" and self.text.startswith(">>>")

    @property
    def is_run(self) -> bool:
        """Run from an installed wheel."""
        return self.language == "sh" or (self.language == "python" and not self.is_session)


@cache
def contracts() -> dict[str, dict[str, Any]]:
    """The contracts of imports in `pyproject.toml`, by id."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {contract["id"]: contract for contract in project["tool"]["importlinter"]["contracts"]}


def copied() -> list[str]:
    """The files and folders of the tree that the container is built from."""
    lines = re.findall(
        r"^COPY (?!--from)(.*) \S+$", (ROOT / ".ci" / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE
    )
    return [name for line in lines for name in line.split()]


def operator_modules() -> list[str]:
    """The operators: all modules of `operators` but those in which they meet."""
    met = {line.rpartition(".")[2] for line in contracts()["operators-apart"]["ignore_imports"]}
    return sorted(path.stem for path in (ROOT / "operators").glob("*.py") if path.stem not in {"__init__", *met})


def text(page: str) -> str:
    """The page as it is written."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    written = text(page)
    return [
        Block(page, found[1], found[2], written[: found.start()].count("\n") + 1)
        for found in re.finditer(r"^```(\w*)\n(.*?)^```$", written, re.MULTILINE | re.DOTALL)
    ]


def modules_in(page: str) -> dict[str, str]:
    """The modules of Python that the commands of a page write, by the names of their files."""
    written = re.findall(r"^cat > (\w+\.py) <<'END'\n(.*?)^END$", text(page), re.MULTILINE | re.DOTALL)
    return dict(written)


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)


def pictures(page: str) -> set[str]:
    """The pictures that a page shows, by their paths in the tree."""
    found = re.findall(r'!\[[^\]]*\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"', prose(page))
    return {(ROOT / page).parent.joinpath(a or b).resolve().relative_to(ROOT).as_posix() for a, b in found}


def section(page: str, heading: str) -> str:
    """What stands below a heading of the second level, up to the next."""
    return text(page).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def first_cells(table: str) -> list[str]:
    """The names in the first column of a table, which are code."""
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
