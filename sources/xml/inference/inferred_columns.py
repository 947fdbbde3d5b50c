"""Rows and columns of a document: elements that may be tuples, and columns for the leaves in and around them.

Repeated elements are candidates for tuples; the first is the one with most of the document. A column has a name, a
type and a path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from sources.xml.inference.element_profile import ElementProfile, ObservedValues
from sources.xml.options.leaf_paths import local_tag
from sources.xml.options.qualified_names import XML_PREFIXES

_LEAF = 8
"""The weight of a leaf in characters, in addition to its text."""


@dataclass(frozen=True, slots=True)
class RowCandidate:
    """Elements of one name, in all places.

    Attributes:
        profile: The merged profile of all of them.
        around: For each place, the elements around it, from the document's root.
    """

    profile: ElementProfile
    around: tuple[tuple[ElementProfile, ...], ...]

    @property
    def weight(self) -> int:
        """The amount of the document in them, without elements that occur several times in one of them."""
        return _weight(self.profile)


def candidates(root: ElementProfile, punctuations: str) -> list[RowCandidate]:
    """Returns the repeated elements, those with most of the document first; the root element if there are none.

    Args:
        root: The parent of the documents' roots.
        punctuations: The namespace of punctuations, which are excluded.
    """
    found: dict[str, list[tuple[ElementProfile, tuple[ElementProfile, ...]]]] = {}
    for profile, around in _places(root, ()):
        found.setdefault(profile.tag, []).append((profile, around))
    all_ = {tag: _candidate(places) for tag, places in found.items() if not tag.startswith(f"{{{punctuations}}}")}
    repeated = [one for one in all_.values() if one.profile.most > 1 and any(one.around)]
    structured = [one for one in repeated if one.profile.children or one.profile.attributes]
    if chosen := structured or repeated:
        return sorted(chosen, key=lambda one: -one.weight)
    return [_candidate(found[tag]) for tag in root.children][:1]


def candidates_named(root: ElementProfile, name: str) -> list[RowCandidate]:
    """Returns the elements of a name: `{uri}name` in that namespace, `{}name` in none, a plain name in any."""
    found: dict[str, list[tuple[ElementProfile, tuple[ElementProfile, ...]]]] = {}
    for profile, around in _places(root, ()):
        if profile.tag == name.removeprefix("{}") or ("}" not in name and local_tag(profile.tag) == name):
            found.setdefault(profile.tag, []).append((profile, around))
    return [_candidate(places) for places in found.values()]


def _places(
    profile: ElementProfile, around: tuple[ElementProfile, ...]
) -> Iterator[tuple[ElementProfile, tuple[ElementProfile, ...]]]:
    for child in profile.children.values():
        yield child, around
        yield from _places(child, (*around, child))


def _candidate(places: list[tuple[ElementProfile, tuple[ElementProfile, ...]]]) -> RowCandidate:
    return RowCandidate(
        reduce(ElementProfile.merged, (each for each, _ in places)), tuple(around for _, around in places)
    )


def _weight(profile: ElementProfile) -> int:
    values = [*profile.attributes.values(), *([profile.values] if profile.has_text else [])]
    own = sum(each.length + _LEAF * each.count for each in values)
    return own + sum(_weight(child) for child in profile.children.values() if child.most == 1)


MOST_COLUMNS = 200
"""The greatest number of proposed columns."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One place with a value of a row.

    Attributes:
        steps: The elements down to it, as in paths.
        attribute: The XML attribute at the end, as in paths; None for the element's text.
        values: The observed values.
        is_repeated: Whether one row may have it several times.
        is_mixed: Whether the text contains elements.
        up: The number of levels up where the path begins.
    """

    steps: tuple[str, ...]
    attribute: str | None
    values: ObservedValues
    is_repeated: bool = False
    is_mixed: bool = False
    up: int = 0

    @property
    def path(self) -> str:
        """The path as an option's text."""
        ends = [f"@{self.attribute}"] if self.attribute is not None else []
        return "/".join([*[".."] * self.up, *self.steps, *ends]) or "."

    @property
    def type(self) -> str:
        """The type of its column."""
        type_ = "STRING" if self.is_mixed else self.values.type
        return f"ARRAY<{type_}>" if self.is_repeated else type_


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column, and its leaf."""

    name: str
    leaf: Leaf


def leaves(row: RowCandidate, prefixes: Mapping[str, str]) -> tuple[list[Leaf], str | None]:
    """Returns all leaves of a row: its own, and those of the repeated elements around it.

    Args:
        row: The rows.
        prefixes: Maps each namespace to its prefix in paths.

    Returns:
        The leaves, and the outermost element around a row whose other children have some of them; None if none.
    """
    unit = None
    found = list(_below(row.profile, (), row.profile.local, prefixes, is_repeated=False))
    found = found or [Leaf((), None, row.profile.values)]
    depth = min(map(len, row.around), default=0)
    for up in range(1, depth + 1):
        around = list({id(each[-up]): each[-up] for each in row.around}.values())
        merged = reduce(ElementProfile.merged, around)
        if merged.count > 1 and merged.local != row.profile.local:
            found += _attributes(merged, (), prefixes, is_repeated=False, up=up)
            inner = {row.profile.tag, *(each[1 - up].tag for each in row.around if up > 1)}
            is_one = len({each.tag for each in around}) == 1
            if is_one and (beside := list(_beside(merged, inner, row.profile.local, prefixes))):
                unit = merged.local
                found += (replace(leaf, up=up) for leaf in beside)
    return found, unit


def _beside(profile: ElementProfile, inner: set[str], row: str, prefixes: Mapping[str, str]) -> Iterator[Leaf]:
    """Yields the leaves of an ancestor's children, except those that contain the rows."""
    others = {tag: child for tag, child in profile.children.items() if tag not in inner}
    alone = replace(profile, attributes={}, values=ObservedValues(), is_mixed=False, children=others)
    for leaf in _below(alone, (), row, prefixes, is_repeated=False):
        if leaf.steps:
            yield leaf


def _below(
    profile: ElementProfile, steps: tuple[str, ...], row: str, prefixes: Mapping[str, str], *, is_repeated: bool
) -> Iterator[Leaf]:
    yield from _attributes(profile, steps, prefixes, is_repeated=is_repeated)
    if profile.has_text:
        # If one of them has child elements, its text includes theirs.
        is_mixed = profile.is_mixed or bool(steps and profile.children)
        yield Leaf(steps, None, profile.values, is_repeated, is_mixed)
        if profile.is_mixed and steps:
            return  # its text includes that of all elements in it
    locals_ = Counter(local_tag(tag) for tag in profile.children)
    for child in profile.children.values():
        if child.local != row:
            step = child.local if locals_[child.local] == 1 else _qualified(child.tag, prefixes)
            yield from _below(child, (*steps, step), row, prefixes, is_repeated=is_repeated or child.most > 1)


def _attributes(
    profile: ElementProfile, steps: tuple[str, ...], prefixes: Mapping[str, str], *, is_repeated: bool, up: int = 0
) -> Iterator[Leaf]:
    for name, values in profile.attributes.items():
        is_alone = not any(
            local_tag(other) == local_tag(name) != other for other in profile.attributes if other != name
        )
        written = local_tag(name) if is_alone and "}" not in name else _qualified(name, prefixes).removeprefix("{}")
        yield Leaf(steps, written, values, is_repeated, up=up)


def _qualified(tag: str, prefixes: Mapping[str, str]) -> str:
    uri = tag[1:].partition("}")[0] if "}" in tag else ""
    return f"{prefixes[uri]}:{local_tag(tag)}" if uri else f"{{}}{local_tag(tag)}"


def columns(found: list[Leaf]) -> list[InferredColumn]:
    """Returns a column for each leaf, with distinct names; like Spark, names are compared without regard to case.

    >>> seen = ObservedValues()
    >>> read = [Leaf((), "id", seen), Leaf(("a", "b"), None, seen), Leaf(("b",), None, seen), Leaf((), None, seen)]
    >>> [column.name for column in columns([*read, Leaf((), "id", seen, up=1)])]
    ['_id', 'a_b', 'b', '_VALUE', 'parent_id']
    """
    lengths = [1] * len(found)
    names = [_name(leaf, 1) for leaf in found]
    for _ in range(max((len(leaf.steps) for leaf in found), default=0) + 1):
        often = Counter(name.lower() for name in names)
        for i, leaf in enumerate(found):
            if often[names[i].lower()] > 1:
                lengths[i] += 1
                names[i] = _name(leaf, lengths[i])
    taken: dict[str, None] = {}
    for name in names:
        tries = (name, *(f"{name}_{number}" for number in range(2, len(names) + 2)))
        taken[next(one for one in tries if one.lower() not in {other.lower() for other in taken})] = None
    return [InferredColumn(name, leaf) for name, leaf in zip(taken, found, strict=True)]


def _name(leaf: Leaf, length: int) -> str:
    """Builds a name from the last `length` parts of the path."""
    around = ["parent"] if leaf.up == 1 else [f"up{leaf.up}"] if leaf.up else []
    parts = [*around, *leaf.steps, *([leaf.attribute] if leaf.attribute is not None else [])]
    words = [re.sub(r"\W+", "_", part.removeprefix("{}")) for part in parts]
    if not leaf.up and not leaf.steps:
        return f"_{words[0]}" if words else "_VALUE"
    chosen = words[-length:] if not leaf.up else words
    return "_".join(chosen)


def prefixes_for(sample_prefixes: Mapping[str, str]) -> dict[str, str]:
    """Returns a prefix for each namespace: the document's own if it is free, or one made from the namespace.

    >>> prefixes_for({"urn:a": "", "urn:b": "b", "http://x.org/b": "b"})
    {'urn:a': 'a', 'urn:b': 'b', 'http://x.org/b': 'b2', 'http://www.w3.org/XML/1998/namespace': 'xml'}
    """
    found: dict[str, str] = {}
    for uri, prefix in sample_prefixes.items():
        words = re.findall(r"[A-Za-z][A-Za-z0-9]*", uri)
        base = name = prefix or next((word.lower() for word in reversed(words)), "ns")
        number = 2
        while name in (*found.values(), *XML_PREFIXES):
            name, number = f"{base}{number}", number + 1
        found[uri] = name
    return {**found, **{uri: prefix for prefix, uri in XML_PREFIXES.items()}}
