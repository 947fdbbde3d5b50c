"""Structures for elements that belong together as a whole: a type with a field for each XML attribute, text and child.

A field has the name of its leaf, or one that no other field has; its path and its format are options where the default
is another. Of mixed content, `see <b r="1">this</b>`, the text is one value, and only attributes below it are more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.punct_ns.slices import quoted
from xmlstream.sources.xml.inference.element_profile import ElementProfile, ObservedValues
from xmlstream.sources.xml.options.leaf_paths import default_path, local_tag

Marks = tuple[str, str]
"""The options attributePrefix and valueTag."""


@dataclass(frozen=True, slots=True)
class InferredStructure:
    """The type of a structure, and the options of its fields: `path`, or that of a format, the field, and the value.

    `values` are those of its fields, by their names.
    """

    type: str
    options: tuple[tuple[str, str, str], ...] = ()
    values: tuple[tuple[str, ObservedValues], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field: the name that it should have, or else should have, its path, its type and its format."""

    name: str
    other: str
    path: str
    type: str
    values: ObservedValues | None = None
    inner: InferredStructure | None = None

    @property
    def format(self) -> str | None:
        """The pattern of its dates or times."""
        return None if self.values is None else self.values.format


def row_contents(profile: ElementProfile, row: str, *, is_row: bool = True) -> ElementProfile:
    """Returns the profile with nothing in elements that are rows, and no text in those that are part of mixed text.

    Args:
        profile: The profile of a row, or of an element in one.
        row: The name of the rows.
        is_row: Whether it is that of a row, whose children are columns in any case.
    """
    children = {
        tag: _without_text(child, attributes={}, children={})
        if local_tag(tag) == local_tag(row)
        else row_contents(child, row, is_row=False)
        for tag, child in profile.children.items()
    }
    if profile.is_mixed and not is_row:
        children = {tag: _without_text(child) for tag, child in children.items()}
    return replace(profile, children=children)


def _without_text(profile: ElementProfile, **parts: Any) -> ElementProfile:
    children = {tag: _without_text(child) for tag, child in profile.children.items()}
    return replace(profile, **{"values": ObservedValues(), "is_mixed": False, "children": children, **parts})


def has_more_than_text(profile: ElementProfile) -> bool:
    """Whether elements have another leaf than their text."""
    return leaves_in(profile) > profile.has_text


def leaves_in(profile: ElementProfile) -> int:
    """Returns the number of leaves in elements."""
    return len(profile.attributes) + profile.has_text + sum(map(leaves_in, profile.children.values()))


def belong_together(profile: ElementProfile) -> bool:
    """Whether elements that repeat have more than one value each, so that arrays of these would mix them up."""
    below = [each for child in profile.children.values() for each in child.below()]
    return leaves_in(profile) > 1 or any(each.most > 1 and leaves_in(each) for each in below)


def inferred_structure(profile: ElementProfile, prefixes: Mapping[str, str], marks: Marks) -> InferredStructure:
    """Returns the structure of elements, whose profile is one of `row_contents`."""
    fields = [
        _Field(
            f"_{local_tag(name)}",
            f"_{prefixes.get(namespace(name), '')}_{local_tag(name)}",
            f"@{local_tag(name) if _is_alone(name, profile.attributes) else prefixed_name(name, prefixes)}",
            values.type_as(local_tag(name)),
            values,
        )
        for name, values in profile.attributes.items()
    ]
    if profile.has_text:
        kind, values = _kind_of_text(profile)
        fields.append(_Field("_VALUE", "_TEXT", "string(.)" if profile.is_mixed else ".", kind, values))
    for tag, child in profile.children.items():
        inner, (kind, seen) = None, _kind_of_text(child)
        if has_more_than_text(child):
            inner = inferred_structure(child, prefixes, marks)
            kind, seen = inner.type, None
        elif not child.has_text:
            continue
        kind = f"ARRAY<{kind}>" if child.most > 1 else kind
        other = f"{prefixes.get(namespace(tag), '')}_{child.local}".strip("_")
        fields.append(_Field(child.local, other, child_step(tag, profile.children, prefixes), kind, seen, inner))
    return _structure(fields, marks)


def _kind_of_text(profile: ElementProfile) -> tuple[str, ObservedValues | None]:
    if profile.is_mixed or (profile.children and not has_more_than_text(profile)):
        return "STRING", None
    return profile.values.type_as(profile.local), profile.values


def _structure(fields: Iterable[_Field], marks: Marks) -> InferredStructure:
    named: dict[str, _Field] = {}
    for each in fields:
        tries = (each.name, each.other, *(f"{each.name}_{number}" for number in range(2, len(named) + 3)))
        taken = {name.lower() for name in named}
        named[next(name for name in tries if name.lower() not in taken)] = each
    options: list[tuple[str, str, str]] = []
    for name, each in named.items():
        default = default_path(name, *marks, is_structure=each.inner is not None)
        options += [] if each.path == str(default) else [("path", name, each.path)]
        if each.format is not None:
            options.append((f"{'timestamp' if 'TIMESTAMP' in each.type else 'date'}Format", name, each.format))
        if each.inner is not None:
            options += [(option, f"{name}.{below}", value) for option, below, value in each.inner.options]
    written = ", ".join(f"{quoted(name)}: {each.type}" for name, each in named.items())
    seen = [(name, each.values) for name, each in named.items() if each.values is not None]
    for name, each in named.items():
        seen += [(f"{name}.{below}", values) for below, values in each.inner.values] if each.inner else []
    return InferredStructure(f"STRUCT<{written}>", tuple(options), tuple(seen))


def namespace(tag: str) -> str:
    """Returns the namespace of a name; empty for none."""
    return tag[1:].partition("}")[0] if "}" in tag else ""


def child_step(tag: str, siblings: Iterable[str], prefixes: Mapping[str, str]) -> str:
    """Returns the step to a child: its local name, with its namespace if siblings have the same local name."""
    often = Counter(map(local_tag, siblings))
    return local_tag(tag) if often[local_tag(tag)] == 1 else prefixed_name(tag, prefixes)


def attribute_step(name: str, siblings: Iterable[str], prefixes: Mapping[str, str]) -> str:
    """Returns the step to an XML attribute, without its `@`; one in a namespace has that."""
    return name if "}" not in name and _is_alone(name, siblings) else prefixed_name(name, prefixes)


def _is_alone(name: str, siblings: Iterable[str]) -> bool:
    return not any(local_tag(other) == local_tag(name) for other in siblings if other != name)


def prefixed_name(tag: str, prefixes: Mapping[str, str]) -> str:
    """Returns a name with the prefix of its namespace; with `{}` in none."""
    uri = namespace(tag)
    return f"{prefixes[uri]}:{local_tag(tag)}" if uri else f"{{}}{local_tag(tag)}"
