"""Sphinx's configuration of the site of the documentation; `tests.tools.site` builds it."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

import xmlstream

project = "xmlstream"
author = "The xmlstream maintainers"
copyright = author
release = version = xmlstream.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["attrs_block"]
myst_heading_anchors = 4
"""Headings have the anchors that a forge gives them."""

default_role = "literal"
smartquotes = False  # `--follow` has two hyphens
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autoclass_content = "class"
autodoc_class_signature = "mixed"
napoleon_use_ivar = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 100

html_theme = "furo"
html_title = "xmlstream"
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_logo = html_favicon = "logo.svg"
html_static_path = ["site.css", "site.js"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))


def _second_names(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """A second name of a method, such as PySpark's `withColumn`, has no entry of its own."""
    return True if getattr(thing, "__name__", name) != name else None


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Code in single backticks becomes a literal, in which nothing is markup; a method has its second names."""
    lines[:] = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", "\n".join(lines)).split("\n")
    if what == "method":
        *_, kind, _ = name.split(".")
        others = vars(getattr(xmlstream, kind, object)).items()
        if also := [f"``{other}``" for other, value in others if value is thing and other != thing.__name__]:
            lines[1:1] = ["", f"Also called {' and '.join(also)}, as in PySpark."]


def _signature(app: Sphinx, what: str, name: str, *_: Any) -> tuple[str, str] | None:
    """A class that a user never calls is shown without the arguments of its constructor."""
    called = name.startswith(("xmlstream.By", "xmlstream.RunOptions", "xmlstream.punct_ns."))
    return None if called or what not in ("class", "exception") else ("", "")


def _weights(app: Any, failed: Exception | None) -> None:
    """Adds to the search index how much each page is about each word, for `scorer.js`: BM25 without rarity, 0 to 20."""
    if failed:
        return
    language, pages = app.builder.indexer.lang, sorted(app.env.found_docs)
    words = [Counter(map(language.stem, language.split(app.env.get_doctree(page).astext()))) for page in pages]
    usual = sum(map(Counter.total, words)) / len(pages)
    weights: dict[str, dict[str, int]] = {}
    for page, counts in zip(pages, words, strict=True):
        length = 0.25 + 0.75 * counts.total() / usual
        most = 10 if page.startswith(("CHANGELOG", ".github/", "tests/")) else 20  # pages that users seldom look for
        for word, count in counts.items():
            if weight := round(most * count / (count + 4 * length)):
                weights.setdefault(word, {})[page] = weight
    index = Path(app.outdir, "searchindex.js")
    written = index.read_text(encoding="utf-8")
    index.write_text(f"var WEIGHTS = {json.dumps(weights, separators=(',', ':'))};\n{written}", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connects the hooks."""
    app.connect("autodoc-skip-member", _second_names)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before Napoleon
    app.connect("autodoc-process-signature", _signature)
    app.connect("build-finished", _weights)
