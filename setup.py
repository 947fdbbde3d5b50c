"""What pyproject.toml cannot declare: README.md as PyPI shows it, with links to the pages and pictures of the site."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

SITE = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Documentation"]


def address(link: re.Match[str]) -> str:
    """The link with its address on the site, where a page has its path, and all pictures lie in one directory."""
    begin, path, heading = link.groups()
    path = path or "README.md"
    place = f"{path.removesuffix('.md')}.html" if path.endswith(".md") else f"_images/{Path(path).name}"
    return f"{begin}{SITE}{place}{heading or ''}"


readme = re.sub(r"<source [^>]*>\n", "", Path("README.md").read_text(encoding="utf-8"))  # PyPI has no dark theme
setup(
    long_description=re.sub(r"""(\]\(|src=")(?!https?:)([^#)"\s]*)(#[^)"\s]*)?""", address, readme),
    long_description_content_type="text/markdown",
)
