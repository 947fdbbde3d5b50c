"""Leaf paths: from a row element to the leaf that holds an attribute, and the tree of the paths of all attributes.

Paths are `hour`, `bidder/person_ref/@person`, `../@id`. A step may be any element, `*/id`, or any number of them,
`section//title`; of several paths, `isbn|issn`, that one holds the attribute which is there.

Three things that are no leaves have a path, too: the name of an ancestor, `name(..)`, or of the row, `name(.)`, the
row's number among the rows of its parent, `position()`, and an element with all that is in it, as XML text,
`xml(description)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from punct_ns.errors import UsageError
from sources.xml.options.qualified_names import XML_PREFIXES, Prefixes, with_namespace

_CALL = re.compile(r"\s*(?:name\(\s*(?P<up>\.|\.\.(?:/\.\.)*)\s*\)|position\(\s*\))\s*")
_SUBTREE = re.compile(r"\s*xml\(\s*([^()]*?)\s*\)\s*")
_ALTERNATIVE = re.compile(r"\|(?![^{]*\})")
_DEEP = re.compile(r"(\{[^{}]*\})|//")
_NAME = re.compile(r"(\{[^{}]*\})?[^\W\d][\w.\-·]*")


ANYWHERE = "**"
"""The step of a path for any number of elements."""


@dataclass(frozen=True, slots=True)
class LeafPath:
    """A path in canonical form.

    Attributes:
        up: How many ancestors up it begins; 0 is the row element itself.
        steps: Names of elements, downwards from there; a plain name stands for any namespace, `{uri}name` for one,
            `{}name` for none, `*` for any name, ANYWHERE for any number of elements, none among them.
        attribute: The XML attribute at the end, in no namespace unless it says one; None for the element's text.
        function: `name` for the local name of that ancestor, or of the row; `position` for the row's number in its
            parent, from 1; `xml` for an element as XML text.
        others: Other places where the leaf may be instead.
    """

    up: int
    steps: tuple[str, ...]
    attribute: str | None = None
    function: Literal["name", "position", "xml"] | None = None
    others: tuple[LeafPath, ...] = field(default=(), repr=False)

    @property
    def is_outside(self) -> bool:
        """Whether what it leads to is no part of the row element."""
        return self.up > 0 or self.function in ("name", "position")

    @property
    def is_element(self) -> bool:
        """Whether it leads to an element in the row, or is the row."""
        return not self.up and self.attribute is None and self.function is None

    @property
    def is_ancestors_leaf(self) -> bool:
        """Whether it leads to another child of an ancestor, as `../title` does."""
        return self.up > 0 and bool(self.steps)

    @staticmethod
    def parse(text: str, prefixes: Prefixes = XML_PREFIXES) -> LeafPath:
        """Read a path, in which prefixes mean these namespaces; UsageError with the reason if it is none.

        >>> LeafPath.parse("bidder/person_ref/@person")
        LeafPath(up=0, steps=('bidder', 'person_ref'), attribute='person', function=None)
        >>> LeafPath.parse("../@id")
        LeafPath(up=1, steps=(), attribute='id', function=None)
        >>> LeafPath.parse("../SeriesKey/Value/@value")
        LeafPath(up=1, steps=('SeriesKey', 'Value'), attribute='value', function=None)
        >>> str(LeafPath.parse("name( . )"))
        'name(.)'
        >>> LeafPath.parse("name(../..)")
        LeafPath(up=2, steps=(), attribute=None, function='name')
        """
        if called := _CALL.fullmatch(text):
            if not called["up"]:
                return LeafPath(0, (), function="position")
            return LeafPath(called["up"].count(".."), (), function="name")
        if subtree := _SUBTREE.fullmatch(text):
            below = LeafPath.parse(subtree[1], prefixes)
            if below.up or below.attribute is not None or below.function is not None:
                raise UsageError(f"'{text}' is no path", hint="xml(…) takes an element in the row: xml(text), xml(.)")
            return LeafPath(0, below.steps, function="xml")
        first, *others = _ALTERNATIVE.split(text)
        if others:
            places = [LeafPath.parse(each, prefixes) for each in (first, *others)]
            if any(place.is_outside for place in places):
                raise UsageError(f"'{text}' is no path", hint="alternatives are places in the row")
            return replace(places[0], others=tuple(places[1:]))
        names = _parts(text)
        attribute = None
        if names[-1].startswith("@"):
            attribute = names.pop()[1:]
        up = 0
        while names and names[0] in (".", ".."):
            up += names.pop(0) == ".."
        if up and not names and attribute is None:
            hint = "of an ancestor a leaf, an attribute or the name can be had: ../title, ../@id, name(..)"
            raise UsageError(f"'{text}' is no path", hint=hint)
        steps = [_step(name, text, prefixes) for name in names]
        if ANYWHERE in steps and (up or steps[-1] == ANYWHERE):
            raise UsageError(f"'{text}' is no path", hint="// leads to elements in the row: //title, //*/@id")
        if steps.count(ANYWHERE) > 1:
            raise UsageError(f"'{text}' has // twice", hint="once is enough to come to any depth")
        # An attribute of a plain name is one without a namespace, where there is such a one.
        leaf = None if attribute is None else _name(attribute, text, prefixes).removeprefix("{}")
        return LeafPath(up, tuple(steps), leaf)

    def __str__(self) -> str:
        """The path as it is written.

        >>> [str(LeafPath.parse(text)) for text in ("./a/b", ".", "name( .. )", "position()", "xml(a)", "a//b|//*/@c")]
        ['a/b', '.', 'name(..)', 'position()', 'xml(a)', 'a//b|//*/@c']
        """
        if self.function == "xml":
            return f"xml({'/'.join(self.steps) or '.'})"
        if self.function == "name":
            return f"name({'/'.join(['..'] * self.up) or '.'})"
        if self.function is not None:
            return f"{self.function}()"
        ends = [".."] * self.up + list(self.steps) + ([f"@{self.attribute}"] if self.attribute is not None else [])
        written = "/".join(ends).replace(f"/{ANYWHERE}/", "//").replace(f"{ANYWHERE}/", "//") or "."
        return "|".join([written, *map(str, self.others)])


def _parts(path: str) -> list[str]:
    """What stands between the slashes of a path; a namespace URI has slashes of its own."""
    text = _DEEP.sub(lambda found: found[1] or f"/{ANYWHERE}/", path.strip())
    text = text.removeprefix("/") if path.strip().startswith("//") else text
    parts = re.findall(r"(?:\{[^{}]*\}|[^/{}])+|/", text)
    names = [part.strip() for part in parts[::2]]
    if any(part != "/" for part in parts[1::2]) or "/" in names or not names:
        raise UsageError(f"'{path}' is no path", hint=_HINT)
    return names


def _step(name: str, path: str, prefixes: Prefixes) -> str:
    return name if name in ("*", ANYWHERE) else _name(name, path, prefixes)


def _name(name: str, path: str, prefixes: Prefixes) -> str:
    """A name in a path, with its namespace if it says one."""
    name = with_namespace(name, prefixes, of=path)
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{path}' is no path", hint=_HINT)
    return name


_HINT = "a path is like hour, bidder/person_ref/@person, ../@id or . for the element's own text"


def default_path(column: str, attribute_prefix: str, value_tag: str, prefixes: Prefixes = XML_PREFIXES) -> LeafPath:
    """Where a column's leaf is unless the source says otherwise; UsageError if it has a prefix that nobody declares.

    >>> [str(default_path(name, "_", "_VALUE")) for name in ("hour", "_id", "_VALUE")]
    ['hour', '@id', '.']
    >>> str(default_path("_xml:lang", "_", "_VALUE"))
    '@{http://www.w3.org/XML/1998/namespace}lang'
    """
    if column == value_tag:
        return LeafPath(0, ())
    if attribute_prefix and column.startswith(attribute_prefix):
        name = column.removeprefix(attribute_prefix)
        return LeafPath(0, (), with_namespace(name, prefixes, of=column))
    return LeafPath(0, (with_namespace(column, prefixes, of=column),))


MANY_TAGS = 10_000
"""Tags that are remembered at the most; a document may have any number of them."""


@dataclass(slots=True)
class LeafTree:
    """What is declared at one place below the row element.

    Attributes:
        columns: Whose leaf it is.
        subtrees: Those that have it as XML text, with all that is in it.
        structures: Those that have it as a structure, with what is declared of its fields.
        attributes: By their names, whose leaves the element's XML attributes are.
        children: What is declared below, by the names of elements.
        known: The same by the tags that were met.
        sibling_arrays: The arrays whose leaves are in the element, if there are several.
        is_passage: Whether nothing but what is declared at any depth is below.
    """

    columns: list[int] = field(default_factory=list)
    subtrees: list[int] = field(default_factory=list)
    structures: list[int] = field(default_factory=list)
    attributes: dict[str, list[int]] = field(default_factory=dict)
    children: dict[str, LeafTree] = field(default_factory=dict)
    known: dict[str, list[LeafTree]] = field(default_factory=dict)
    sibling_arrays: tuple[int, ...] = ()
    is_passage: bool = False


def leaf_tree(paths: tuple[LeafPath, ...], wanted: Sequence[int], structures: Collection[int] = ()) -> LeafTree:
    """The tree of the attributes that are wanted and lie within the row; `structures` are those that are some."""
    root = LeafTree()
    for index in wanted:
        path = paths[index]
        if path.is_outside:
            continue
        for place in (path, *path.others):
            node = root
            for step in place.steps:
                node = node.children.setdefault(step, LeafTree())
            if place.function == "xml":
                node.subtrees.append(index)
            elif index in structures:
                node.structures.append(index)
            elif place.attribute is None:
                node.columns.append(index)
            else:
                node.attributes.setdefault(place.attribute, []).append(index)
    return root


def mark_arrays(node: LeafTree, arrays: Collection[int], *, is_row: bool = True) -> None:
    """Let each place know which of the arrays have their leaves in it; the row is no such place."""
    for child in node.children.values():
        mark_arrays(child, arrays, is_row=False)
    leaves = [node.columns, node.subtrees, *node.attributes.values()]
    leaves += [child.columns + child.subtrees for child in node.children.values() if not child.sibling_arrays]
    found = tuple(index for columns in leaves for index in columns if index in arrays)
    node.sibling_arrays = found if len(found) > 1 and not is_row else ()


def flat_leaves(paths: tuple[LeafPath, ...], wanted: Sequence[int]) -> dict[object, int] | None:
    """The attributes by the names of their elements, if each is a child of its own."""
    names = {paths[index].steps: index for index in wanted}
    is_flat = all(
        len(path.steps) == 1 and path.attribute is None and not (path.is_outside or path.function or path.others)
        for path in paths
    )
    if not is_flat or len(names) < len(wanted) or any("}" in name or "*" in name for (name,) in names):
        return None
    return {name: index for (name,), index in names.items()}


def declared_below(node: LeafTree, tag: str) -> list[LeafTree]:
    """What is declared for a child: by its local name, and by its name with its namespace, `{}name` for none."""
    found = node.known.get(tag)
    if found is None:
        whole = tag if "}" in tag else "{}" + tag
        found = [node.children[name] for name in (local_tag(tag), whole, "*") if name in node.children]
        if (deep := node.children.get(ANYWHERE)) is not None:
            found += [*declared_below(deep, tag), _passage(node, deep)]
        if len(node.known) < MANY_TAGS:
            node.known[tag] = found
    return found


def _passage(node: LeafTree, deep: LeafTree) -> LeafTree:
    """What leads on to what is declared at any depth."""
    return node if node.is_passage else LeafTree(children={ANYWHERE: deep}, is_passage=True)


def local_tag(tag: str) -> str:
    """A name without its namespace.

    >>> local_tag("{urn:x}row"), local_tag("row")
    ('row', 'row')
    """
    return tag.rpartition("}")[2]
