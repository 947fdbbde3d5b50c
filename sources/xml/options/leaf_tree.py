"""The tree of the element names below a row element that lead to the leaves of a source's attributes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sources.xml.options.paths import ANYWHERE, LeafPath

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
