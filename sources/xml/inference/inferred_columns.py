"""Rows and columns of a document: elements that may be tuples, and columns for the leaves in and around them.

Repeated elements are candidates for tuples, but not lists of keys and values. The first is the one with most of the
document; an element around it if that has an identity and the inner one has none, or is often absent; or one within it
if only that has an identity. A column has a name, a type and a path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.slices import quoted
from xmlstream.punct_ns.xml_form import NO_NAME_LETTER
from xmlstream.sources.xml.inference.element_profile import KEYS, ElementProfile, ObservedValues
from xmlstream.sources.xml.inference.inferred_structures import (
    InferredStructure,
    Marks,
    attribute_step,
    belong_together,
    child_step,
    has_more_than_text,
    inferred_structure,
    leaves_in,
    row_contents,
)
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sources.xml.options.qualified_names import XML_PREFIXES

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
    def has_identity(self) -> bool:
        """Whether each of them has a value of its own: an id, a number, a code, a name that is unique, or a time."""
        named = [*_own(self.profile)]
        named += [leaf for child in self.profile.children.values() if child.most == 1 for leaf in _own(child)]
        whole = [(name.lower(), values) for name, values in named if values.count == self.profile.count]
        return any(
            (values.are_unique and name.endswith(_IDENTITIES)) or _TIME.fullmatch(name) for name, values in whole
        )

    def share_of(self, outer: RowCandidate) -> float:
        """Returns the least part of the elements around them, from an outer one inwards, that contain some."""
        chain = [*self.around[0], self.profile]
        first = next(place for place, one in enumerate(chain) if one.tag == outer.profile.tag)
        return min(below.parents / above.count for above, below in pairwise(chain[first:]))

    @property
    def weight(self) -> int:
        """The amount of the document in them, without elements that occur several times in one of them."""
        children = self.profile.children.values()
        pairs = sum(_LEAF * child.count for child in children if child.most > 1 and is_pair(child))
        return _weight(self.profile) + pairs


def candidates(root: ElementProfile, punctuations: str) -> list[RowCandidate]:
    """Returns the repeated elements, those with most first; or else those with punctuations, or the root element.

    Elements in the namespace `punctuations` do not count; `root` is the parent of the documents' roots.
    """
    found = _by_tag(root)
    all_ = {tag: _candidate(places) for tag, places in found.items() if not tag.startswith(f"{{{punctuations}}}")}
    repeated = [one for one in all_.values() if one.profile.most > 1 and any(one.around)]
    structured = [one for one in repeated if one.profile.children or one.profile.attributes]
    if chosen := structured or repeated:
        ordered = sorted(chosen, key=lambda one: (is_pair(one.profile), -one.weight))
        best = _better(ordered[0], [one for one in ordered[1:] if not is_pair(one.profile)])
        return [best, *(one for one in ordered if one is not best)]
    punctuated = {local_tag(tag) for tag in found if tag.startswith(f"{{{punctuations}}}")}
    closed = [one for one in all_.values() if one.profile.local in punctuated and any(one.around)]
    return closed or [_candidate(found[tag]) for tag in root.children][:1]


def _by_tag(root: ElementProfile) -> dict[str, list[tuple[ElementProfile, tuple[ElementProfile, ...]]]]:
    """The elements that rows may be, each with those around it, by their tags.

    Where elements of one name have different contents, these are the rows, and not the elements.
    """
    found: dict[str, list[tuple[ElementProfile, tuple[ElementProfile, ...]]]] = {}
    for profile, around in _places(root, ()):
        found.setdefault(profile.tag, []).append((profile, around))
    for tag, places in [*found.items()]:
        inner = [{*profile.children} for profile, _ in places if profile.most > 1]
        if len(inner) > 1 and all(inner) and not set.intersection(*inner):
            del found[tag]
            for each in {*inner[0]}.union(*inner) & {*found}:
                first, *rest = found[each]
                found[each] = [(replace(first[0], most=2), first[1]), *rest]
    return found


def _better(first: RowCandidate, others: list[RowCandidate]) -> RowCandidate:
    """Returns the row that one wants: the first candidate, or one around it or within it with more of an identity."""
    chain = [one.tag for one in first.around[0]]
    outer = [one for one in others if one.profile.tag in chain and len(one.profile.children) > 1 and one.has_identity]
    outer.sort(key=lambda one: chain.index(one.profile.tag))
    is_whole = first.has_identity
    for one in outer:
        if not is_whole or first.share_of(one) < _OFTEN:
            return one
    inner = [one for one in others if any(each.tag == first.profile.tag for each in one.around[0]) and one.has_identity]
    return first if is_whole or not inner else inner[0]


_OFTEN = 0.75
"""The part of outer elements that must contain an inner one, so that rows of the inner one lack few of them."""

_IDENTITIES = ("id", "key", "guid", "uuid", "number", "ref", "code", "name", "identifier", "addr", "nr", "no")
_TIME = re.compile(r"(?:event_?|system_?|start_?)?(?:time|timestamp|ts|date_?time|time_period)")


def _own(profile: ElementProfile) -> Iterator[tuple[str, ObservedValues]]:
    """Yields the values of an element that has one of each, with their names."""
    yield from ((local_tag(name), values) for name, values in profile.attributes.items())
    children = (child for child in profile.children.values() if child.most == 1 and not child.children)
    yield from ((child.local, child.values) for child in children)


_VALUES = ("value", "Value", "v", "val")


def key_and_value(profile: ElementProfile) -> tuple[str, str | None] | None:
    """Returns the XML attributes that are the key and the value of elements; None in place of the value is the text.

    The same keys occur in several parents, and none twice in one. None if they are not like that.
    """
    names = profile.attributes
    key = next((name for name in KEYS if name in names), None)
    if key is None or profile.children or len(names) + profile.has_text != 2 or any("}" in name for name in names):
        return None
    value = next((name for name in names if name != key), None)
    keys, values = names[key], profile.values if value is None else names[value]
    is_key = keys.count == profile.count and not (keys.are_unique or profile.repeats_key or keys.have_outer_blanks)
    # The last element of a sample may lack its end, and so its text.
    is_key &= values.count + (value is None) >= profile.count
    is_value = value in _VALUES or (value is None and key != "id")
    return (key, value) if is_key and is_value and (profile.most > 1 or key in ("key", "k")) else None


def is_pair(profile: ElementProfile) -> bool:
    """Whether elements are a list of keys and values, as XML attributes or as child elements."""
    names = sorted(child.local for child in profile.children.values() if not child.children)
    are_children = len(names) == len(profile.children) == 2 and any(name in KEYS for name in names)
    return key_and_value(profile) is not None or (
        are_children and not profile.attributes and any(name in _VALUES for name in names)
    )


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


MOST_COLUMNS = 60
"""The greatest number of proposed columns."""

MANY_LEAVES = 40
"""The number of leaves of a row above which all its children with several leaves become structures."""


@dataclass(frozen=True, slots=True)
class InferredLeaf:
    """One place with a value of a row.

    Attributes:
        steps: The elements down to it, as in paths.
        attribute: The XML attribute at the end, as in paths; None for the element's text.
        values: The observed values.
        is_repeated: Whether one row may have it several times.
        is_mixed: Whether the text contains elements.
        up: The number of levels up where the path begins.
        key: The key of the value, in a list of keys and values.
        structure: That of a column for all leaves below the steps; None for a single leaf.
    """

    steps: tuple[str, ...]
    attribute: str | None
    values: ObservedValues
    is_repeated: bool = False
    is_mixed: bool = False
    up: int = 0
    key: str = ""
    structure: InferredStructure | None = None

    @property
    def path(self) -> str:
        """The path as an option's text."""
        if self.is_mixed and not self.steps:
            return "string(.)"
        ends = [f"@{self.attribute}"] if self.attribute is not None else []
        return "/".join([*[".."] * self.up, *self.steps, *ends]) or "."

    @property
    def words(self) -> list[str]:
        """The parts of its path that make a name."""
        around = ["parent"] if self.up == 1 else [f"up{self.up}"] if self.up else []
        if self.key:
            return [*around, *self.steps[:-1], self.key]
        return [*around, *self.steps, *([self.attribute] if self.attribute is not None else [])]

    @property
    def type(self) -> str:
        """The type of its column."""
        if self.structure is not None:
            type_ = self.structure.type
        else:
            type_ = "STRING" if self.is_mixed else self.values.type_as(self.words[-1] if self.words else "")
        return f"ARRAY<{type_}>" if self.is_repeated else type_


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column, its leaf, whether it is NOT NULL, and what it cannot express."""

    name: str
    leaf: InferredLeaf
    is_required: bool = False
    remark: str = ""

    @property
    def ddl(self) -> str:
        """Its declaration."""
        return f"{quoted(self.name)} {self.leaf.type}{' NOT NULL' if self.is_required else ''}"

    def is_whole(self, rows: int) -> bool:
        """Whether each of so many rows has one value."""
        leaf, values = self.leaf, self.leaf.values
        is_one = not (leaf.up or leaf.is_repeated or leaf.structure) and values.count == rows
        return is_one and all(text for _, text in values.texts)

    @property
    def seen(self) -> list[tuple[str, ObservedValues]]:
        """The values of the column, or of the fields in its structures, each with the name that options have for it."""
        if self.leaf.structure is not None:
            return [(f"{self.name}.{field}", values) for field, values in self.leaf.structure.values]
        return [] if self.leaf.is_mixed else [(self.name, self.leaf.values)]

    @property
    def noticed(self) -> str:
        """What its type does not show: text that is joined, dates of two readings, and a value that was there once."""
        if self.leaf.is_mixed:
            return f"all text in the {'element' if self.leaf.steps else 'row'}, that of elements in it, too"
        both = [(name, readings) for name, values in self.seen if (readings := values.readings)]
        if both:
            return "; ".join(f"{', '.join(readings)}: {_with_one(name, readings)}" for name, readings in both)
        return (
            "; ".join(said)
            if (said := [each for _, values in self.seen if (each := _of_locales(values))])
            else self._once
        )

    @property
    def _once(self) -> str:
        return "" if self.leaf.structure or self.leaf.values.count != 1 else "seen once"


def _of_locales(values: ObservedValues) -> str:
    """How numbers with marks of a locale are read, or could be; empty for others."""
    read, texts = values.numbers, [text for _, text in values.texts if text]
    if not read:
        return ""
    at = next(place for place, text in enumerate(texts) if not text.isdigit())
    if values.locale is not None:
        return f"{texts[at]} is {read[values.locale][at]}"
    if len(read) == 1:
        return f"{texts[at]} is a number as {next(iter(read))} writes it, and the table has one locale"
    shown = ", ".join(f"{plain[at]} in the locale {tag}" for tag, plain in read.items())
    return f"{texts[at]} is {shown}: declare a DECIMAL, with one as locale"


def _with_one(name: str, readings: Sequence[str]) -> str:
    """What to declare so that dates have one of several readings."""
    kind = "timestamp" if "HH" in readings[0] else "date"
    return f"declare a {kind.upper()}, with one as {kind}Format.{name}"


def inferred_leaves(
    row: RowCandidate, prefixes: Mapping[str, str], marks: Marks = ("_", "_VALUE")
) -> tuple[list[InferredLeaf], str | None]:
    """Returns all leaves of a row: its own, and those of the repeated elements around it.

    Elements that repeat, and have several leaves, are structures; if there are too many leaves, all children are that
    have several.

    Returns:
        The leaves, and the outermost element around a row whose other children have some of them; None if none.
    """
    unit, inside = None, row_contents(row.profile, row.profile.tag)
    for groups in (False, True):
        found = list(_LeafFinder(prefixes, marks, groups).below(inside, ()))
        if len(found) <= MANY_LEAVES:
            break
    found = found or [InferredLeaf((), None, row.profile.values)]
    # Structures are in the row, so that arrays of what is around it stand beside each other.
    finder = _LeafFinder(prefixes, marks, has_structures=False)
    depth = min(map(len, row.around), default=0)
    for up in range(1, depth + 1):
        around = list({id(each[-up]): each[-up] for each in row.around}.values())
        merged = reduce(ElementProfile.merged, around)
        if merged.count > 1 and merged.local != row.profile.local:
            found += finder.attributes(merged, (), up=up)
            inner = {row.profile.tag, *(each[1 - up].tag for each in row.around if up > 1)}
            # Nothing of the root's end is known while a document grows.
            is_one = len({each.tag for each in around}) == 1 and all(len(each) > up for each in row.around)
            others = {tag: child for tag, child in merged.children.items() if tag not in inner}
            alone = replace(merged, attributes={}, values=ObservedValues(), is_mixed=False, children=others)
            if is_one and (
                beside := [leaf for leaf in finder.below(row_contents(alone, row.profile.tag), ()) if leaf.steps]
            ):
                unit = merged.local
                found += (replace(leaf, up=up) for leaf in beside)
    return found, unit


def passed_over(row: RowCandidate) -> list[str]:
    """Returns the paths of what is in rows and no leaf of them: elements named as rows are, in another namespace."""
    found: list[str] = []

    def look(profile: ElementProfile, steps: tuple[str, ...]) -> None:
        for tag, child in profile.children.items():
            if child.local != row.profile.local:
                look(child, (*steps, child.local))
            elif tag != row.profile.tag:
                found.append("/".join([*steps, child.local]))

    look(row.profile, ())
    return found


def outside(row: RowCandidate, prefixes: Mapping[str, str], taken: Collection[str]) -> list[str]:
    """Returns the paths of the leaves around rows that occur once in their elements, without those that are `taken`.

    Elements that have rows of their own, or repeat, are others to choose as rows.
    """
    finder, found = _LeafFinder(prefixes, ("_", "_VALUE"), has_structures=False), dict[str, None]()
    for around in row.around:
        inner = row.profile.tag
        for up, element in enumerate(reversed(around), 1):
            children = ((tag, one) for tag, one in element.children.items() if tag != inner)
            beside = {tag: one for tag, one in children if all(each.most == 1 for each in one.below())}
            rest = replace(element, values=ObservedValues(), is_mixed=False, children=beside)
            leaves = finder.below(row_contents(rest, row.profile.tag), ())
            found |= {replace(leaf, up=up).path: None for leaf in leaves if (leaf.steps or leaf.attribute)}
            inner = element.tag
    return [path for path in found if path not in taken]


@dataclass(frozen=True, slots=True)
class _LeafFinder:
    """Finds the leaves of rows and around them; see `inferred_leaves` for `groups`, and `row_contents` for profiles."""

    prefixes: Mapping[str, str]
    marks: Marks
    groups: bool = False
    has_structures: bool = True

    def below(
        self, profile: ElementProfile, steps: tuple[str, ...], *, is_repeated: bool = False
    ) -> Iterator[InferredLeaf]:
        """Yields the leaves of elements, and of all below them."""
        yield from self.attributes(profile, steps, is_repeated=is_repeated)
        if profile.has_text:
            # If one of them has child elements, its text includes theirs.
            is_mixed = profile.is_mixed or bool(steps and profile.children)
            yield InferredLeaf(steps, None, profile.values, is_repeated, is_mixed)
        for tag, child in profile.children.items():
            below = (*steps, child_step(tag, profile.children, self.prefixes))
            pairs = [] if is_repeated else list(_pairs(child, below))
            if pairs:
                yield from pairs
            elif self._is_structure(child, steps):
                structure = inferred_structure(child, self.prefixes, self.marks)
                yield InferredLeaf(below, None, ObservedValues(), child.most > 1, structure=structure)
            else:
                yield from self.below(child, below, is_repeated=is_repeated or child.most > 1)

    def _is_structure(self, child: ElementProfile, steps: tuple[str, ...]) -> bool:
        """Whether elements are one column, with all their leaves."""
        if not self.has_structures or not has_more_than_text(child):
            return False
        if child.most > 1:
            return belong_together(child)
        return self.groups and not steps and leaves_in(child) > 1

    def attributes(
        self, profile: ElementProfile, steps: tuple[str, ...], *, is_repeated: bool = False, up: int = 0
    ) -> Iterator[InferredLeaf]:
        """Yields the XML attributes of elements."""
        for name, values in profile.attributes.items():
            written = attribute_step(name, profile.attributes, self.prefixes)
            yield InferredLeaf(steps, written, values, is_repeated, up=up)


MOST_KEYS = 40
"""The greatest number of keys in a list of keys and values that become columns."""


def _pairs(profile: ElementProfile, steps: tuple[str, ...]) -> Iterator[InferredLeaf]:
    """Yields a leaf for each key of a list of keys and values; none if there are too many keys, or unusual ones."""
    found = key_and_value(profile)
    if found is None:
        return
    key, value = found
    values = profile.values if value is None else profile.attributes[value]
    texts = dict(values.texts)
    groups: dict[str, ObservedValues] = {}
    for number, name in profile.attributes[key].texts:
        if number in texts:
            groups.setdefault(name, ObservedValues()).add(number, texts[number])
    if len(groups) > MOST_KEYS or not all(name and "\n" not in name and not {"'", '"'} <= set(name) for name in groups):
        return
    *outer, step = steps
    for name, of in groups.items():
        quote = "'" if '"' in name else '"'
        yield InferredLeaf((*outer, f"{step}[@{key}={quote}{name}{quote}]"), value, of, key=name)


def columns(found: list[InferredLeaf]) -> list[InferredColumn]:
    """Returns a column for each leaf, with distinct names; like Spark, names are compared without regard to case.

    >>> seen = ObservedValues()
    >>> read = [((), "id"), (("a", "b"), None), (("b",), None), ((), None)]
    >>> read = [InferredLeaf(*leaf, seen) for leaf in read]
    >>> [column.name for column in columns([*read, InferredLeaf((), "id", seen, up=1)])]
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


def _name(leaf: InferredLeaf, length: int) -> str:
    """Builds a name from the last `length` parts of the path."""
    words = [re.sub(rf"[{NO_NAME_LETTER}\-.]+", "_", part.removeprefix("{}")) for part in leaf.words]
    if not leaf.up and not leaf.steps:
        return f"_{words[0]}" if words else "_VALUE"
    chosen = words[-length:] if leaf.up != 1 else words
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
