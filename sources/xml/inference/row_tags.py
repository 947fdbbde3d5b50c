"""Elements that may be the tuples of a source: those that repeat, the one first that holds most of the document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from sources.xml.inference.element_profile import ElementProfile
from sources.xml.options.leaf_tree import local_tag

_LEAF = 8
"""Characters that a leaf counts for, beside those of its text."""


@dataclass(frozen=True, slots=True)
class RowCandidate:
    """Elements of one name, wherever they are.

    Attributes:
        profile: All of them taken together.
        around: For each place where they are, the elements around them, the document's root first.
    """

    profile: ElementProfile
    around: tuple[tuple[ElementProfile, ...], ...]

    @property
    def weight(self) -> int:
        """How much of the document is in them, without what comes several times in one of them."""
        return _weight(self.profile)


def candidates(root: ElementProfile, punctuations: str) -> list[RowCandidate]:
    """The names of elements that repeat, that which holds most first; the root's, if there are none.

    Args:
        root: What is above the documents' roots.
        punctuations: The namespace of punctuations, which are none.
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


def called(root: ElementProfile, name: str) -> list[RowCandidate]:
    """The elements of a name: `{uri}name` in a namespace, `{}name` in none, a plain one in each that there is."""
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
