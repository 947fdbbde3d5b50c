"""The text of one leaf: of an element, of an XML attribute, or of what an ancestor says."""

from __future__ import annotations

from copy import deepcopy

from lxml import etree

from punct_ns.domain import BLANKS
from sources.xml.options.leaf_tree import local_tag
from sources.xml.options.paths import LeafPath

XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_NIL = XSI + "nil"
_STRING = etree.XPath("string()")


class UnreadableError(Exception):
    """An item that is well-formed but says nothing that can be read; `args[0]` is the reason."""


def element_text(element: etree._Element) -> str | None:
    """The string value of a leaf; None if it is nil."""
    if is_nil(element):
        return None
    return str(_STRING(element)) if len(element) else element.text or ""


def subtree_text(element: etree._Element) -> str | None:
    """An element as XML text, with the namespaces that its names use and without comments; None if it is nil."""
    if is_nil(element):
        return None
    alone = deepcopy(element)
    alone.tail = None
    etree.cleanup_namespaces(alone)
    text = etree.tostring(alone, encoding="unicode")
    if 'xmlns="' in text and any(str(each.tag)[0] != "{" for each in alone.iter(etree.Element)):
        # The clean-up takes away `xmlns=""`, too, which ends a default namespace.
        return etree.tostring(deepcopy(element), encoding="unicode", with_tail=False)
    return text


def own_text(element: etree._Element) -> str | None:
    """What stands in an element beside its elements; None if it is nil."""
    if is_nil(element):
        return None
    return "".join([element.text or "", *(child.tail or "" for child in element)])


def is_nil(element: etree._Element) -> bool:
    """Whether an element says that it is null."""
    nil = element.get(_NIL)
    return nil is not None and nil.strip(BLANKS) in ("true", "1")


def ancestor_text(element: etree._Element, path: LeafPath) -> str | None:
    """What an ancestor says, an XML attribute or its name; None if there is none.

    Raises:
        UnreadableError: As `attribute_text`.
    """
    ancestor: etree._Element | None = element
    for _ in range(path.up):
        ancestor = ancestor.getparent() if ancestor is not None else None
    if ancestor is None:
        return None
    return local_tag(str(ancestor.tag)) if path.attribute is None else attribute_text(ancestor, path.attribute)


def attribute_text(element: etree._Element, name: str) -> str | None:
    """The value of an XML attribute: of `{uri}name`; or of a plain name in no namespace, else in any.

    Raises:
        UnreadableError: There are two of the name, in different namespaces.
    """
    value = element.get(name)
    if value is not None or "}" in name:
        return value
    names = map(str, element.attrib)
    found = [other for other in names if local_tag(other) == name and not other.startswith(XSI)]
    if len(found) > 1:
        raise UnreadableError(f"the attribute {name} is there twice, as {' and '.join(found)}")
    return element.get(found[0]) if found else None
