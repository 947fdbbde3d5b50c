"""Elements of a document: which are items of a source, tuples or punctuations, and the text of a single leaf.

A tag makes an element an item. A leaf is an element, an XML attribute, or something that an ancestor has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Literal

from lxml import etree

from punct_ns.domain import BLANKS
from sources.xml.options.leaf_paths import MANY_TAGS, LeafPath, local_tag
from sources.xml.splits.namespaces import namespace_of, stray_reason

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


NO_ELEMENT = (etree._ProcessingInstruction, etree._Comment)
"""What stands among elements and is none."""

ElementKind = Literal["tuple", "punctuation", "stray", "other"]
"""What an element is; a stray one is called as the tuples are, in another namespace."""


class StrayElementError(UnreadableError):
    """An element that is called as the tuples are, in another namespace."""


class ItemElements:
    """Tells which elements are items of one source.

    Args:
        tags: The names of the tuples' elements, each perhaps with its namespace.
        punctuation_namespace: The namespace that makes an element of such a name a punctuation.
        is_leaf: Whether tuples have leaves of such a name.

    Attributes:
        locals: Their local names.
        namespace: That of the tuples whose tags name none, the empty text for none; None until one is met.
    """

    def __init__(self, tags: Sequence[str], punctuation_namespace: str, *, is_leaf: bool = False) -> None:
        self.locals = frozenset(map(local_tag, tags))
        self.namespace: str | None = None
        self._plain = frozenset(tag for tag in tags if "}" not in tag)
        self._rows = frozenset(tag.removeprefix("{}") for tag in tags if "}" in tag)
        self._punctuation = "{" + punctuation_namespace + "}"
        self._kinds: dict[object, ElementKind] = {}
        self._tags = ["{*}" + name for name in sorted(self.locals)]
        self._is_leaf = is_leaf
        self._numbered: dict[etree._Element | None, int] = {}

    def items(self, root: etree._Element) -> Iterator[etree._Element]:
        """The elements of the items below an element, in document order."""
        self.begin()
        for element in root.iter(*self._tags):
            if self.is_item(element) and not any(map(self.is_whole, element.iterancestors())):
                yield element

    def begin(self) -> None:
        """Another tree comes: what was numbered in the last one is forgotten."""
        self._numbered = {}

    def is_item(self, element: etree._Element) -> bool:
        """Whether the element is a tuple or a punctuation of this source, or it cannot be told which is meant."""
        return self._kind(element) != "other"

    def is_whole(self, element: etree._Element) -> bool:
        """Whether no element in it is an item: it is a punctuation, or a tuple that has a leaf of its own name."""
        kind = self._kind(element)
        return kind == "punctuation" or (kind == "tuple" and self._is_leaf)

    def is_punctuation(self, element: etree._Element) -> bool:
        """Whether an item is a punctuation; any other is a tuple."""
        return self._kind(element) == "punctuation"

    def require_known(self, element: etree._Element) -> None:
        """See that it can be told which is meant.

        Raises:
            StrayElementError: It is called as the tuples are, in another namespace.
        """
        if self._kind(element) == "stray":
            tag = str(element.tag)
            raise StrayElementError(stray_reason(local_tag(tag), self.namespace or "", namespace_of(tag)))

    def expect(self, namespace: str | None) -> None:
        """In which namespace the tuples are, the empty text for none; None for that of the first which is met."""
        if namespace not in (None, self.namespace):
            self.namespace = namespace
            self._kinds = {}

    def _kind(self, element: etree._Element) -> ElementKind:
        known = self._kinds.get(element.tag)
        if known is None:
            known = "other"
            if not isinstance(element, NO_ELEMENT) and (local := local_tag(str(element.tag))) in self.locals:
                if str(element.tag).startswith(self._punctuation):
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
        """Names of elements that were met, called as the items are, which are none."""
        met = [tag for tag, kind in self._kinds.items() if kind == "other" and isinstance(tag, str)]
        return [tag for tag in met if local_tag(tag) in self.locals]
