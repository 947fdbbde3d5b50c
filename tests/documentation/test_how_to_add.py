"""What the guide says of adding something names each file that the last example of the kind has touched."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from tests.harness.pages import ROOT, section, text

GUIDES = {
    "an operator": ("xmlstream/README.md", "How to add an operator", "Explode"),
    "a source option": ("xmlstream/README.md", "How to add a source option", r"sourceArchiveDir|source_archive_dir"),
    "a sink": ("xmlstream/README.md", "How to add a sink", "CsvForm"),
    "a rule of the optimizer": ("xmlstream/README.md", "How to add a rule", "flatten_merges"),
    "a rule of punctuate": ("xmlstream/README.md", "How to add a rule", "ByPredicate"),
    "an expression": ("operators/in_process/README.md", "How to add an expression", "md5"),
}
"""By kind: the page, the section, and a word that stands in every file that the example has touched."""

ELSEWHERE = {
    "a source option": ("xmlstream/manual",),  # pages on what one does with this option
    # a word in the example of its docstring, and a call in a statement
    "an expression": ("operators/expressions/operations/forms.py", "tests/data/foreign_statements.sql"),
}
"""Where the word means another thing, or is no part of adding one."""


PLACES = ("operators", "punct_ns", "sources", "xmlstream", "tests/data", "tests/oracles", "tests/tools")
"""Where adding something needs a change that only the guide tells; a test beside the module says the rest."""


@pytest.mark.parametrize("kind", GUIDES)
def test_the_guide_names_every_file_that_the_last_example_has_touched(kind: str) -> None:
    page, title, word = GUIDES[kind]
    said = section(page, title)
    command = ["git", "grep", "-lwE", word, "--", *PLACES]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    missing = [
        path for path in found if not is_named(path, said, page) and not path.startswith(ELSEWHERE.get(kind, ()))
    ]
    assert not missing


def is_named(path: str, said: str, page: str) -> bool:
    """Whether a text names a file: by its path, as a module or a folder, by a link, or because it is the text's own."""
    module = re.sub(r"^(operators|punct_ns|sources)\.", r"xmlstream.\1.", path.removesuffix(".py").replace("/", "."))
    folder = path.rpartition("/")[0]
    names = (path, path.removeprefix("xmlstream/"), module, module.rpartition(".")[0], f"`{folder}`", f"`{folder}/")
    return path == page or any(re.search(rf"{re.escape(name)}(?![\w.]\w)", said) for name in names)


@pytest.mark.rest
@pytest.mark.parametrize("words", re.findall(r"pytest ([^`]*)`", text(".github/FIRST_CHANGE.md")))
def test_each_run_of_tests_in_the_first_change_selects_some(words: str) -> None:
    asked = [word for word in shlex.split(words.partition(" -k ")[0]) if word != "…"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *asked]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
