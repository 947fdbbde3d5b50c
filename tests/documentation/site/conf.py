"""Sphinx's configuration of the site of the documentation; `tests.documentation.site` builds it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

import xmlstream

project = "xmlstream"
author = "The xmlstream maintainers"
copyright = author
release = version = xmlstream.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
source_suffix = {".md": "markdown"}

myst_heading_anchors = 4
"""Headings have the anchors that a forge gives them."""

default_role = "literal"
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
html_static_path = ["site.css"]
html_css_files = ["site.css"]


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
    called = name.startswith(("xmlstream.By", "xmlstream.RunOptions", "punct_ns."))
    return None if called or what not in ("class", "exception") else ("", "")


def setup(app: Sphinx) -> None:
    """Connects the hooks."""
    app.connect("autodoc-skip-member", _second_names)
    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before Napoleon
    app.connect("autodoc-process-signature", _signature)
