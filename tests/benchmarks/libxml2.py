"""The floor of all that reads XML: libxml2 reads the bytes and tells nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from lxml import etree


class _Nothing:
    """A target that no event is handed to."""

    def close(self) -> Any:
        """The document has ended."""


def tokenize(path: Path) -> None:
    """Reads a document to its end, with null handlers."""
    with path.open("rb") as file:
        parser = etree.XMLParser(target=cast(Any, _Nothing()))
        while piece := file.read(1 << 18):
            parser.feed(piece)
        parser.close()
