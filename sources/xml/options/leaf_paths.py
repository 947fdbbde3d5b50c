"""Leaf paths: from a row element to the leaf of an attribute, and the tree of the paths of all attributes.

Paths are `hour`, `bidder/person_ref/@person`, `../@id`. A step can match any element, `*/id`, or any number of
elements, `section//title`; of alternative paths, `isbn|issn`, the attribute has the one that is present. A condition
selects elements by an XML attribute: `string[@key='concept:name']/@value`.

Five things that are not leaves have a path, too: the name of an ancestor, `name(..)`, or of the row, `name(.)`; the
row's number among the rows of its parent, `position()`; all text in the row, `string(.)`, while `.` is only what is in
no other element; an element with all its contents, as XML text, `xml(description)`; and the path or URL of the
document, `document()`, or a part of it, `document([0-9]{8})`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Literal

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.punct_ns.errors import UsageError, nearest
from xmlstream.punct_ns.xml_form import NAME
from xmlstream.sources.xml.options.qualified_names import XML_PREFIXES, Prefixes, with_namespace

_CALL = re.compile(r"\s*(?:name\(\s*(?P<up>\.|\.\.(?:/\.\.)*)\s*\)|position\(\s*\))\s*")
_DOCUMENT = re.compile(r"\s*document\(\s*(?P<part>.*?)\s*\)\s*", re.DOTALL)
_IN_BRACKETS = r"""\{[^{}]*\}|\[(?:'[^']*'|"[^"]*"|[^'"\]])*\]"""
_ALL_OF = re.compile(rf"\s*(xml|string)\(\s*((?:{_IN_BRACKETS}|[^()\[])*?)\s*\)\s*")
_MARK = re.compile(rf"({_IN_BRACKETS})|//|\|")
_PART = re.compile(rf"(?:{_IN_BRACKETS}|[^/{{}}\[])+|/")
_NAME = re.compile(r"(\{[^{}]*\})?" + NAME)
_CONDITION = re.compile(r"""\[\s*@\s*([^\s=\[\]'"/]+)\s*=\s*('[^']*'|"[^"]*")\s*\]""")


ANYWHERE = "**"
"""The step of a path that matches any number of elements."""


@dataclass(frozen=True, slots=True)
class LeafPath:
    """A path in canonical form.

    Attributes:
        up: The number of levels up where it begins; 0 is the row element itself.
        steps: The element names downwards from there; a plain name matches any namespace, `{uri}name` that namespace,
            `{}name` no namespace, `*` any name, ANYWHERE any number of elements, including none. A condition after
            a name, `[@key='x']`, is a step, too: it leads to those of the elements that meet it.
        attribute: The XML attribute at the end: a plain name is one in no namespace, or else in any, `{uri}name` in
            that namespace, `{}name` in none; None for the element's text.
        function: `name` for the local name of that ancestor, or of the row; `position` for the row's number in its
            parent, from 1; `string` for all text in the row; `xml` for an element as XML text; `document` for the path
            or URL of the document.
        part: For `document`, the regular expression of a part of it; empty for all.
        others: Alternative paths of the leaf.
    """

    up: int
    steps: tuple[str, ...]
    attribute: str | None = None
    function: Literal["name", "position", "string", "xml", "document"] | None = None
    part: str = field(default="", repr=False)
    others: tuple[LeafPath, ...] = field(default=(), repr=False)

    @property
    def is_outside(self) -> bool:
        """Whether it leads outside the row element."""
        return self.up > 0 or self.function in ("name", "position", "document")

    @property
    def is_element(self) -> bool:
        """Whether it leads to an element in the row, or to the row itself."""
        return not self.up and self.attribute is None and self.function is None

    @property
    def names_elements(self) -> bool:
        """Whether it is a single path, and each of its steps names an element."""
        return not (self.others or {"*", ANYWHERE} & set(self.steps))

    @property
    def is_ancestors_leaf(self) -> bool:
        """Whether it leads to a leaf below an ancestor, as `../title` does."""
        return self.up > 0 and bool(self.steps)

    @staticmethod
    def parse(text: str, prefixes: Prefixes = XML_PREFIXES) -> LeafPath:
        """Parses a path with these namespace prefixes; UsageError with the reason if it is invalid.

        >>> LeafPath.parse("bidder/person_ref/@person")
        LeafPath(up=0, steps=('bidder', 'person_ref'), attribute='person', function=None)
        >>> LeafPath.parse("../@id")
        LeafPath(up=1, steps=(), attribute='id', function=None)
        >>> LeafPath.parse("../SeriesKey/Value/@value")
        LeafPath(up=1, steps=('SeriesKey', 'Value'), attribute='value', function=None)
        >>> LeafPath.parse('string[@key="x/y"]/@value').steps
        ('string', "[@key='x/y']")
        >>> str(LeafPath.parse("name( . )"))
        'name(.)'
        >>> LeafPath.parse("name(../..)")
        LeafPath(up=2, steps=(), attribute=None, function='name')
        """
        if (called := _called(text, prefixes)) is not None:
            return called
        first, *others = _alternatives(text)
        if others:
            places = [LeafPath.parse(each, prefixes) for each in (first, *others)]
            if any(place.is_outside for place in places):
                raise UsageError(f"'{text}' is not a valid path", hint="alternatives must be inside the row")
            return replace(places[0], others=tuple(places[1:]))
        names = _parts(text)
        attribute = None
        if names[-1].startswith("@"):
            attribute = names.pop()[1:]
        up = 0
        while names and names[0] in (".", ".."):
            up += names.pop(0) == ".."
        if up and not names and attribute is None:
            hint = "a path to an ancestor ends in a leaf, an attribute or the name: ../title, ../@id, name(..)"
            raise UsageError(f"'{text}' is not a valid path", hint=hint)
        steps = [step for name in names for step in _steps(name, text, prefixes)]
        if ANYWHERE in steps and (up or steps[-1] == ANYWHERE):
            raise UsageError(f"'{text}' is not a valid path", hint="// leads to elements in the row: //title, //*/@id")
        if steps.count(ANYWHERE) > 1:
            raise UsageError(f"'{text}' has // twice", hint="one // reaches any depth")
        return LeafPath(up, tuple(steps), None if attribute is None else _name(attribute, text, prefixes))

    def of_document(self, where: str) -> str | None:
        """Returns the text in the path or URL of a document: the last match, or the first group of that; None for none.

        >>> LeafPath.parse("document(day=([0-9-]+))").of_document("in/day=2026-11-01/2.xml")
        '2026-11-01'
        """
        if not self.part:
            return where
        texts = [found[1 if found.re.groups else 0] for found in re.finditer(self.part, where)]
        return texts[-1] if texts else None

    def __str__(self) -> str:
        """Writes the path as text.

        >>> [str(LeafPath.parse(text)) for text in ("./a/b", ".", "name( .. )", "position()", "xml(a)", "a//b|//*/@c")]
        ['a/b', '.', 'name(..)', 'position()', 'xml(a)', 'a//b|//*/@c']
        >>> str(LeafPath.parse("a[@k='x']/b|*[@k='y']"))
        "a[@k='x']/b|*[@k='y']"
        """
        if self.function in ("xml", "string"):
            return f"{self.function}({_written(self.steps) or '.'})"
        if self.function == "name":
            return f"name({'/'.join(['..'] * self.up) or '.'})"
        if self.function is not None:
            return f"{self.function}({self.part})"
        ends = [".."] * self.up + list(self.steps) + ([f"@{self.attribute}"] if self.attribute is not None else [])
        return "|".join([_written(ends) or ".", *map(str, self.others)])


def _written(parts: Iterable[str]) -> str:
    """Writes the parts of a path; a condition follows its element."""
    text = ""
    for part in parts:
        is_next = text and not text.endswith("//") and not part.startswith("[")
        text += "//" if part == ANYWHERE else f"/{part}" if is_next else part
    return text


def _alternatives(text: str) -> list[str]:
    """Splits a path at the bars that are in no condition and no namespace URI."""
    bars = [mark.start() for mark in _MARK.finditer(text) if mark[0] == "|"]
    return [text[begin : end - 1] for begin, end in pairwise([0, *(bar + 1 for bar in bars), len(text) + 1])]


def _called(text: str, prefixes: Prefixes) -> LeafPath | None:
    """Parses what is not a leaf: `name(..)`, `position()`, `document()`, `xml(…)`, `string(.)`; None if it is one."""
    if called := _CALL.fullmatch(text):
        if not called["up"]:
            return LeafPath(0, (), function="position")
        return LeafPath(called["up"].count(".."), (), function="name")
    if document := _DOCUMENT.fullmatch(text):
        try:
            re.compile(document["part"])
        except re.error as error:
            hint = "document() is the whole path or URL, document([0-9]+) the last number in it"
            raise UsageError(f"'{text}' is not a valid path: {error}", hint=hint) from None
        return LeafPath(0, (), function="document", part=document["part"])
    if called := _ALL_OF.fullmatch(text):
        below, function = LeafPath.parse(called[2], prefixes), called[1]
        if below.up or below.attribute is not None or below.function is not None or below.others:
            hint = f"{function}(…) takes an element in the row: {function}(text), {function}(.)"
            raise UsageError(f"'{text}' is not a valid path", hint=hint)
        if function == "string":
            # The text of an element in the row is all text in it.
            return below if below.steps else LeafPath(0, (), function="string")
        return LeafPath(0, below.steps, function="xml")
    return None


def _parts(path: str) -> list[str]:
    """Splits a path at its slashes, except those in namespace URIs."""
    if {"[", "]"} & set(_CONDITION.sub("", path)):
        raise UsageError(f"'{path}' is not a valid path", hint=_CONDITION_HINT)
    text = _MARK.sub(lambda found: found[1] or f"/{ANYWHERE}/", path.strip())
    text = text.removeprefix("/") if path.strip().startswith("//") else text
    parts = _PART.findall(text)
    names = [part.strip() for part in parts[::2]]
    if any(part != "/" for part in parts[1::2]) or "/" in names or not names:
        raise UsageError(f"'{path}' is not a valid path", hint=_HINT)
    return names


def _steps(step: str, path: str, prefixes: Prefixes) -> Iterator[str]:
    """Yields the step of a name, and that of a condition behind it."""
    name, bracket, rest = step.partition("[")
    found, name = _CONDITION.fullmatch(bracket + rest), name.strip()
    if bracket and (found is None or name in ("", ".", "..", ANYWHERE)):
        raise UsageError(f"'{path}' is not a valid path", hint=_CONDITION_HINT)
    yield name if name in ("*", ANYWHERE) else _name(name, path, prefixes)
    if found is not None:
        attribute = _name(found[1], path, prefixes).removeprefix("{}")
        yield f"[@{attribute}={found[2]}]" if "'" in found[2][1:-1] else f"[@{attribute}='{found[2][1:-1]}']"


@lru_cache(maxsize=1 << 12)
def condition(step: str) -> tuple[str, str]:
    """Returns the name of the XML attribute in a condition, and its value.

    >>> condition("[@key='x']")
    ('key', 'x')
    """
    attribute, _, value = step[2:-1].partition("=")
    return attribute, value[1:-1]


def _name(name: str, path: str, prefixes: Prefixes) -> str:
    """Resolves a name in a path, with its namespace if it has a prefix."""
    name = with_namespace(name, prefixes, of=path)
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{path}' is not a valid path", hint=_HINT)
    return name


_HINT = "a path is like hour, bidder/person_ref/@person, ../@id or . for the element's own text"
_CONDITION_HINT = (
    "a condition follows an element and compares one XML attribute with a text: string[@key='name']/@value"
)


def default_path(
    column: str, attribute_prefix: str, value_tag: str, prefixes: Prefixes = XML_PREFIXES, *, is_structure: bool = False
) -> LeafPath:
    """Returns the path of a column for which the source declares none; UsageError if its prefix is not declared.

    With an empty prefix a column is an element or an XML attribute, but a structure is an element.

    >>> [str(default_path(name, "_", "_VALUE")) for name in ("hour", "_id", "_VALUE")]
    ['hour', '@id', '.']
    >>> str(default_path("_xml:lang", "_", "_VALUE"))
    '@{http://www.w3.org/XML/1998/namespace}lang'
    >>> str(default_path("id", "", "_VALUE"))
    'id|@id'
    """
    if column == value_tag:
        return LeafPath(0, ())
    is_leaf = column.startswith(attribute_prefix)
    name = with_namespace(column.removeprefix(attribute_prefix) if is_leaf else column, prefixes, of=column)
    element, leaf = LeafPath(0, (name,)), LeafPath(0, (), name)
    if attribute_prefix or is_structure:
        return leaf if attribute_prefix and is_leaf else element
    return replace(element, others=(leaf,))


MANY_TAGS = 10_000
"""The greatest number of cached tags; a document may have any number of them."""


@dataclass(slots=True)
class LeafTree:
    """The declarations for one element below the row element.

    Attributes:
        columns: The attributes whose leaf it is.
        wholes: For the row, the attributes that have all text in it.
        subtrees: The attributes that contain it as XML text, with all its contents.
        structures: The attributes that are structures of its fields.
        attributes: The attributes whose leaves are XML attributes of the element, by name.
        children: The declarations for child elements, by name.
        conditions: The declarations for the element itself, if it meets a condition.
        tested: The XML attribute that led here by a condition; empty for none.
        known: The declarations for child elements by tag, a cache.
        placed: The arrays that have an entry for each such element, null for one without their leaf.
        is_passage: Whether only declarations for any depth apply below it.
    """

    columns: list[int] = field(default_factory=list)
    wholes: list[int] = field(default_factory=list)
    subtrees: list[int] = field(default_factory=list)
    structures: list[int] = field(default_factory=list)
    attributes: dict[str, list[int]] = field(default_factory=dict)
    children: dict[str, LeafTree] = field(default_factory=dict)
    conditions: dict[str, LeafTree] = field(default_factory=dict)
    tested: str = ""
    known: dict[str, list[LeafTree]] = field(default_factory=dict)
    placed: list[int] = field(default_factory=list)
    is_passage: bool = False


def leaf_tree(paths: tuple[LeafPath, ...], arrays: Collection[int] = (), structures: Collection[int] = ()) -> LeafTree:
    """Builds the tree of the attributes within the row; `arrays` and `structures` are the indexes of such."""
    root = LeafTree()
    for index, path in enumerate(paths):
        if path.is_outside:
            continue
        is_placed = index in arrays and index not in structures and path.names_elements
        for place in (path, *path.others):
            node = root
            for step, after in zip_longest(place.steps, place.steps[1:], fillvalue=""):
                if step.startswith("["):
                    node = node.conditions.setdefault(step, LeafTree(tested=condition(step)[0]))
                else:
                    node = node.children.setdefault(step, LeafTree())
                # The last step is the leaf itself, unless that is an attribute.
                if is_placed and not after.startswith("[") and (after or place.attribute is not None):
                    node.placed.append(index)
            if place.function == "xml":
                node.subtrees.append(index)
            elif place.function == "string":
                node.wholes.append(index)
            elif index in structures:
                node.structures.append(index)
            elif place.attribute is None:
                node.columns.append(index)
            else:
                node.attributes.setdefault(place.attribute, []).append(index)
    return root


def flat_leaves(paths: tuple[LeafPath, ...], wanted: Sequence[int]) -> dict[object, int] | None:
    """Maps element names to attributes, if each attribute is a child element with a distinct name; else None."""
    names = {paths[index].steps: index for index in wanted}
    is_flat = all(
        len(path.steps) == 1 and path.attribute is None and not (path.is_outside or path.function or path.others)
        for path in paths
    )
    if not is_flat or len(names) < len(wanted) or any("}" in name or "*" in name for (name,) in names):
        return None
    return {name: index for (name,), index in names.items()}


def declared_below(node: LeafTree, tag: str) -> list[LeafTree]:
    """Returns the declarations for a child, by its local name and by its name with namespace (`{}name` for none)."""
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
    """Returns the node that applies the declarations for any depth further down."""
    return node if node.is_passage else LeafTree(children={ANYWHERE: deep}, is_passage=True)


def likely_leaf(name: str, leaves: Iterable[str]) -> str | None:
    """The leaf that a path or a name is likely to mean: one of its name elsewhere, else one of a similar path.

    >>> likely_leaf("id", {"at", "head/ID", "head/line/@id"}), likely_leaf("amount", {"amonut", "at"})
    ('head/ID', 'amonut')
    """

    def last(path: str) -> str:
        return re.split("[/@]", path)[-1].casefold()

    ordered = sorted(leaves, key=lambda leaf: (leaf.count("/"), leaf))
    same = next((leaf for leaf in ordered if last(leaf) == last(name)), None)
    return same or nearest(name, ordered)


def local_tag(tag: str) -> str:
    """Strips the namespace from a name.

    >>> local_tag("{urn:x}row"), local_tag("row")
    ('row', 'row')
    """
    return tag.rpartition("}")[2]
