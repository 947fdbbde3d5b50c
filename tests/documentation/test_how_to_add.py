"""What the guide says of adding something names each file that the last example of the kind has touched."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.harness.pages import ROOT, section

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
    "an expression": ("operators/expressions/operations/forms.py",),  # a word in the example of its docstring
}
"""Where the word means another thing, or is no part of adding one."""


@pytest.mark.parametrize("kind", GUIDES)
def test_the_guide_names_every_file_that_the_last_example_has_touched(kind: str) -> None:
    page, title, word = GUIDES[kind]
    said = section(page, title)
    found = subprocess.run(
        ["git", "grep", "-lwE", word, "--", "operators", "punct_ns", "sources", "xmlstream", "tests/tools"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
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
