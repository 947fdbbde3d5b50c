"""Leaves of an ancestor's other children, such as `../title`, which all rows in that ancestor share.

Such a leaf may stand before the row or behind it. So the ancestor lies within a unit (`unitTag`), which no cut lies in:
whoever reads a row has all of its unit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lxml import etree

from sources.xml.options.arrays import LACKING, SEPARATOR
from sources.xml.options.leaf_tree import local_tag
from sources.xml.options.paths import LeafPath
from sources.xml.parser.leaf_text import UnreadableError, attribute_text, element_text


class AncestorLeaves:
    """Reads them, once for all the rows of one parent."""

    def __init__(self, paths: Mapping[int, LeafPath], arrays: Collection[int], names: Sequence[str], unit: str) -> None:
        """Read the attributes that `paths` are of; `arrays` are those that may have several leaves."""
        self._paths, self._arrays, self._names, self._unit = paths, arrays, names, unit
        self._root: etree._Element | None = None
        self._known: dict[etree._Element, dict[int, str | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._paths)

    def texts(self, row: etree._Element) -> Mapping[int, str | None]:
        """The texts of a row; None for a leaf that is absent or nil.

        Raises:
            UnreadableError: A leaf is there twice, or the ancestor is in no unit.
        """
        parent = row.getparent()
        if parent is None:
            raise UnreadableError(f"{self._names[next(iter(self._paths))]}: the document's root has nothing around it")
        known = self._known.get(parent)
        if known is None:
            if (root := parent.getroottree().getroot()) is not self._root:
                self._root, self._known = root, {}
            known = {index: self._text(parent, index, path) for index, path in self._paths.items()}
            self._known[parent] = known
        return known

    def _text(self, parent: etree._Element, index: int, path: LeafPath) -> str | None:
        ancestor: etree._Element | None = parent
        for _ in range(path.up - 1):
            ancestor = ancestor.getparent() if ancestor is not None else None
        if ancestor is None or not self._is_in_unit(ancestor):
            raise UnreadableError(f"{self._names[index]}, at {path}, is known inside of {self._unit} only")
        found: list[etree._Element] = [ancestor]
        for step in path.steps:
            found = [child for element in found for child in element.iterchildren("*") if _is_called(child, step)]
        texts = [element_text(element) for element in found]
        if path.attribute is not None:
            values = [attribute_text(element, path.attribute) for element in found]
            texts = [value for value in values if value is not None]
        if index in self._arrays:
            return SEPARATOR.join(LACKING if text is None else text for text in texts) if texts else None
        if len(texts) > 1:
            raise UnreadableError(f"{self._names[index]}, at {path}, is there twice")
        return texts[0] if texts else None

    def _is_in_unit(self, element: etree._Element) -> bool:
        return any(local_tag(str(each.tag)) == self._unit for each in (element, *element.iterancestors()))


def _is_called(element: etree._Element, step: str) -> bool:
    tag = str(element.tag)
    return step == "*" or step in (local_tag(tag), tag if "}" in tag else "{}" + tag)
