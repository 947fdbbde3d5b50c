"""Elements of a document: which of them are items of a source, tuples or punctuations, and the text of a leaf.

The tag decides whether an element is an item. A leaf is an element, an XML attribute, or a property of an ancestor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Literal

from lxml import etree

from xmlstream.punct_ns.domain import BLANKS
from xmlstream.sources.xml.options.leaf_paths import MANY_TAGS, LeafPath, local_tag
from xmlstream.sources.xml.options.qualified_names import CHILDREN, row_parents
from xmlstream.sources.xml.splits.namespaces import namespace_of, stray_reason

XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_NIL = XSI + "nil"
_STRING = etree.XPath("string()")


class UnreadableError(Exception):
    """An item is well-formed but not valid; `args[0]` is the reason."""


def element_text(element: etree._Element) -> str | None:
    """Returns the string value of a leaf; None if it is nil."""
    if is_nil(element):
        return None
    return str(_STRING(element)) if len(element) else element.text or ""


def subtree_text(element: etree._Element) -> str | None:
    """Returns an element as XML text, with the namespaces that it uses and without comments; None if it is nil."""
    if is_nil(element):
        return None
    alone = deepcopy(element)
    alone.tail = None
    etree.cleanup_namespaces(alone)
    text = etree.tostring(alone, encoding="unicode")
    if 'xmlns="' in text and any(str(each.tag)[0] != "{" for each in alone.iter(etree.Element)):
        # The clean-up also removes `xmlns=""`, which ends a default namespace.
        return etree.tostring(deepcopy(element), encoding="unicode", with_tail=False)
    return text


def own_text(element: etree._Element) -> str | None:
    """Returns an element's text without that of its child elements; None if it is nil."""
    if is_nil(element):
        return None
    return "".join([element.text or "", *(child.tail or "" for child in element)])


def is_nil(element: etree._Element) -> bool:
    """Whether an element is marked as null by `xsi:nil`."""
    nil = element.get(_NIL)
    return nil is not None and nil.strip(BLANKS) in ("true", "1")


def ancestor_text(element: etree._Element, path: LeafPath) -> str | None:
    """Returns an ancestor's XML attribute or name; None if there is none.

    Raises:
        UnreadableError: See `attribute_text`.
    """
    ancestor: etree._Element | None = element
    for _ in range(path.up):
        ancestor = ancestor.getparent() if ancestor is not None else None
    if ancestor is None:
        return None
    return local_tag(str(ancestor.tag)) if path.attribute is None else attribute_text(ancestor, path.attribute)


def attribute_text(element: etree._Element, name: str) -> str | None:
    """Returns the value of an XML attribute: `{uri}name`, `{}name`; or a plain name in no namespace, otherwise in any.

    Raises:
        UnreadableError: Two attributes have the name, in different namespaces.
    """
    value = element.get(name.removeprefix("{}"))
    if value is not None or "}" in name:
        return value
    found = meant_attributes(element, name)
    if len(found) > 1:
        raise UnreadableError(f"the attribute {name} occurs twice, as {' and '.join(found)}")
    return element.get(found[0]) if found else None


def occurs_twice(name: str, element: etree._Element | None) -> str:
    """Returns the reason for an attribute of a name with two leaves; this element is the second."""
    around = element.getparent() if element is not None else None
    beside = [str(each.tag) for each in around.iterchildren("*")] if around is not None else []
    alike = {tag: None for tag in beside if element is not None and local_tag(tag) == local_tag(str(element.tag))}
    return f"{name} occurs twice{', as ' + ' and '.join(alike) if len(alike) > 1 else ''}"


def meant_attributes(element: etree._Element, name: str) -> list[str]:
    """Returns the XML attributes that a plain name means: that in no namespace, else all of it, those of XSI last."""
    if element.get(name) is not None:
        return [name]
    found = [other for other in map(str, element.attrib) if local_tag(other) == name]
    return [other for other in found if not other.startswith(XSI)] or found


NO_ELEMENT = (etree._ProcessingInstruction, etree._Comment)
"""The nodes among elements that are not elements."""

ElementKind = Literal["tuple", "punctuation", "stray", "other"]
"""The kind of an element; a stray one has the tuples' local name, but another namespace."""


class StrayElementError(UnreadableError):
    """An element has the tuples' local name, but another namespace."""


class ItemElements:
    """Decides which elements are items of one source.

    Args:
        tags: The names of the tuples' elements, with their namespaces if declared.
        punctuation_namespace: The namespace in which an element with such a name is a punctuation.
        is_leaf: Whether tuples have leaves with such a name.

    Attributes:
        tags: The names by which they are found in a tree.
        locals: The local names of the tuples' elements, if they are named.
        parents: The local names of the elements whose children are all tuples or punctuations.
        is_leaf: Whether tuples have leaves with such a name.
        punctuation: The beginning of the names of punctuations, their namespace in braces.
        namespace: The namespace of tuples with a plain tag, empty for none; None until the first of them is read.
    """

    def __init__(self, tags: Sequence[str], punctuation_namespace: str, *, is_leaf: bool = False) -> None:
        self.parents = row_parents(tags)
        self.locals = frozenset(local_tag(tag) for tag in tags if not tag.endswith(CHILDREN))
        self.namespace: str | None = None
        self._plain = frozenset(tag for tag in tags if "}" not in tag)
        self._rows = frozenset(tag.removeprefix("{}") for tag in tags if "}" in tag)
        self.punctuation = "{" + punctuation_namespace + "}"
        self._kinds: dict[object, ElementKind] = {}
        self.tags = ["*"] if self.parents else ["{*}" + name for name in sorted(self.locals)]
        self.is_leaf = is_leaf
        self._numbered: dict[etree._Element | None, int] = {}

    def items(self, root: etree._Element) -> Iterator[etree._Element]:
        """Yields the elements of the items below an element, in document order."""
        self.begin()
        for element in root.iter(*self.tags):
            if self.is_item(element) and not any(map(self.is_whole, element.iterancestors())):
                yield element

    def begin(self) -> None:
        """Prepares for another tree: forgets the numbers of the last one."""
        self._numbered = {}

    def is_item(self, element: etree._Element) -> bool:
        """Whether the element is a tuple, a punctuation or a stray element."""
        return self._kind(element) != "other"

    def is_whole(self, element: etree._Element) -> bool:
        """Whether no element in it is an item: it is a punctuation, or a tuple with a leaf of the tuples' name."""
        kind = self._kind(element)
        return kind == "punctuation" or (kind == "tuple" and self.is_leaf)

    def is_punctuation(self, element: etree._Element) -> bool:
        """Whether an item is a punctuation; otherwise it is a tuple."""
        return self._kind(element) == "punctuation"

    def is_stray(self, element: etree._Element) -> bool:
        """Whether the element has the tuples' local name, but another namespace."""
        return self._kind(element) == "stray"

    def require_known(self, element: etree._Element) -> None:
        """Raises an error for a stray element.

        Raises:
            StrayElementError: The element has the tuples' local name, but another namespace.
        """
        if self.is_stray(element):
            tag = str(element.tag)
            raise StrayElementError(stray_reason(local_tag(tag), self.namespace or "", namespace_of(tag)))

    def expect(self, namespace: str | None) -> None:
        """Sets the namespace of the tuples, empty for none; None keeps that of the first tuple."""
        if namespace not in (None, self.namespace):
            self.namespace = namespace
            self._kinds = {}

    def _kind(self, element: etree._Element) -> ElementKind:
        if self.parents and not isinstance(element, NO_ELEMENT):
            parent = element.getparent()
            if parent is not None and local_tag(str(parent.tag)) in self.parents:
                return "punctuation" if str(element.tag).startswith(self.punctuation) else "tuple"
        known = self._kinds.get(element.tag)
        if known is None:
            known = "other"
            if not isinstance(element, NO_ELEMENT) and (local := local_tag(str(element.tag))) in self.locals:
                if str(element.tag).startswith(self.punctuation):
                    known = "punctuation"
                elif element.tag in self._rows:
                    known = "tuple"
                elif local in self._plain:
                    namespace = namespace_of(str(element.tag))
                    self.namespace = namespace if self.namespace is None else self.namespace
                    known = "tuple" if namespace == self.namespace else "stray"
            if len(self._kinds) < MANY_TAGS:
                self._kinds[element.tag] = known
        return known

    @property
    def foreign(self) -> list[str]:
        """The names of elements that have the items' local names but are not items."""
        met = [tag for tag, kind in self._kinds.items() if kind == "other" and isinstance(tag, str)]
        return [tag for tag in met if local_tag(tag) in self.locals]
